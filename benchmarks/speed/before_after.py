"""An earlier version and this one, timed in turns: start-up, kernels, training steps, fits and the command line.

Every probe runs in a process of its own, on one thread, with the source of either version: before, after, before,
after, and so on, so that whatever else the machine does falls on both alike. A figure is the median over the rounds of
the ratio after / before of two neighbours, in processor time and on the wall, with its quartiles; the first round
fills the caches and goes unused. A probe is slower if even the lower quartile of its ratios is above 1.1.

    python -m benchmarks.speed.before_after --before DIR      # DIR: a checkout of the earlier version

`--only starts` measures one group of probes anew; the rows of the other groups stay as they were.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common.harness import ROOT, load_figures, seconds, write_result
from benchmarks.speed.startup import IMPORTS

MOST = 1.1
SIDES = ("before", "after")
ROWS, COLUMNS = 1_000_000, 10
LINE = "from setpoint.cli import main; main()"
#: Each with code for `python -c` and further arguments.
STARTS: dict[str, list[str]] = {
    "import setpoint": [IMPORTS["setpoint"]],
    "setpoint --help": [LINE, "--help"],
    IMPORTS["setpoint, ready to fit"]: [IMPORTS["setpoint, ready to fit"]],
}
INSIDE = ("kernels", "steps", "fits")
COMMAND = f"setpoint fit, CSV of {ROWS:,} rows and {COLUMNS} columns"
Times = dict[str, list[float]]


def surroundings(source: Path, cache: Path) -> dict[str, str]:
    """One thread, the source of one version, and its bytecode outside of its checkout."""
    ours = {"PYTHONPATH": str(source / "src"), "PYTHONPYCACHEPREFIX": str(cache), "PYTHONWARNINGS": "ignore"}
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
    return {**os.environ, **ours, **dict.fromkeys(threads, "1")}


def busy() -> float:
    """The processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole(command: list[str], env: dict[str, str]) -> list[float]:
    """The processor and wall seconds of a process."""
    start = busy()
    wall = seconds(lambda: subprocess.run(command, check=True, env=env, cwd=ROOT, stdout=subprocess.DEVNULL))
    return [busy() - start, wall]


def starts(env: dict[str, str]) -> Times:
    return {name: whole([sys.executable, "-c", *rest], env) for name, rest in STARTS.items()}


def inside(probe: str, env: dict[str, str]) -> Times:
    command = [sys.executable, "-m", "benchmarks.speed.probes", probe]
    answer = subprocess.run(command, check=True, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    found: Times = json.loads(answer)
    return found


def million(path: Path) -> Path:
    """A CSV of normal features and a noisy linear label, one in seven positive."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    slope = draw.normal(size=COLUMNS) / COLUMNS**0.5
    label = (x @ slope + draw.normal(size=ROWS) > 1.5).astype(np.int8)
    named = {f"x{place}": x[:, place] for place in range(COLUMNS)}
    pl.DataFrame({**named, "label": label}).write_csv(path)
    return path


def command_line(table: Path, env: dict[str, str]) -> Times:
    out = str(table.parent / "run")
    options = ["--target", "label", "--ask", "minimize fnr where fpr <= 5%", "--out", out, "--force", "--quiet"]
    return {COMMAND: whole([sys.executable, "-c", LINE, "fit", str(table), *options], env)}


def row(name: str, times: dict[str, list[list[float]]]) -> dict[str, Any]:
    """The ratios of one probe from the times of every round on either side."""
    ratios = [
        [after / before for before, after in zip(*([one[clock] for one in times[side]] for side in SIDES))]
        for clock in (0, 1)
    ]
    low, middle, high = statistics.quantiles(ratios[0], n=4, method="inclusive")
    told = {side: statistics.median(one[0] for one in times[side]) for side in SIDES}
    print(f"{name:55s} {told['after']:9.4g} s {middle:6.3f} [{low:.3f}, {high:.3f}]", flush=True)
    return {
        "what": name,
        "rounds": len(ratios[0]),
        "seconds before": told["before"],
        "seconds after": told["after"],
        "ratio": round(middle, 3),
        "quartiles": [round(low, 3), round(high, 3)],
        "ratio on the wall": round(statistics.median(ratios[1]), 3),
        "slower": low > MOST,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the short probes")
    parser.add_argument("--long-rounds", type=int, default=3, help="rounds of the command line on a million rows")
    parser.add_argument("--only", choices=["starts", *INSIDE, "command"], help="measure this group of probes alone")
    asked = parser.parse_args()
    kept = load_figures("before_after").get("rows", []) if asked.only else []
    rows = {one["what"]: one for one in kept}
    with tempfile.TemporaryDirectory() as place:
        table = million(Path(place) / "million.csv")
        sources = {"before": asked.before.resolve(), "after": ROOT}
        envs = {side: surroundings(source, Path(place) / side) for side, source in sources.items()}
        versions = {
            side: subprocess.run(
                [sys.executable, "-c", "import setpoint; print(setpoint.__version__)"],
                check=True, env=env, stdout=subprocess.PIPE, text=True,
            ).stdout.strip()
            for side, env in envs.items()
        }  # fmt: skip
        groups: dict[str, tuple[Callable[[dict[str, str]], Times], int, int]] = {
            "starts": (starts, 1, asked.rounds),
            **{name: (partial(inside, name), 1, asked.rounds) for name in INSIDE},
            "command": (partial(command_line, table), 0, asked.long_rounds),
        }
        for probe, unused, rounds in [groups[asked.only]] if asked.only else groups.values():
            times: dict[str, dict[str, list[list[float]]]] = {}
            for turn in range(unused + rounds):
                for side in SIDES:
                    for name, found in probe(envs[side]).items():
                        if turn >= unused:
                            times.setdefault(name, {one: [] for one in SIDES})[side].append(found)
            rows |= {name: row(name, one) for name, one in times.items()}
    write_result("before_after", {"versions": versions, "most": MOST, "rows": list(rows.values())})


if __name__ == "__main__":
    main()
