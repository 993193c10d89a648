"""Every call that changes a file made to fail once in turn: the old file or the new one, and one sentence.

    python -m benchmarks.faults.system_calls [--every N]

`system_calls.c` stands between Python, polars and libc. For each command it counts the calls to open, write, fsync,
rename, mkdir and ftruncate below the directory that it writes to. Then the command is run once for each of these
calls, in a process of its own, in which this call fails, with "no space left" and "input/output error" by turns. At the
end there must be the old file or the new one, to the byte, nothing beside it, one sentence on standard error and an
exit code other than 0. A run must be readable, or be resumed to the same parameters.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.figure  # noqa: F401  (before the forks)
import torch
from torch import nn

from benchmarks.common.harness import write_result
from benchmarks.faults.kills import ASK, end_of, write_table
from setpoint import cli
from setpoint.commands import fit as _fit
from setpoint.commands import predict as _predict
from setpoint.commands import report as _report
from setpoint.data import scan
from setpoint.errors import BadFile
from setpoint.run.artefact import load_run

LOADED = (_fit, _predict, _report)
SOURCE = Path(__file__).with_name("system_calls.c")
FILES = {"history.jsonl", "model.safetensors", "scores.safetensors", "setpoint.json"}


@dataclass(frozen=True)
class Command:
    """A command that writes below one directory, `there`; `old` files stand there before, or none."""

    arguments: tuple[str, ...]
    out: str
    old: bool = True

    @property
    def is_fit(self) -> bool:
        return self.arguments[0] == "fit"


FIT = ("fit", "{root}/table.csv", "--target", "label", "--ask", ASK, "--model", "mlp", "--solver", "weighted",
       "--epochs", "3", "--no-refit", "--quiet", "--out", "{there}/run")  # fmt: skip
PREDICT = ("predict", "{root}/run", "{root}/new.csv", "--quiet", "--out")
COMMANDS = {
    "fit": Command(FIT, "run", old=False),
    "fit --force": Command((*FIT, "--force"), "run"),
    "predict to CSV": Command((*PREDICT, "{there}/out.csv"), "out.csv"),
    "predict to CSV, new": Command((*PREDICT, "{there}/out.csv"), "out.csv", old=False),
    "predict to Parquet": Command((*PREDICT, "{there}/out.parquet"), "out.parquet"),
    "predict --stream to CSV": Command((*PREDICT, "{there}/out.csv", "--stream"), "out.csv"),
    "predict --stream to Parquet": Command((*PREDICT, "{there}/out.parquet", "--stream"), "out.parquet"),
    "report": Command(("report", "{root}/run", "--out", "{there}/page.html"), "page.html"),
    "report --png": Command(("report", "{root}/run", "--png", "--out", "{there}/page.html"), "page.png"),
}


def shim(place: Path) -> Path:
    """The library that lets calls fail, compiled."""
    library = place / "faults.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def run(root: Path, command: Command, there: Path, at: int, code: int) -> tuple[int, str, int]:
    """The exit code, standard error, and the number of calls, of a command whose call number `at` fails."""
    said, counted = root / "said", root / "counted"
    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            faults = ctypes.CDLL(None)
            faults.faults_failed.restype = ctypes.c_char_p
            arguments = [part.format(root=root, there=there) for part in command.arguments]
            scan.scan_table.__defaults__ = (30_000,)  # several chunks even of a small table
            faults.faults_arm(os.fsencode(there), at, code)
            ended = 70
            try:
                cli.main(arguments)
            except SystemExit as end:
                ended = int(end.code or 0)
            counted.write_text(f"{faults.faults_calls()} {faults.faults_failed().decode()}")
            os._exit(ended)
        finally:
            os._exit(71)
    return end_of(child), said.read_text(), int(counted.read_text().split()[0])


def judge(root: Path, command: Command, there: Path, fresh: Path, ended: int, said: str) -> str:
    """What a failed call led to, or what is wrong with that."""
    if ended and (said.count("\n") != 1 or not said.startswith("setpoint: ")):
        return f"WRONG: exit code {ended}, said {said!r}"
    if ended not in (0, 2):
        return f"WRONG: exit code {ended}"
    if command.is_fit:
        return judge_run(root, command, there / "run", fresh / "run", ended)
    left = sorted(path.name for path in there.iterdir())
    allowed = {command.out, "page.html"} if "report" in command.arguments[0] else {command.out}
    if not set(left) <= allowed:
        return f"WRONG: left behind {left}"
    states = []
    for name in sorted(allowed):
        now = (there / name).read_bytes() if (there / name).exists() else None
        new, old = (fresh / name).read_bytes() if (fresh / name).exists() else None, b"old" if command.old else None
        if now not in (new, old):
            return f"WRONG: {name} is neither the old file nor the new one"
        states.append("new" if now == new else "old")
    if ended == 0 and set(states) != {"new"}:
        return "WRONG: exit code 0, and the old file"
    return f"exit code {ended}, {' and '.join(dict.fromkeys(states))}"


def judge_run(root: Path, command: Command, there: Path, fresh: Path, ended: int) -> str:
    left = {path.name for path in there.iterdir()} if there.exists() else set()
    if not left <= {*FILES, "unfinished", ".whole"}:
        return f"WRONG: left behind {sorted(left)}"
    try:
        load_run(there)
        parameters = there / ".whole" / "model.safetensors"
        parameters = parameters if parameters.exists() else there / "model.safetensors"
        state = "new" if parameters.read_bytes() == (fresh / "model.safetensors").read_bytes() else "old"
        old = (root / "run" / "model.safetensors").read_bytes() if command.old else None
        if state == "old" and parameters.read_bytes() != old:
            return "WRONG: neither the old run nor the new one"
    except BadFile as cause:
        state = "unfinished" if "is unfinished" in str(cause) else "none" if "no run at" in str(cause) else "unreadable"
        if state == "unreadable" or command.old:
            return f"WRONG: {cause}"
    if ended == 0 and state != "new":
        return f"WRONG: exit code 0, and {state}"
    if (there / "unfinished" / "state.pt").exists():
        resume = Command(("fit", "--resume", "{there}/run", "--quiet"), "run")
        again, said, _ = run(root, resume, there.parent, 0, 0)
        if again or (there / "model.safetensors").read_bytes() != (fresh / "model.safetensors").read_bytes():
            return f"WRONG: resumed with exit code {again}, {said!r}"
        return f"exit code {ended}, {state}, resumed"
    return f"exit code {ended}, {state}"


def prepare(root: Path, command: Command, there: Path) -> None:
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir()
    if command.old and command.is_fit:
        shutil.copytree(root / "run", there / "run")
    elif command.old:
        for name in {command.out, *(["page.html"] if command.arguments[0] == "report" else [])}:
            (there / name).write_bytes(b"old")


def sweep(every: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every `every`-th call of each command made to fail, counted by what came of it."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        write_table(root / "table.csv", 400)
        text = (root / "table.csv").read_text().splitlines()
        (root / "new.csv").write_text("\n".join(line.rpartition(",")[0] for line in text) + "\n")
        fit = Command((*FIT, "--seed", "7"), "run")
        (root / "first").mkdir()
        assert run(root, fit, root / "first", 0, 0)[0] == 0
        (root / "first" / "run").rename(root / "run")
        for name, command in COMMANDS.items():
            there, fresh = root / "there", root / "fresh"
            prepare(root, command, there)
            ended, said, calls = run(root, command, there, 0, 0)
            assert ended == 0, said
            shutil.rmtree(fresh, ignore_errors=True)
            there.rename(fresh)
            found: Counter[str] = Counter()
            failing: Counter[str] = Counter()
            # Of a few calls, other ones for each command.
            for at in range(1 + len(figures) % min(every, calls), calls + 1, every):
                prepare(root, command, there)
                code = (errno.ENOSPC, errno.EIO)[at % 2]
                ended, said, _ = run(root, command, there, at, code)
                failing[(root / "counted").read_text().split()[-1]] += 1
                found[judge(root, command, there, fresh, ended, said)] += 1
            figures[name] = {"calls": calls, "made to fail": dict(failing), "found": dict(found)}
            tell(f"{name}: {figures[name]}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="let every N-th call fail only")
    parser.add_argument("--quick", action="store_true", help="write to a temporary folder")
    options = parser.parse_args()
    if "faults.so" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as place:
            preload = {**os.environ, "LD_PRELOAD": str(shim(Path(place)))}
            again = [sys.executable, "-m", "benchmarks.faults.system_calls", *sys.argv[1:]]
            raise SystemExit(subprocess.run(again, env=preload, check=False).returncode)
    torch.set_num_threads(1)
    torch.optim.Adam([nn.Parameter(torch.zeros(1))])  # what torch loads late is loaded before the forks
    figures = sweep(options.every, lambda line: print(line, flush=True))
    wrong = sum(n for row in figures.values() for what, n in row["found"].items() if what.startswith("WRONG"))
    made = sum(n for row in figures.values() for n in row["found"].values())
    print(f"{made} calls made to fail, {wrong} wrong")
    write_result("system_calls", {"made to fail": made, "wrong": wrong, **figures}, quick=options.quick)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
