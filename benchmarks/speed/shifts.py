"""What it costs to calibrate shifts of many classes, as a multiple of one sort of all scores.

    python -m benchmarks.speed.shifts [--rows 1000000] [--classes 20] [--quick]

Processor time on one thread, the median of interleaved repetitions; the scores are drawn at random.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import setpoint as sp
from benchmarks.common.harness import write_result

ASKS = (
    "maximize macro recall",
    "minimize error where recall of class 0 >= 80% and recall of class 1 >= 80%",
    "maximize recall of class 3 where precision of class 3 >= 30%",
)


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, repeats = (20_000, 1) if options.quick else (options.rows, options.repeats)
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(options.classes, (rows,), generator=draw)
    scores = torch.randn(rows, options.classes, generator=draw)
    scores[torch.arange(rows), labels] += 1.5
    found: dict[str, list[tuple[float, float]]] = {ask: [] for ask in ASKS}
    for _ in range(repeats):
        for ask, times in found.items():
            yardstick = spent(lambda: scores.double().sort(0))
            times.append((spent(lambda ask=ask: sp.calibrate(ask, scores, labels)), yardstick))
    cells = [
        {"ask": ask, "seconds": statistics.median(own for own, _ in times),
         "sorts": statistics.median(own / sort for own, sort in times)}
        for ask, times in found.items()
    ]  # fmt: skip
    print(*cells, sep="\n")
    print(write_result("shifts", {"rows": rows, "classes": options.classes, "cells": cells}, options.quick))


if __name__ == "__main__":
    main()
