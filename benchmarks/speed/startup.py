"""What it costs to start: imports as a multiple of `import torch`, and the seconds until help is on the screen
or ten rows are answered.

Every command runs in a process of its own, all of them in turn, so that whatever else the machine does falls on all
alike; the first round fills the disk cache and goes unused. All files are compiled, as `pip install` leaves them: the
first round compiles into a folder of its own, since a checkout may have no place for compiled files, or may not be
allowed to write them (`PYTHONDONTWRITEBYTECODE`).

    python -m benchmarks.speed.startup
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import setpoint as sp
from benchmarks.common.harness import seconds, write_result
from setpoint.run.artefact import save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table

IMPORTS = {
    "python": "pass",
    "torch": "import torch",
    "setpoint": "import setpoint",
    "setpoint and torch": "import setpoint, torch",
    "setpoint, ready to fit": "from setpoint import Batches, ask, calibrate, fit",
    "setpoint, every name": "from setpoint import *",
}
HELP = {
    "setpoint --help": ["--help"],
    "setpoint fit --help": ["fit", "--help"],
    "setpoint --version": ["--version"],
}


#: Kinds of models whose answers are timed, from the start of the command to its last row of ten.
ANSWERED = ("linear", "mlp", "trees", "auto")


def commands(place: Path) -> dict[str, list[str]]:
    """The commands that are timed, by name."""
    python = {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    answers = {
        f"setpoint predict, {kind}": ["predict", str(place / kind), str(place / "new.csv"), "--quiet"]
        for kind in ANSWERED
    }
    line = "from setpoint.cli import main; main()"
    return {**python, **{name: [sys.executable, "-c", line, *rest] for name, rest in {**HELP, **answers}.items()}}


def made_runs(place: Path) -> None:
    """Runs to answer with, and ten rows."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2000, 3))
    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x[:, 0] + draw.normal(size=2000) > 1})
    for kind in ANSWERED:
        save_run(place / kind, fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 5%"), Settings(model=kind)))
    frame.drop("y").head(10).write_csv(place / "new.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        made_runs(Path(folder))
        timed = commands(Path(folder))
        compiled = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        times: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(repeats + 1):
            for name, command in timed.items():
                once = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL, env=compiled)
                times[name].append(seconds(once))
    kept = {name: values[1:] for name, values in times.items()}
    median = {name: statistics.median(values) for name, values in kept.items()}
    ratios = {
        name: statistics.median(own / torch for own, torch in zip(kept[name], kept["torch"]))
        for name in IMPORTS
        if name not in ("python", "torch")
    }
    for name, value in median.items():
        of_torch = f"{ratios[name]:6.2f} x import torch" if name in ratios else ""
        print(f"{name:26s} {value:6.2f} s {of_torch}")
    figures = {
        "repeats": repeats,
        "median_seconds": {name: round(value, 3) for name, value in median.items()},
        "lowest_seconds": {name: round(min(values), 3) for name, values in kept.items()},
        "median_ratio_to_import_torch": {name: round(value, 3) for name, value in ratios.items()},
    }
    print(write_result("startup", figures))


if __name__ == "__main__":
    main()
