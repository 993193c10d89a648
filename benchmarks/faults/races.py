"""Two runs of `setpoint fit` into one directory, started at random offsets: one must win, and the run must be its own.

    python -m benchmarks.faults.races [--races N] [--seed S]

The second process starts at a moment drawn from the time that a fit takes, every other time from its end, when the run
is moved into place. Three kinds: two new runs; two processes that resume one killed run; two that replace an earlier
run with --force, where both may succeed one after the other. In every race the run that is there at the end must pass
its hashes, hold nothing else, and equal, to the byte, the one that a winner writes when it is alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.common.harness import write_result
from benchmarks.faults.kills import ASK, end_of, write_table
from setpoint import cli
from setpoint.commands import fit as _loaded_before_the_forks  # noqa: F401
from setpoint.errors import BadFile
from setpoint.run.artefact import load_run, load_scores

#: What the loser may be told.
REFUSALS = {
    "the lock": "is being written to by process",
    "a run is there": "holds an earlier run",
    "nothing to resume": "no unfinished run at",
}
FILES = ["history.jsonl", "model.safetensors", "scores.safetensors", "setpoint.json"]


def start(root: Path, *arguments: str, after: float = 0.0) -> int:
    """The id of a process that runs a command; what it says on standard error goes to a file named by that id."""
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(root / f"said-{os.getpid()}", os.O_WRONLY | os.O_CREAT), 2)
        time.sleep(after)
        cli.main(list(arguments))
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    finally:
        os._exit(70)


def fit(root: Path, out: Path, seed: int, *options: str) -> tuple[str, ...]:
    """A quick fit of some ten states."""
    how = ("--model", "mlp", "--solver", "weighted", "--epochs", "10", "--no-refit", "--checkpoint-seconds", "0.01")
    table = ("fit", str(root / "table.csv"), "--target", "label", "--ask", ASK)
    return (*table, *how, "--seed", str(seed), "--out", str(out), "--quiet", *options)


def content(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes() + (run / "history.jsonl").read_bytes()


def killed_run(root: Path, run: Path) -> None:
    """An unfinished run of seed 1."""
    while not (run / "unfinished" / "state.pt").exists():
        shutil.rmtree(run, ignore_errors=True)
        child = start(root, *fit(root, run, 1))
        while not (run / "unfinished" / "state.pt").exists() and not (run / "setpoint.json").exists():
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        end_of(child)


def race(root: Path, kind: str, alone: dict[int, Path], after: float) -> dict[str, Any]:
    """Start two; what became of them and of the run, and what is wrong with that, if anything."""
    run = root / "run"
    shutil.rmtree(run, ignore_errors=True)
    commands = [fit(root, run, seed, *(["--force"] if kind == "force" else [])) for seed in (1, 2)]
    if kind == "force":
        shutil.copytree(alone[3], run)
    if kind == "resume":
        killed_run(root, run)
        commands = [("fit", "--resume", str(run), "--quiet")] * 2
    children = [start(root, *commands[0]), start(root, *commands[1], after=after)]
    ends = [end_of(child) for child in children]
    said = [(root / f"said-{child}").read_text() for child in children]
    wrong = []
    winners = [1 if kind == "resume" else seed for seed, end in zip((1, 2), ends) if end == 0]
    if not winners or (len(winners) == 2 and kind != "force"):
        wrong.append(f"{len(winners)} of two succeeded")
    refusals = []
    for end, sentence in zip(ends, said):
        if end:
            known = [name for name, words in REFUSALS.items() if words in sentence]
            refusals.append(known[0] if known and sentence.count("\n") == 1 and end == 2 else "something else")
            if refusals[-1] == "something else":
                wrong.append(f"exit code {end}: {sentence!r}")
    try:
        load_run(run)
        load_scores(run)
        if content(run) not in [content(alone[seed]) for seed in winners]:
            wrong.append("the run is none that a winner writes alone")
        if sorted(os.listdir(run)) != FILES:
            wrong.append(f"left behind: {sorted(os.listdir(run))}")
    except (BadFile, OSError) as cause:
        wrong.append(f"no run to read: {cause}")
    return {"successes": len(winners), "refusals": refusals, "wrong": wrong}


def race_all(races: dict[str, int], draw: random.Random, tell: Callable[[str], None]) -> dict[str, Any]:
    """So many races of each kind, counted."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        write_table(root / "table.csv", 800)
        alone = {seed: root / f"alone-{seed}" for seed in (1, 2, 3)}
        for seed, run in alone.items():
            began = time.perf_counter()
            assert end_of(start(root, *fit(root, run, seed))) == 0
            seconds = time.perf_counter() - began
        for kind, number in races.items():
            successes: Counter[str] = Counter()
            refusals: Counter[str] = Counter()
            wrong: list[str] = []
            for place in range(number):
                low = 0.8 if place % 2 else 0.0
                found = race(root, kind, alone, draw.uniform(low, 1.2) * seconds)
                successes[str(found["successes"])] += 1
                refusals.update(found["refusals"])
                wrong += found["wrong"]
            figures[kind] = {
                "races": number, "successes": dict(successes), "refused by": dict(refusals), "wrong": len(wrong),
                "examples of wrong": wrong[:5],
            }  # fmt: skip
            tell(f"{kind}: {json.dumps(figures[kind])}")
    return {"seconds of one fit": seconds, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--races", type=int, default=200, help="of two new runs; a fifth as many of the other kinds")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments")
    parser.add_argument("--quick", action="store_true", help="write to a temporary folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.optim.Adam([nn.Parameter(torch.zeros(1))])  # what torch loads late is loaded before the forks
    others = max(1, options.races // 5)
    races = {"new": options.races, "resume": others, "force": others}
    figures = race_all(races, random.Random(options.seed), lambda line: print(line, flush=True))
    write_result("races", figures, quick=options.quick)
    if any(figures[kind]["wrong"] for kind in races):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
