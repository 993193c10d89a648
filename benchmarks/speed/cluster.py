"""Tables on Dask workers: equal to one machine bit for bit, 10^8 scores, a table ten times the memory of one worker.

    python -m benchmarks.speed.cluster                    # all parts
    python -m benchmarks.speed.cluster --part equal       # 1 machine, 2 and 4 workers, and 2 of which one is killed
    python -m benchmarks.speed.cluster --part scores      # 10^8 scores calibrated by 2 and 4 workers
    python -m benchmarks.speed.cluster --part memory      # a table of --gigabytes, workers of a tenth of that

Every figure but the times is exact. Tables are made here; that of `memory` needs its size in the temporary directory.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import distributed
import numpy as np
import polars as pl
import torch

import setpoint as sp
from benchmarks.common.harness import load_figures, result_path, write_result
from setpoint.data.partitions import DaskWorkers, workers_at
from setpoint.data.scan import Chunk, Scan, scan_table
from setpoint.decide.tally import ScoreTally
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.run.table import TableRun

PARTS = ("equal", "scores", "memory")
ASK = sp.ask("minimize fnr where fpr <= 1%")
COLUMNS = 20
#: Characters of the words that make a table large.
WORD = 2_000
#: Rows of a group of such a table.
GROUP = 1_250
SETTINGS = Settings(solver="sums", confidence=0.95)


def rows_of(rows: int, seed: int) -> pl.DataFrame:
    """Rows of twenty numbers and a word, of which some decide the target."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, COLUMNS))
    word = draw.choice(["red", "green", "blue"], rows)
    y = x[:, :5].sum(1) + (word == "red") + draw.logistic(size=rows) > 3
    return pl.DataFrame({f"x{k}": x[:, k] for k in range(COLUMNS)}).with_columns(word=pl.Series(word), y=pl.Series(y))


def made(place: Path, rows: int, each: int = 500_000) -> list[Path]:
    """Parquet files with so many rows in all."""
    paths = []
    for number, first in enumerate(range(0, rows, each)):
        paths.append(place / f"{number:05d}.parquet")
        rows_of(min(each, rows - first), number).write_parquet(paths[-1], compression="uncompressed")
    return paths


def told(run: TableRun) -> str:
    """A hash of the model, the schema, the threshold, the certificate and the counts of a run."""
    state = run.chosen.trained.model.state_dict()
    found = hashlib.sha256(repr((run.schema.to_dict(), run.chosen.point.to_dict(), run.sizes)).encode())
    for name, value in state.items():
        found.update(name.encode() + value.numpy().tobytes())
    return found.hexdigest()


@contextmanager
def a_worker_killed(workers: DaskWorkers, after: float) -> Iterator[list[int]]:
    """Kill one worker process some seconds after the work has begun."""
    killed: list[int] = []

    def kill() -> None:
        killed.append(next(iter(workers.client.run(os.getpid).values())))
        os.kill(killed[0], signal.SIGKILL)

    timer = threading.Timer(after, kill)
    timer.start()
    try:
        yield killed
    finally:
        timer.cancel()
        timer.join()


def equal(rows: int) -> dict[str, Any]:
    """The run of one machine beside those of workers."""
    with tempfile.TemporaryDirectory() as place:
        paths = made(Path(place), rows, rows // 4)
        scan = scan_table(paths, 2_000_000)
        start = time.perf_counter()
        first = fit_stream(scan, "y", ASK, SETTINGS)
        found: dict[str, Any] = {
            "rows": rows, "chunks": len(scan.chunks), "threshold": repr(first.chosen.point.threshold),
            "certificate": str(first.chosen.point.certificate), "one machine, seconds": time.perf_counter() - start,
        }  # fmt: skip
        for number, kills in ((2, False), (4, False), (2, True)):
            with workers_at(str(number)) as scan.workers:
                start = time.perf_counter()
                if kills:
                    with a_worker_killed(scan.workers, 1.0) as killed:
                        run = fit_stream(scan, "y", ASK, SETTINGS)
                else:
                    run, killed = fit_stream(scan, "y", ASK, SETTINGS), []
                name = f"{number} workers{', one killed' if kills else ''}"
                same = {"equal": told(run) == told(first), "seconds": time.perf_counter() - start}
                found[name] = {**same, **({"killed": len(killed)} if kills else {})}
            scan.workers = None
            print(name, found[name], flush=True)
    return found


class Drawn(Scan):
    """A table of scores that each chunk draws for itself."""

    def __init__(self, rows: int, each: int) -> None:
        self.paths, self.schema = [], pl.Schema({"score": pl.Float64(), "label": pl.Int8()})
        self.chunks = [Chunk(first, min(each, rows - first)) for first in range(0, rows, each)]

    def read(self, chunk: Chunk) -> pl.DataFrame:
        draw = np.random.default_rng([7, chunk.first])
        label = (draw.random(chunk.rows) < 0.1).astype(np.int8)
        # Rounded, so that there are ties.
        score = np.round(draw.normal(size=chunk.rows) + 2 * label, 6)
        return pl.DataFrame({"score": score, "label": label})


def first_tally(chunk: Chunk, frame: pl.DataFrame) -> ScoreTally:
    return ScoreTally().update(frame["score"].to_numpy(), frame["label"].to_numpy())


class SecondTally:
    """The second look, which can be sent to another process."""

    def __init__(self, windows: np.ndarray) -> None:
        self.windows = windows

    def __call__(self, chunk: Chunk, frame: pl.DataFrame) -> ScoreTally:
        return ScoreTally(self.windows.copy()).update(frame["score"].to_numpy(), frame["label"].to_numpy())


def merged(tallies: Iterator[ScoreTally]) -> ScoreTally:
    found = next(tallies)
    for tally in tallies:
        found.merge(tally)
    return found


def calibrated(scan: Scan) -> sp.OperatingPoint:
    """The certified threshold of all scores, in two looks."""
    closer = merged(scan.map(first_tally)).around(ASK, 0.95)
    return merged(scan.map(SecondTally(closer.windows))).calibrate(ASK, 0.95)


def scores(rows: int) -> dict[str, Any]:
    """Scores calibrated by workers, and the rates at their threshold counted by numpy alone."""
    scan = Drawn(rows, 1_000_000)
    found: dict[str, Any] = {"scores": rows}
    points = []
    for number in (2, 4):
        start = time.perf_counter()
        with workers_at(str(number)) as scan.workers:
            # Every worker has loaded what it needs.
            scan.workers.client.run(first_tally, *next(scan.frames()))
            up = time.perf_counter()
            points.append(calibrated(scan))
            found[f"{number} workers, seconds"] = time.perf_counter() - up
        scan.workers = None
        found[f"start of {number} workers, seconds"] = up - start
    start = time.perf_counter()
    points.append(calibrated(scan))
    found["one machine, seconds"] = time.perf_counter() - start
    point = points[-1]
    counts = np.zeros(4, dtype=np.int64)
    for frame in scan:
        above, label = frame["score"].to_numpy() > point.threshold, frame["label"].to_numpy() > 0
        counts += [(above & label).sum(), (above & ~label).sum(), (~above & label).sum(), (~above & ~label).sum()]
    tp, fp, fn, tn = counts.tolist()
    found |= {
        "points equal": all(one.to_dict() == point.to_dict() for one in points),
        "threshold": repr(point.threshold), "certificate": str(point.certificate),
        "rates as numpy counts them": point.rates["fpr"] == fp / (fp + tn) and point.rates["fnr"] == fn / (fn + tp),
        "peak memory of this process, MB": _peak(),
    }  # fmt: skip
    print(found, flush=True)
    return found


def long_words(place: Path, rows: int, each: int = 50_000) -> int:
    """Parquet files with the columns of `rows_of` and three words of 2,000 characters; their size in bytes.

    Long words, since they make a large table of few numbers, which is trained on in minutes. Each word is written out
    in every row (pyarrow, without dictionaries), as it then stands in memory. Parquet is read by whole groups of rows,
    so that a worker needs the memory of a group or two beside that of the packages (300 MB with PyTorch).
    """
    draw = np.random.default_rng(0)
    known = [["".join(draw.choice(list("abcdefgh"), WORD)) for _ in range(8)] for _ in range(3)]
    size = 0
    for number, first in enumerate(range(0, rows, each)):
        frame = rows_of(min(each, rows - first), number)
        words = {f"note {k}": draw.choice(known[k], frame.height) for k in range(3)}
        path = place / f"{number:05d}.parquet"
        frame.with_columns(**{name: pl.Series(word) for name, word in words.items()}).write_parquet(
            path,
            use_pyarrow=True,
            compression="uncompressed",
            row_group_size=GROUP,
            pyarrow_options={"use_dictionary": False},
        )
        size += path.stat().st_size
    return size


def _peak() -> int:
    """The largest memory that this process has held, in MB; a new process forgets what its parent held."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def memory(gigabytes: float, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Every command on a folder of Parquet files of so many gigabytes, by two workers of a tenth of that.

    A worker that came beyond its limit would be ended by its nanny, and another process would take its place. `keep` is
    given the figures after every command.
    """
    rows = int(gigabytes * 1e9 / (8 * COLUMNS + 3 * (WORD + 4)))
    limit = int(gigabytes * 1e8)
    with tempfile.TemporaryDirectory() as place:
        table, run, trees = Path(place) / "table", str(Path(place) / "run"), str(Path(place) / "trees")
        table.mkdir()
        size = long_words(table, rows)
        found: dict[str, Any] = {
            "rows": rows, "files, GB": size / 1e9, "limit of a worker, MB": limit / 1e6,
            "times the memory of a worker": size / limit,
        }  # fmt: skip
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=":0", silence_logs=40
        )
        ask = ["--target", "y", "--ask", str(ASK), "--confidence", "0.95"]
        with cluster, distributed.Client(cluster) as client:
            first = sorted(client.run(os.getpid).values())
            for name, command in {
                "fit": ["fit", str(table), *ask, "--out", run],
                "predict": [
                    "predict",
                    run,
                    str(table),
                    "--ignore-extra",
                    "--out",
                    str(Path(place) / "answers.parquet"),
                ],
                "evaluate": ["evaluate", run, str(table)],
                # Before the rows are calibrated on: a watch does not count those.
                "watch": ["watch", run, str(table)],
                "calibrate": ["calibrate", run, str(table), "--confidence", "0.95"],
                "fit, trees": ["fit", str(table), *ask, "--model", "trees", "--out", trees],
                "evaluate, trees": ["evaluate", trees, str(table)],
            }.items():
                start = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-m", "setpoint", *command, "--workers", cluster.scheduler_address],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                found[name] = {
                    "exit code": done.returncode, "seconds": time.perf_counter() - start,
                    "peaks of the workers, MB": list(client.run(_peak).values()),
                }  # fmt: skip
                found["workers that were ended"] = len(set(first) - set(client.run(os.getpid).values()))
                print(name, found[name], done.stdout, done.stderr, flush=True)
                if name == "predict" and done.returncode == 0:
                    answers = pl.scan_parquet(Path(place) / "answers.parquet").select(pl.len()).collect().item()
                    found["rows answered"] = int(answers)
                keep(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the table of `equal`")
    parser.add_argument("--scores", type=int, default=100_000_000)
    parser.add_argument("--gigabytes", type=float, default=6.5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    work = {
        "equal": lambda: equal(options.rows), "scores": lambda: scores(options.scores),
        "memory": lambda: memory(options.gigabytes, partial(keep, "memory")),
    }  # fmt: skip
    for part in options.part or PARTS:
        keep(part, work[part]())


def keep(part: str, found: dict[str, Any]) -> None:
    """Put the figures of a part in the place of those that the summary has."""
    kept = {**(load_figures("cluster") if result_path("cluster").is_file() else {}), part: found}
    write_result("cluster", {name: kept[name] for name in PARTS if name in kept})


if __name__ == "__main__":
    main()
