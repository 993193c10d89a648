"""What every benchmark needs: timing two things side by side, and writing down the figures with the machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch

RESULTS = Path(__file__).parent / "results"


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


def write_result(name: str, payload: dict[str, Any]) -> Path:
    """Write `benchmarks/results/NAME.json`: the figures, the command that makes them, versions and machine."""
    result = {
        "command": " ".join(["python -m", f"benchmarks.{name}", *sys.argv[1:]]),
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
        "figures": payload,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path
