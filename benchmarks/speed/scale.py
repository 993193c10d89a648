"""What large tables cost: time beside the barest loop, time as the table grows, and memory when it is streamed.

Everything that is compared is timed in one process, taking turns, so that whatever else the machine does falls on both
alike. Memory is the highest resident set (VmHWM) of a process of its own. The data are made on the spot and removed.

    python -m benchmarks.speed.scale             # writes a file of 4 GB for a while
    python -m benchmarks.speed.scale --quick     # a tenth of everything
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

import setpoint as sp
from benchmarks.common.harness import load_figures, seconds, write_result
from benchmarks.speed.bare_script import EPOCHS, bare_loop
from benchmarks.speed.spine import ASK, made
from setpoint.cli import command_line
from setpoint.data.scan import scan_table
from setpoint.run.settings import Settings
from setpoint.run.stream import MEMORY

PROBLEM = "minimize fnr where fpr <= 5%"
COLUMNS = 50


def our_fit(x: torch.Tensor, labels: torch.Tensor, batch_size: int, solver: Callable[[], sp.losses.Solver]) -> None:
    """`sp.fit` on the same tensors: judged after every epoch, the best kept, the threshold set."""
    aside = slice(0, len(x) // 20)
    sp.fit(
        torch.nn.Linear(x.shape[1], 1), PROBLEM, sp.Batches(x, labels, batch_size=batch_size, shuffle=True),
        sp.Batches(x[aside], labels[aside]), solver(), calibration=sp.Batches(x[aside], labels[aside]), epochs=EPOCHS,
    )  # fmt: skip


def both_clocks(work: Callable[[], object]) -> dict[str, float]:
    """Seconds on the wall, and of processor time, which what else runs on the machine hardly changes."""
    busy = time.process_time()
    wall = seconds(work)
    return {"wall": wall, "processor": time.process_time() - busy}


def beside_the_barest_loop(rows: int, repeats: int) -> list[dict[str, Any]]:
    """`sp.fit` as a multiple of the bare loop, for two solvers and two batch sizes."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows, COLUMNS, generator=draw)
    labels = (x[:, :5].sum(1) + torch.randn(rows, generator=draw) > 3).float()
    solvers = {"CrossEntropy": sp.CrossEntropy, "ImplicitThreshold": lambda: sp.ImplicitThreshold(sp.ask(PROBLEM))}
    bare_loop(x[:5000], labels[:5000], 512)
    found = []
    for batch_size in (512, 4096):
        for name, solver in solvers.items():
            pairs = [
                (both_clocks(lambda: bare_loop(x, labels, batch_size)),  # noqa: B023
                 both_clocks(lambda: our_fit(x, labels, batch_size, solver)))  # noqa: B023
                for _ in range(repeats)
            ]  # fmt: skip
            wall, busy = (
                round(statistics.median(ours[clock] / bare[clock] for bare, ours in pairs), 3)
                for clock in ("wall", "processor")
            )
            found.append(
                {
                    "rows": rows, "batch_size": batch_size, "solver": name, "ratio_wall": wall,
                    "ratio_processor": busy,
                    "bare_seconds": round(statistics.median(bare["processor"] for bare, _ in pairs), 2),
                    "target": 1.5, "met": busy <= 1.5,
                }
            )  # fmt: skip
            print(found[-1], flush=True)
    return found


def command(path: Path, out: Path, *options: str) -> None:
    """`setpoint fit`, within this process."""
    command_line()(["fit", str(path), *ASK, "--out", str(out), *options], standalone_mode=False)


def the_whole_command(place: Path, rows: int) -> dict[str, Any]:
    """Reading, splitting, both models and writing: beside bare loops, and on ten times less.

    One bare loop goes over all rows of the table, in batches as large as those of the command, as one would who sets
    nothing aside; two over the half of them that the command trains on, in such batches and in batches of 512.
    """
    small, large = place / "small.parquet", place / "large.parquet"
    made(rows // 10, small)
    made(rows, large)
    found: dict[str, Any] = {"rows": rows}
    x, labels = torch.randn(rows, COLUMNS), (torch.rand(rows) < 0.14).float()
    batch_size = Settings().settled(rows // 2).batch_size or rows
    found["batch_size"] = batch_size
    command(small, place / "run", "--epochs", "1")
    for solver in ("cross-entropy", "implicit"):
        options = ["--solver", solver, "--epochs", str(EPOCHS)]
        times = {
            "on a tenth": both_clocks(lambda: command(small, place / "run", *options)),  # noqa: B023
            "bare loop on all rows": both_clocks(lambda: bare_loop(x, labels, batch_size)),
            "on all": both_clocks(lambda: command(large, place / "run", *options)),  # noqa: B023
            "bare loop on its rows": both_clocks(lambda: bare_loop(x[: rows // 2], labels[: rows // 2], batch_size)),
            "bare loop on its rows, 512": both_clocks(lambda: bare_loop(x[: rows // 2], labels[: rows // 2], 512)),
        }
        found[solver] = {
            clock: {
                "seconds": {name: round(value[clock], 2) for name, value in times.items()},
                "ten times the rows": round(times["on all"][clock] / times["on a tenth"][clock], 2),
                **{
                    f"beside the {name}": round(times["on all"][clock] / times[name][clock], 2)
                    for name in times
                    if name.startswith("bare")
                },
            }
            for clock in ("wall", "processor")
        }
        print(solver, found[solver], flush=True)
    return found


def as_processes(place: Path, rows: int, repeats: int) -> dict[str, Any]:
    """`setpoint fit` and the barest script, each from the start of Python to its end, taking turns on one file."""
    path = place / "large.parquet"
    made(rows, path)
    batch_size = str(Settings().settled(rows // 2).batch_size)
    lines = {
        "bare": ["-m", "benchmarks.speed.bare_script", str(path), "label", str(place / "weights.pt"), batch_size],
        **{
            solver: ["-m", "setpoint", "fit", str(path), *ASK, "--out", str(place / "run"), "--solver", solver,
                     "--epochs", str(EPOCHS)]
            for solver in ("cross-entropy", "implicit")
        },
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(repeats):
        for name, line in lines.items():
            times[name].append(seconds(lambda: subprocess.run([sys.executable, *line], check=True)))  # noqa: B023
            print(name, round(times[name][-1], 2), flush=True)
    ratios = {
        solver: round(statistics.median(ours / bare for bare, ours in zip(times["bare"], times[solver])), 2)
        for solver in ("cross-entropy", "implicit")
    }
    return {
        "rows": rows, "batch_size": int(batch_size), "ratios": ratios, "target": 1.0,
        "seconds": {name: [round(one, 2) for one in found] for name, found in times.items()},
    }  # fmt: skip


def write_large(path: Path, size: int) -> None:
    """A Parquet or CSV file of about so many bytes, written piece by piece."""
    per_row = 185 if path.suffix == ".parquet" else 570
    rows = size // per_row
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for piece, first in enumerate(range(0, rows, 1_000_000)):
            made(min(1_000_000, rows - first), Path(folder) / f"{piece:05d}.parquet", seed=piece)
        pieces = pl.scan_parquet(sorted(Path(folder).glob("*.parquet")))
        pieces.sink_parquet(path) if path.suffix == ".parquet" else pieces.sink_csv(path)


def streamed(path: Path, out: Path, rows: int) -> dict[str, Any]:
    """Fit, predict and evaluate in chunks, each in a process of its own: seconds and the highest memory."""
    answers = out.with_name("answers.csv")
    tasks = {
        "fit": ["fit", str(path), *ASK, "--out", str(out), "--stream", "--epochs", "1", "--batch-size", "4096"],
        "predict": ["predict", str(out), str(path), "--stream", "--out", str(answers), "--quiet"],
        "evaluate": ["evaluate", str(out), str(path), "--stream", "--quiet"],
    }
    found: dict[str, Any] = {"file": f"{path.stat().st_size / 1e9:.2f} GB {path.suffix}", "rows": rows}
    for name, arguments in tasks.items():
        found[name] = in_a_process("command", json.dumps(arguments))
        found[name] |= {"target": "1 GB", "met": found[name]["peak_bytes"] <= 1e9}
        print(found["file"], name, found[name], flush=True)
    answers.unlink(missing_ok=True)
    return found


def scores(size: int, at_once: int = 1_000_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """So many scores and labels, the same ones every time, never all in memory."""
    for piece in range(size // at_once):
        draw = np.random.default_rng(piece)
        labels = draw.integers(0, 2, at_once)
        yield (draw.standard_normal(at_once, dtype=np.float32) + labels.astype(np.float32)), labels


def tallied(size: int) -> dict[str, Any]:
    """A threshold from so many scores by two looks at them, and, of a tenth, that it is the one of all at once."""

    def two_looks(size: int) -> tuple[sp.ScoreTally, sp.ScoreTally]:
        first = sp.ScoreTally()
        for part in scores(size):
            first.update(*part)
        second = first.around(PROBLEM, 0.95)
        for part in scores(size):
            second.update(*part)
        return first, second

    making = seconds(lambda: [None for _ in scores(size)])
    started = time.perf_counter()
    first, second = two_looks(size)
    whole = time.perf_counter() - started
    point = second.calibrate(PROBLEM, 0.95)
    peak = peak_bytes()
    some = size // 10
    joined, labels = (np.concatenate(part) for part in zip(*scores(some)))
    exact = sp.calibrate(PROBLEM, joined, labels, confidence=0.95)
    same = two_looks(some)[1].calibrate(PROBLEM, 0.95)
    return {
        "scores": size,
        "seconds": round(whole, 1),
        "seconds of making the scores, once": round(making, 1),
        "peak_bytes": peak,
        "kept one by one": len(second.values),
        "short of the best after one look, at most": first.doubt(PROBLEM, 0.95),
        "certified": point.certificate is not None,
        "scores compared": some,
        "same threshold": same.threshold == exact.threshold and same.rates == exact.rates,
    }


def peak_bytes() -> int:
    """The highest memory of this process so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


def in_a_process(kind: str, argument: str) -> dict[str, Any]:
    """What a process of its own finds."""
    line = [sys.executable, "-m", "benchmarks.speed.scale", "--child", kind, argument]
    told = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout
    answer: dict[str, Any] = json.loads(told.splitlines()[-1])
    return answer


def child(kind: str, argument: str) -> dict[str, Any]:
    if kind == "tally":
        return tallied(int(argument))
    spent = seconds(lambda: command_line()(json.loads(argument), standalone_mode=False))
    return {"seconds": round(spent, 1), "peak_bytes": peak_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--place", help="where to keep the large files for another run; if not given they are removed")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="some of: parquet, csv, tally, tensors, command, processes")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(*given.child)))
        return
    torch.set_num_threads(1)
    # What is written down is the command for all parts, whichever were asked for.
    del sys.argv[1:]
    tenth = 10 if given.quick else 1

    def stream(ending: str, size: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(given.place or folder) / f"large{ending}"
            if not path.exists():
                write_large(path, size // tenth)
            return streamed(path, Path(folder) / "run", scan_table(path).rows)

    def whole() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            return the_whole_command(Path(folder), 1_000_000 // tenth)

    def processes() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            return as_processes(Path(folder), 1_000_000 // tenth, max(3, given.repeats))

    parts: dict[str, Callable[[], Any]] = {
        "parquet": lambda: stream(".parquet", 4_000_000_000),
        "csv": lambda: stream(".csv", 1_000_000_000),
        "tally": lambda: in_a_process("tally", str(100_000_000 // tenth)),
        "tensors": lambda: beside_the_barest_loop(1_000_000 // tenth, given.repeats),
        "command": whole,
        "processes": processes,
    }
    for name in given.only or parts:
        found = parts[name]()
        print(name, found, flush=True)
        # Each part is kept as soon as it is there; the others stay as they were.
        figures = load_figures("scale") | {"stated_bytes": MEMORY, name: {"rough": given.quick, "found": found}}
        print(write_result("scale", figures))


if __name__ == "__main__":
    main()
