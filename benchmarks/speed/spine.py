"""Where the time of `setpoint fit` goes: the whole command on adult, ijcnn1 and a made million of rows, profiled.

Each case runs three times in a process of its own: once for the imports, once on the clock, once under cProfile, whose
own cost falls on Python calls and not on arithmetic. The dearest functions by their own time are kept, with their
cumulative time beside it. Times are of the processor, which other work on the machine hardly changes, and on the wall.

    python -m benchmarks.speed.spine --name before --data DIR      # on the code of before, PYTHONPATH set to its src
    python -m benchmarks.speed.spine --name after --data DIR
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common.data import load_table
from benchmarks.common.harness import seconds, write_result
from setpoint.cli import command_line

#: What is asked of each table: its name and the options of `setpoint fit`.
ASK = ["--target", "label", "--ask", "minimize fnr where fpr <= 5%", "--force", "--quiet"]
CASES: dict[str, tuple[str, list[str]]] = {
    "adult, default": ("adult", []),
    "adult, implicit, 5 epochs": ("adult", ["--solver", "implicit", "--epochs", "5"]),
    "ijcnn1, default": ("ijcnn1", []),
    "ijcnn1, implicit, 5 epochs": ("ijcnn1", ["--solver", "implicit", "--epochs", "5"]),
    "a million rows, implicit, 5 epochs": ("million", ["--solver", "implicit", "--epochs", "5"]),
}
SHOWN = 8


def made(rows: int, path: Path, columns: int = 50, seed: int = 0) -> None:
    """A table of normal features and a noisy linear label, one in seven positive."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns)).astype(np.float32)
    slope = draw.normal(size=columns).astype(np.float32) / columns**0.5
    label = (x @ slope + draw.normal(size=rows).astype(np.float32) > 1.5).astype(np.int8)
    named = {f"x{place}": x[:, place] for place in range(columns)}
    pl.DataFrame({**named, "label": label}).write_parquet(path)


def table(name: str, folder: str, place: Path) -> Path:
    """The file of a case, written on first use."""
    path = place / f"{name}.parquet"
    if not path.exists():
        if name == "million":
            made(1_000_000, path)
        else:
            x, y = load_table(name, folder)
            pl.DataFrame({**{f"x{i}": x[:, i] for i in range(x.shape[1])}, "label": y.astype(np.int8)}).write_parquet(
                path
            )
    return path


def one(path: str, out: str, options: list[str]) -> dict[str, Any]:
    """A case on the clock and under the profiler."""

    def command() -> None:
        command_line()(["fit", path, *ASK, "--out", out, *options], standalone_mode=False)

    command()
    busy = time.process_time()
    wall = seconds(command)
    busy = time.process_time() - busy
    profile = cProfile.Profile(time.process_time)
    profile.runcall(command)
    stats = pstats.Stats(profile)
    rows = [
        {
            "function": f"{'/'.join(Path(file).parts[-2:])}:{name}",
            "calls": calls,
            "own": round(own, 3),
            "cumulative": round(cumulative, 3),
        }
        for (file, _, name), (_, calls, own, cumulative, _) in stats.stats.items()  # type: ignore[attr-defined]
    ]
    ours = [row for row in rows if "setpoint" in row["function"] or row["own"] > 0.01 * busy]
    return {
        "seconds": round(busy, 3),
        "seconds on the wall": round(wall, 3),
        "seconds under the profiler": round(stats.total_tt, 3),  # type: ignore[attr-defined]
        "own time": sorted(ours, key=lambda row: -row["own"])[:SHOWN],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--name", default="after", help="before or after a change; the end of the file's name")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(one(given.case[0], given.case[1], json.loads(given.case[2]))))
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, (data, options) in CASES.items():
            path = table(data, given.data, place)
            case = [str(path), str(place / "run"), json.dumps(options)]
            command = [sys.executable, "-m", "benchmarks.speed.spine", "--case", *case]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name] = json.loads(told.splitlines()[-1])
            print(f"{name:40s} {found[name]['seconds']:7.2f} s", flush=True)
    print(write_result(f"spine_{given.name}", found))


if __name__ == "__main__":
    main()
