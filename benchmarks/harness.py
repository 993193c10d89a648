"""What every benchmark needs: timing, rows that are not run twice, and figures written down with the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch

RESULTS = Path(__file__).parent / "results"
#: Where `--quick` writes, so that rough figures never stand beside real ones.
QUICK_RESULTS = Path(tempfile.gettempdir()) / "setpoint-quick"


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(work: Callable[[], object], yardstick: Callable[[], object], repeats: int = 11) -> float:
    """The time of `work` as a multiple of that of `yardstick`: the median over `repeats` neighbouring calls.

    The two take turns, so that whatever else the machine does falls on both alike. One call of each goes unused.
    """
    work(), yardstick()
    return statistics.median(seconds(work) / seconds(yardstick) for _ in range(repeats))


def finished(path: Path) -> dict[str, dict[str, Any]]:
    """The rows that are written down, by key; a line cut off by a crash is not one."""
    rows = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[row["key"]] = row
    return rows


class Journal:
    """The finished rows of a study, a json line each in `results/NAME.jsonl`: what is written is not run again."""

    def __init__(self, name: str, quick: bool = False) -> None:
        folder = results_folder(quick)
        folder.mkdir(exist_ok=True)
        self.path = folder / f"{name}.jsonl"
        if quick:
            # Rows of another version may lie there, and new ones take no time.
            self.path.unlink(missing_ok=True)
        self.rows = finished(self.path)

    def __contains__(self, key: str) -> bool:
        return key in self.rows

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self.rows[key]

    def add(self, key: str, row: dict[str, Any]) -> dict[str, Any]:
        """Write one row, whole, before going on."""
        self.rows[key] = {"key": key, **row, "torch": torch.__version__}
        with self.path.open("a") as file:
            file.write(json.dumps(_short(self.rows[key])) + "\n")
        return self.rows[key]

    def row(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The row of this key, made if it is not there yet."""
        return self.rows[key] if key in self.rows else self.add(key, make())


def results_folder(quick: bool) -> Path:
    return QUICK_RESULTS if quick else RESULTS


def without_folders(given: list[str]) -> list[str]:
    """The arguments of a command but for the folders of this machine."""
    told = iter(given)
    return [one for one in told if one not in ("--data", "--cache", "--fashion") or not next(told, "")]


def _short(value: Any) -> Any:
    """Seven digits are enough for a rate."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list) else value


def write_result(name: str, payload: dict[str, Any], quick: bool = False) -> Path:
    """Write `benchmarks/results/NAME.json`: the figures, the command that makes them, versions and machine."""
    result = {
        "command": " ".join(["python -m", f"benchmarks.{name}", *without_folders(sys.argv[1:])]),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
        },
        "machine": {
            "platform": f"{platform.system()} {platform.machine()}",
            "cpu_count": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        },
        "figures": _short(payload),
    }
    results_folder(quick).mkdir(exist_ok=True)
    path = results_folder(quick) / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path
