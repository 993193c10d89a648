"""Break the code on purpose, one small change at a time, and see whether a test notices.

python -m benchmarks.mutation --sample 500

The changes are those of mutmut (`pip install '.[mutation]'`); changes within `raise` statements, that is of messages,
are left out. Each is tried in a forked process in which torch is already imported, with the tests that reach its
line, the quickest first, until one fails. Hypothesis draws the same 40 cases every time and does not shrink.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutmut.mutation.file_mutation import create_mutations

from benchmarks.harness import RESULTS, write_result

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = [
    *sorted((SOURCE / "setpoint" / "measure").glob("*.py")),
    *sorted((SOURCE / "setpoint" / "problem").glob("*.py")),
    SOURCE / "setpoint" / "solve" / "threshold.py",
]
TESTS = [
    "tests/measure", "tests/problem", "tests/solve/test_threshold.py", "tests/solve/test_threshold_in_detail.py",
    "tests/fuzz/test_found.py",
]  # fmt: skip
#: Imported once, before the forks. Nothing of setpoint itself: each process reads its own.
HEAVY = (
    "torch",
    "scipy.stats",
    "scipy.optimize",
    "scipy.sparse",
    "sklearn.metrics",
    "cooper",
    "polars",
    "safetensors.torch",
)
WORKERS, CPU_SECONDS, KILLED, SURVIVED, ENDLESS = 2, 90, "killed", "survived", "killed: too slow"
EXPLAINED = RESULTS / "mutation_explained.json"


@dataclass(frozen=True)
class Mutant:
    """A file with one change in it."""

    path: Path
    line: int
    before: str
    after: str
    source: str

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(SOURCE / 'setpoint')}:{self.line}: {self.before} -> {self.after}"


def mutants(path: Path) -> tuple[list[Mutant], int]:
    """Every change of a file but those of messages, and how many of those there were."""
    code = path.read_text()
    lines = code.splitlines()
    raised = [(n.lineno, n.end_lineno or n.lineno) for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Raise)]
    module, changes, *_ = create_mutations(str(path), code)
    found, messages = [], 0
    for change in changes:
        source = module.deep_replace(change.original_node, change.mutated_node).code  # type: ignore[union-attr]
        changed = source.splitlines()
        line = (
            next((i for i, (a, b) in enumerate(zip(lines, changed)) if a != b), min(len(lines), len(changed)) - 1) + 1
        )
        if any(first <= line <= last for first, last in raised):
            messages += 1
            continue
        before, after = (module.code_for_node(n).strip() for n in (change.original_node, change.mutated_node))
        found.append(Mutant(path, line, _short(before), _short(after), source))
    return found, messages


def _short(code: str) -> str:
    text = " ".join(code.split())
    return text if len(text) <= 70 else text[:67] + "..."


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hands out a mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != self.mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self.mutant.path, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(self.mutant.path), "exec"), module.__dict__)


class _Session:
    """A pytest plugin: few cases without shrinking, only the chosen tests, the quickest first, timed and followed."""

    def __init__(self, durations: dict[str, float], chosen: set[str] | None = None, follow: Any = None) -> None:
        self.durations, self.chosen, self.follow = durations, chosen, follow

    def pytest_sessionstart(self) -> None:
        settings.register_profile(
            "mutation", deadline=None, max_examples=40, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate),
        )  # fmt: skip
        settings.load_profile("mutation")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.chosen is not None:
            items[:] = [item for item in items if item.nodeid in self.chosen]
            items.sort(key=lambda item: self.durations.get(item.nodeid, 0.0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        if self.follow is not None:
            self.follow.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            if self.follow is not None:
                self.follow.switch_context("")
                self.durations[item.nodeid] = time.process_time() - start


def _pytest(arguments: list[str], plugin: _Session) -> int:
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    return int(
        pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", *arguments], [plugin])
    )


def baseline() -> tuple[dict[str, float], dict[str, set[str]]]:
    """How long each test takes, and which tests reach each line, as `path:line`; in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        child = os.fork()
        if not child:
            import coverage  # noqa: PLC0415  Only here: it must not follow the mutants.

            follow = coverage.Coverage(data_file=None, source=[str(SOURCE / "setpoint")], config_file=False)
            follow.start()
            durations: dict[str, float] = {}
            code = _pytest(TESTS, _Session(durations, follow=follow))
            follow.stop()
            data = follow.get_data()
            reached = {
                f"{path}:{line}": [name for name in names if name]
                for path in data.measured_files()
                for line, names in data.contexts_by_lineno(path).items()
            }
            answer.write_text(json.dumps([code, durations, reached]))
            os._exit(0)
        os.waitpid(child, 0)
        code, durations, reached = json.loads(answer.read_text())
        assert code == 0, f"the tests fail without any change: pytest ended with {code}"
        return durations, {line: set(names) for line, names in reached.items()}


def start(mutant: Mutant, durations: dict[str, float], chosen: set[str]) -> int:
    """A process in which the tests meet the mutant; it ends with 0 if none of them notices."""
    child = os.fork()
    if child:
        return child
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    sys.meta_path.insert(0, _Finder(mutant))
    files = sorted({name.split("::")[0] for name in chosen})
    code = _pytest(files, _Session(durations, chosen))
    os._exit(code)


def judge(
    todo: list[Mutant], durations: dict[str, float], reached: dict[str, set[str]], until: float
) -> dict[Mutant, str]:
    """Each mutant's end; those not begun by `until` are left out."""
    running: dict[int, Mutant] = {}
    ends: dict[Mutant, str] = {}
    waiting = list(reversed(todo))
    while waiting or running:
        while waiting and len(running) < WORKERS and time.monotonic() < until:
            mutant = waiting.pop()
            chosen = reached.get(f"{mutant.path}:{mutant.line}") or set(durations)
            running[start(mutant, durations, chosen)] = mutant
        if not running:
            break
        child, status = os.wait()
        mutant = running.pop(child)
        ends[mutant] = ENDLESS if os.WIFSIGNALED(status) else KILLED if os.WEXITSTATUS(status) else SURVIVED
        if ends[mutant] == SURVIVED or len(ends) % 25 == 0:
            print(f"{len(ends)}/{len(todo)} {ends[mutant]}: {mutant.name}", flush=True)
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="how many mutants, drawn by --seed; 0 is all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--again", action="store_true", help="try only those that survived last time; writes nothing")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.nice(5)
    sys.path[:0] = [str(SOURCE), str(ROOT / "tests")]
    os.environ.update(CI="true", OMP_NUM_THREADS="1")
    for name in HEAVY:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)
    every: list[Mutant] = []
    messages = 0
    for path in FILES:
        found, left_out = mutants(path)
        every += found
        messages += left_out
    todo = random.Random(asked.seed).sample(every, min(asked.sample or len(every), len(every)))
    if asked.again:
        last = {one["mutant"] for one in json.loads((RESULTS / "mutation.json").read_text())["figures"]["survivors"]}
        todo = [
            mutant for mutant in every if mutant.name.partition(": ")[2] in {name.partition(": ")[2] for name in last}
        ]
    begin = time.monotonic()
    durations, reached = baseline()
    print(f"{len(durations)} tests in {sum(durations.values()):.0f} s; {len(todo)} of {len(every)} mutants", flush=True)
    ends = judge(todo, durations, reached, begin + 60 * asked.minutes)
    tally = Counter(ends.values())
    share = 1 - tally[SURVIVED] / max(len(ends), 1)
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, end in ends.items():
        by_file[str(mutant.path.relative_to(SOURCE / "setpoint"))][end] += 1
    survivors = sorted(mutant.name for mutant, end in ends.items() if end == SURVIVED)
    print(f"{share:.1%} of {len(ends)} killed: {dict(tally)}")
    if asked.again:
        print(*survivors, sep="\n")
        return
    explained = json.loads(EXPLAINED.read_text()) if EXPLAINED.exists() else {}
    write_result(
        "mutation",
        {
            "mutants": len(every), "left_out_messages": messages, "tried": len(ends), "seed": asked.seed,
            "sampled": len(ends) < len(every), "killed_share": round(share, 4), "tally": dict(tally),
            "seconds": round(time.monotonic() - begin), "tests": len(durations),
            "by_file": {name: dict(count) for name, count in sorted(by_file.items())},
            "survivors": [{"mutant": name, "why": explained.get(name, "")} for name in survivors],
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
