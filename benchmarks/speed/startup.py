"""What it costs to start: imports as a multiple of `import torch`, and the seconds until help is on the screen.

Every command runs in a process of its own, all of them in turn, so that whatever else the machine does falls on all
alike; the first round fills the disk cache and goes unused.

    python -m benchmarks.speed.startup
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

from benchmarks.common.harness import seconds, write_result

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


def commands() -> dict[str, list[str]]:
    """What is timed, by name."""
    python = {name: [sys.executable, "-c", code] for name, code in IMPORTS.items()}
    line = "from setpoint.cli import main; main()"
    return {**python, **{name: [sys.executable, "-c", line, *rest] for name, rest in HELP.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    times: dict[str, list[float]] = {name: [] for name in commands()}
    for _ in range(repeats + 1):
        for name, command in commands().items():
            times[name].append(seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)))  # noqa: B023
    kept = {name: values[1:] for name, values in times.items()}
    median = {name: statistics.median(values) for name, values in kept.items()}
    ratios = {
        name: statistics.median(own / torch for own, torch in zip(kept[name], kept["torch"]))
        for name in IMPORTS
        if name not in ("python", "torch")
    }
    for name, value in median.items():
        of_torch = f"{ratios[name]:6.2f} x import torch" if name in ratios else ""
        print(f"{name:24s} {value:6.2f} s {of_torch}")
    figures = {
        "repeats": repeats,
        "median_seconds": {name: round(value, 3) for name, value in median.items()},
        "lowest_seconds": {name: round(min(values), 3) for name, values in kept.items()},
        "median_ratio_to_import_torch": {name: round(value, 3) for name, value in ratios.items()},
    }
    print(write_result("startup", figures))


if __name__ == "__main__":
    main()
