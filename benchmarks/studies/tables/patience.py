"""Trees that stop after 25 rounds without gain against 50, on the screening splits of the tables' study.

    python -m benchmarks.studies.tables.patience [--data DIR] [--packages DIR] [--tables a,b] [--quick]

Both are `setpoint fit --model trees` on splits 0 to 2, judged by each ask of the study at the best cut of the test rows
and by their log-loss there. The gain of 25 rounds is paired over the splits of a cell. These splits are for looking at;
nothing is confirmed on them.
"""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, spent, write_result
from benchmarks.studies.tables.rivals import JUDGED_PARTS
from benchmarks.studies.tables.rows import Table, judge
from benchmarks.studies.tables.study import SCREENING_SEEDS, fits_shared, fitted
from benchmarks.studies.tables.tables import TABLES, Folders
from setpoint.train import trees

ROUNDS = (25, 50)


def run_once(table: Table, rounds: int) -> dict[str, object]:
    """The figures of all asks by trees of this patience, and the log-loss of the test rows."""
    trees.PATIENCE = rounds
    figures, loss = {}, 0.0

    def every_ask() -> None:
        nonlocal loss
        with fits_shared():
            for ask in table.asks:
                run = fitted(table, "trees", ask).chosen
                scores = {part: run.sample(part).scores.double().numpy() for part in JUDGED_PARTS}
                figures[ask] = judge(ask, table, scores, run.point)
                logits, labels = scores["test"], table.labels("test")
                loss = float(np.mean(np.logaddexp(0, logits) - labels * logits))

    wall, processor = spent(every_ask)
    return {"figures": figures, "loss": loss, "wall": wall, "processor": processor}


def gains_of(rows: dict[int, list[dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """For each ask of a table the mean gain of the fewer rounds over the splits, its error, and that of the loss."""
    found = {}
    for ask in rows[ROUNDS[0]][0]["figures"]:
        sign = 1 if sp.ask(ask).maximize else -1
        few, many = ([one["figures"][ask]["test"] for one in rows[rounds]] for rounds in ROUNDS)
        found[ask] = _mean([sign * (a - b) for a, b in zip(few, many)])
    few, many = ([one["loss"] for one in rows[rounds]] for rounds in ROUNDS)
    return {**found, "log-loss": _mean([b - a for a, b in zip(few, many)])}


def _mean(gains: list[float]) -> dict[str, float]:
    error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return {"gain": statistics.mean(gains), "error": error}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--packages", default="packages", help="the folder with the downloaded wheels")
    parser.add_argument("--tables", help="some of the tables, separated by commas")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    names = options.tables.split(",") if options.tables else ["breast_cancer"] if options.quick else list(TABLES)
    journal, folders = Journal("tables_patience", options.quick), Folders(options.data, options.packages)
    seeds, found = SCREENING_SEEDS[: 2 if options.quick else None], {}
    for name in names:
        frame = TABLES[name](folders)
        rows: dict[int, list[dict[str, Any]]] = {rounds: [] for rounds in ROUNDS}
        for seed in seeds:
            for rounds in ROUNDS:
                key, table = f"{name} | {seed} | {rounds}", Table(name, frame, seed)
                rows[rounds].append(journal.row(key, lambda t=table, r=rounds: run_once(t, r)))
        found[name] = gains_of(rows)
        print(name, found[name], flush=True)
    cells = [gain for own in found.values() for ask, gain in own.items() if ask != "log-loss"]
    counted = {
        "cells": len(cells),
        "better": sum(one["gain"] > 2 * one["error"] and one["gain"] > 0 for one in cells),
        "worse": sum(one["gain"] < -2 * one["error"] and one["gain"] < 0 for one in cells),
        "ahead": sum(one["gain"] > 0 for one in cells),
        "behind": sum(one["gain"] < 0 for one in cells),
        "median": statistics.median(one["gain"] for one in cells),
    }
    print(counted)
    write_result("tables_patience", {**counted, "splits": len(seeds), "tables": found}, options.quick)


if __name__ == "__main__":
    main()
