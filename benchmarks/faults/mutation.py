"""Break the code on purpose, one small change at a time, and see whether a test notices.

python -m benchmarks.faults.mutation --sample 500

The changes are those of mutmut (`pip install '.[mutation]'`); changes within `raise` statements, that is of messages,
are left out. Each is tried in a forked process with the tests that reach its line, the quickest first, until one
fails. A change within a function that nothing calls before the tests begin is put into the imported package, after
the tests were collected once; any other has the package imported anew. Hypothesis draws the same 40 cases every time
and does not shrink.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop
from hypothesis import HealthCheck, Phase, settings

from benchmarks.common.harness import ROOT, load_figures, write_result
from benchmarks.faults.mutants import SOURCE, Mutant, mutants

FILES = [
    *sorted((SOURCE / "setpoint" / "measure").glob("*.py")),
    *sorted((SOURCE / "setpoint" / "problem").glob("*.py")),
    SOURCE / "setpoint" / "decide" / "cut.py",
    SOURCE / "setpoint" / "decide" / "by_rank.py",
]
TESTS = [
    "tests/measure", "tests/problem", "tests/decide/test_cut.py", "tests/decide/test_by_rank.py",
    "tests/solve/test_devices.py", "tests/solve/test_price.py",
    "tests/fuzz/test_found.py",
]  # fmt: skip
#: Imported once, before the forks. Nothing of setpoint itself, whose mutants are imported anew.
HEAVY = (
    "torch",
    "scipy.stats",
    "scipy.optimize",
    "scipy.sparse",
    "sklearn.metrics",
    "polars",
    "safetensors.torch",
)
WORKERS, CPU_SECONDS, KILLED, SURVIVED, ENDLESS = 2, 90, "killed", "survived", "killed: too slow"
EXPLAINED = Path(__file__).with_name("mutation_explained.json")


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
    plugins = [word for name in ("cacheprovider", "xdist", "cov", "anyio") for word in ("-p", f"no:{name}")]
    return int(pytest.main(["-q", "-x", "--assert=plain", *plugins, *arguments], [plugin]))


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
                f"{path}:{line}": names
                for path in data.measured_files()
                for line, names in data.contexts_by_lineno(path).items()
            }
            answer.write_text(json.dumps([code, durations, reached]))
            os._exit(0)
        os.waitpid(child, 0)
        code, durations, reached = json.loads(answer.read_text())
        assert code == 0, f"the tests fail without any change: pytest ended with {code}"
        return durations, {line: set(names) for line, names in reached.items()}


class _Forks(_Session):
    """Collects the tests once; then each mutant meets them in a fork, in which its functions have taken effect."""

    def __init__(self, durations: dict[str, float], judge: Callable[[Callable[[Mutant, set[str]], int]], None]) -> None:
        super().__init__(durations)
        self.judge = judge

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "the tests cannot be collected without any change"

        def start(mutant: Mutant, chosen: set[str]) -> int:
            child = os.fork()
            if child:
                return child
            _limit()
            try:
                mutant.take_effect(sys.modules[mutant.module])
            except BaseException:
                os._exit(0)  # Nothing was tried, so that nothing may be called killed.
            try:
                self.chosen = chosen
                self.pytest_collection_modifyitems(session.items)
                pytest_runtestloop(session)
            except BaseException:
                os._exit(1)
            os._exit(0)

        self.judge(start)
        return True


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))


def start_afresh(mutant: Mutant, chosen: set[str], durations: dict[str, float]) -> int:
    """A process in which the package is imported with the mutant in it; it ends with 0 if no test notices."""
    child = os.fork()
    if child:
        return child
    _limit()
    sys.meta_path.insert(0, _Finder(mutant))
    files = sorted({name.split("::")[0] for name in chosen})
    # No test left to run (5) is no test that noticed.
    os._exit(_pytest(files, _Session(durations, chosen)) in (1, 2))


class Judge:
    """Each mutant's end; those not begun by `until` have none."""

    def __init__(self, durations: dict[str, float], reached: dict[str, set[str]], until: float, report: Any) -> None:
        self.durations, self.reached, self.until, self.report = durations, reached, until, report
        self.ends: dict[Mutant, str] = {}

    def chosen(self, mutant: Mutant) -> set[str]:
        """The tests that reach the changed line, or its statement; all of them if it runs on import."""
        if mutant.function is None:
            return set(self.durations)
        at = self.reached.get(f"{mutant.path}:{mutant.line}", set())
        around = [self.reached.get(f"{mutant.path}:{line}", set()) for line in mutant.statement]
        return (at or set().union(*around)) - {""}

    def runs_early(self, mutant: Mutant) -> bool:
        """Whether the change may matter before the tests begin: on import, or while they are collected."""
        early = any("" in self.reached.get(f"{mutant.path}:{line}", ()) for line in mutant.statement)
        return mutant.function is None or early

    def run(self, todo: list[Mutant], start: Callable[[Mutant, set[str]], int]) -> None:
        running: dict[int, Mutant] = {}
        waiting = list(reversed(todo))
        while waiting or running:
            while waiting and len(running) < WORKERS and time.monotonic() < self.until:
                mutant = waiting.pop()
                if chosen := self.chosen(mutant):
                    running[start(mutant, chosen)] = mutant
                else:
                    self.end(mutant, SURVIVED)
            if not running:
                break
            child, status = os.wait()
            self.end(
                running.pop(child),
                ENDLESS if os.WIFSIGNALED(status) else KILLED if os.WEXITSTATUS(status) else SURVIVED,
            )

    def end(self, mutant: Mutant, how: str) -> None:
        self.ends[mutant] = how
        if how == SURVIVED or len(self.ends) % 25 == 0:
            print(f"{len(self.ends)} {how}: {mutant.name}", file=self.report, flush=True)


def _without_line(name: str) -> tuple[str, str]:
    """The file and the change: lines move when the code does."""
    return name.partition(":")[0], name.partition(": ")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="how many mutants, drawn by --seed; 0 is all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=180, help="after which it gives up, and writes nothing")
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
    left_out: Counter[str] = Counter()
    for path in FILES:
        found, without = mutants(path)
        every += found
        left_out += without
    todo = random.Random(asked.seed).sample(every, min(asked.sample or len(every), len(every)))
    if asked.again:
        last = {one["mutant"] for one in load_figures("mutation")["survivors"]}
        changes = {_without_line(name) for name in last}
        todo = [mutant for mutant in every if _without_line(mutant.name) in changes]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place, os.fdopen(os.dup(1), "w") as report:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = place
        durations, reached = baseline()
        counted = f"{len(durations)} tests in {sum(durations.values()):.0f} s; {len(todo)} of {len(every)} mutants"
        print(counted, file=report, flush=True)
        judge = Judge(durations, reached, begin + 60 * asked.minutes, report)
        early = [mutant for mutant in todo if judge.runs_early(mutant)]
        late = [mutant for mutant in todo if not judge.runs_early(mutant)]
        print(f"{len(early)} of them may matter before the tests begin", file=report, flush=True)
        judge.run(early, lambda mutant, chosen: start_afresh(mutant, chosen, durations))
        _pytest(TESTS, _Forks(durations, lambda start: judge.run(late, start)))
        os.dup2(report.fileno(), 1)
    ends = judge.ends
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
    if len(ends) < len(todo):
        print(f"out of time after {len(ends)} of {len(todo)}, which are no random sample: ask for fewer, or allow more")
        sys.exit(1)
    explained = json.loads(EXPLAINED.read_text()) if EXPLAINED.exists() else {}
    write_result(
        "mutation",
        {
            "mutants": len(every), "left_out_messages": left_out["messages"], "tried": len(ends), "seed": asked.seed,
            "sampled": len(ends) < len(every), "killed_share": round(share, 4), "tally": dict(tally),
            "seconds": round(time.monotonic() - begin), "tests": len(durations),
            "by_file": {name: dict(count) for name, count in sorted(by_file.items())},
            "survivors": [{"mutant": name, "why": explained.get(name, "")} for name in survivors],
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
