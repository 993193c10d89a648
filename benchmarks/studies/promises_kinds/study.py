"""Promises of the newer kinds of questions: certified bands, classes and worth, judged by a known population.

    python -m benchmarks.studies.promises_kinds [--repeats 1000] [--mapie PYTHON] [--mapie-repeats 150] [--quick]

The population is 60,000 equally likely points of three classes in a plane. The chance of each class is known at every
point, the scores are those of an imperfect model, and each point has an amount. So the true rate of a decision is a
finite sum, without an error of its own. Bands and worth are about class 2 against the rest.

Each repeat draws calibration rows (1,000, for classes 1,500) and certifies the ask of each cell at 95 %. "broken" is
the share of all repeats with a certificate whose bounds do not all hold in the population; the confidence limits it to
5 %, and the test here to 5 % plus two standard errors. A refusal is no broken promise, and is counted beside it.

With `--mapie PYTHON`, the Python of an environment in which MAPIE 1.6 is installed, its controllers decide the first
repeats on the same rows; `by_mapie.py` says how. Objectives are compared on the repeats for which both gave a promise.
Population, cells, bounds and our own side were fixed before the first full run. MAPIE's setup was changed after its
first figures had been seen, in its favour: a cut above all scores had made its p-values NaN, so that it certified
nothing in two cells, and a grid of pairs that ignored the objective had made it nearly useless in a third.
Each finished repeat is a row of `results/rows/promises_kinds.parquet`, and not run again.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import ROOT, Journal, write_result
from benchmarks.studies.promises.study import limit
from benchmarks.studies.promises_kinds.population import CELLS, CONFIDENCE, Cell, drawn, everyone, judged
from setpoint.errors import SetpointError


def decided(cell: Cell, seed: int, confidence: float | None) -> np.ndarray | None:
    """The decision on every point of the population, or None where no certificate can be given."""
    scores, labels, amounts = drawn(cell, seed)
    weights = {"amount": amounts} if cell.kind == "worth" else None
    try:
        point = sp.calibrate(cell.ask, scores, labels, weights=weights, confidence=confidence)
    except SetpointError:
        return None
    return np.asarray(point.predict(everyone(cell)))


def repeat(cell: Cell, seed: int) -> dict[str, Any]:
    bare = judged(cell, decided(cell, seed, None))
    own = judged(cell, decided(cell, seed, CONFIDENCE))
    return {"cell": cell.name, "seed": seed, "ours": own, "bare": bare}


def by_mapie(python: str, repeats: int) -> list[dict[str, Any]]:
    """The rows of MAPIE, from its own environment, or from a file that it wrote."""
    if python.endswith(".jsonl"):
        return [json.loads(line) for line in Path(python).read_text().splitlines()]
    command = [python, "-m", "benchmarks.studies.promises_kinds.by_mapie", str(repeats)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)
    return [json.loads(line) for line in done.stdout.splitlines()]


def counted(cell: Cell, rows: list[dict[str, Any]], beside: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """How often a certificate was given and was wrong, and the objective beside that of MAPIE."""
    repeats, issued = len(rows), [row for row in rows if row["ours"]["issued"]]
    broken = sum(row["ours"]["broken"] for row in issued) / repeats
    found: dict[str, Any] = {
        "cell": cell.name, "ask": cell.ask, "rows": cell.rows, "repeats": repeats, "issued": len(issued) / repeats,
        "broken": broken, "limit": limit(repeats), "met": broken <= limit(repeats),
        "bare broken": sum(row["bare"].get("broken", False) for row in rows) / repeats,
        "objective": _mean([row["ours"]["objective"] for row in issued]),
        "bare objective": _mean([row["bare"]["objective"] for row in rows if row["bare"]["issued"]]),
    }  # fmt: skip
    if beside:
        both = [(r["ours"]["objective"], beside[r["seed"]]["objective"]) for r in issued
                if beside.get(r["seed"], {}).get("issued")]  # fmt: skip
        gains = [theirs - ours for ours, theirs in both]
        found["mapie"] = {
            "repeats": len(beside), "issued": sum(one["issued"] for one in beside.values()) / len(beside),
            "broken": sum(one.get("broken", False) for one in beside.values()) / len(beside),
            "both": len(both), "ours": _mean([one for one, _ in both]), "theirs": _mean([two for _, two in both]),
            "gain": _mean(gains),
            "standard_error": statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else None,
        }  # fmt: skip
    return found


def _mean(values: list[float]) -> float | None:
    return statistics.mean(values) if values else None


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--mapie", help="the Python of an environment with MAPIE, or the rows it wrote (.jsonl)")
    parser.add_argument("--mapie-repeats", type=int, default=60)
    parser.add_argument("--sum-up", action="store_true", help="run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    journal = Journal("promises_kinds", options.quick)
    for seed in range(3 if options.quick else options.repeats) if not options.sum_up else ():
        for cell in CELLS:
            journal.row(f"{cell.name} | {seed}", partial(repeat, cell, seed))
        if seed % 20 == 0:
            print(seed, flush=True)
    if options.mapie and not options.sum_up:
        for row in by_mapie(options.mapie, 3 if options.quick else options.mapie_repeats):
            journal.add(f"MAPIE | {row['cell']} | {row['seed']}", row)
    cells = []
    for cell in CELLS:
        own = [row for row in journal.rows.values() if row["cell"] == cell.name]
        beside = {row["seed"]: row for row in own if row["key"].startswith("MAPIE")}
        cells.append(counted(cell, [row for row in own if not row["key"].startswith("MAPIE")], beside))
        print(cells[-1])
    journal.fold()
    print(write_result("promises_kinds", {"confidence": CONFIDENCE, "cells": cells}, options.quick))
    if not all(cell["met"] for cell in cells):
        sys.exit("a promise was broken more often than it says")


if __name__ == "__main__":
    main()
