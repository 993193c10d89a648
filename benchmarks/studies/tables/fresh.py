"""The tables once more on splits that nobody has looked at, with the certificate that `setpoint fit` gives by default.

    python -m benchmarks.studies.tables.fresh [--data DIR] [--packages DIR] [--splits N] [--sum-up] [--quick]

Why: splits 20 to 29 of the study of tables were summed up several times while `auto` was changed for other reasons, and
its thresholds are judged without the certificate, which is half of what is shipped. Fixed before the first result:

- Tables, asks, rows and methods as in `study.py`; splits 40 to 44, which no other run has used; `auto` as it stands in
  the commit that adds this file, and not changed after a look.
- Rivals: LightGBM as it comes, tuned, and tuned and trained again; `TunedThresholdClassifierCV`; cross-entropy.
- Judged at the best cut of the test rows, at the bare threshold of the calibration rows, and at their *certified*
  threshold: `sp.calibrate(confidence=0.95)` on the scores of every method alike, the bare one where it refuses, as
  `setpoint fit` does. `TunedThresholdClassifierCV` sets its own threshold, which stands for both.
- Also the share of cells and splits in which the bound holds on the test rows, by method and threshold.
- Claims: as in `study.py`, at the best cut and at the certified threshold: against tuned LightGBM better beyond two
  standard errors in half of the cells and worse in none; against cross-entropy worse in none.
- A split is run whole, table by table, before the next one: a study that is stopped has whole splits, and a cell of
  fewer than three splits is not counted.
"""

from __future__ import annotations

import statistics
import warnings
from typing import Any

from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.studies.tables.rows import Table
from benchmarks.studies.tables.study import BOOSTED, Bench, fits_shared, run_boosted, run_ours
from benchmarks.studies.tables.tables import TABLES, Folders
from benchmarks.studies.tables.verdict import AUTO, PLAIN, cells, counts

NAME, SEEDS, CERTIFIED = "tables_fresh", range(40, 45), "certified"
JUDGED = ("test", "at threshold", CERTIFIED)
#: What is looked up to see whether a bound held, by the threshold that was judged.
HELD = {"at threshold": "bounds hold", CERTIFIED: "certified holds"}
METHODS = (AUTO, PLAIN, *(name for name in BOOSTED if name != "best of 7 weights"))


def held(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By method and threshold: the share of cells and splits in which the bound holds on test rows.

    Areas have no bound; of certified thresholds only those with a certificate count.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for ask, own in row["figures"].items():
            for judged, name in HELD.items() if " over " not in ask else ():
                if judged != CERTIFIED or own.get("has a certificate", 1.0):
                    found.setdefault(row["method"], {}).setdefault(judged, []).append(own[name])
    return {method: {judged: statistics.mean(values) for judged, values in own.items()}
            for method, own in found.items()}  # fmt: skip


def certificates(rows: list[dict[str, Any]]) -> float:
    """The share of runs of `auto` whose ask and rows allow a certificate; areas have none."""
    return statistics.mean(own["has a certificate"] for row in rows if row["method"] == AUTO
                           for ask, own in row["figures"].items() if " over " not in ask)  # fmt: skip


def with_own_threshold(row: dict[str, Any]) -> dict[str, Any]:
    """A method that sets its threshold itself ships that one, beside the certified ones of the others."""
    figures = {ask: {CERTIFIED: own["at threshold"], "certified holds": own["bounds hold"], **own}
               for ask, own in row["figures"].items()}  # fmt: skip
    return {**row, "figures": figures}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of cells and gains against every rival, and how often the bounds held."""
    rows = [with_own_threshold(row) for row in rows if row["method"] in METHODS]
    found = cells(rows, judged=JUDGED)
    return {
        "seeds": sorted({row["seed"] for row in rows}), "tables": len({row["table"] for row in rows}),
        "certificates": certificates(rows), "held": held(rows), "counts": counts(found, JUDGED),
        "cells": [{"table": cell["table"], "ask": cell["ask"], "gain": cell["gain"]} for cell in found],
    }  # fmt: skip


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--packages", default="packages", help="the folder with the downloaded wheels")
    parser.add_argument("--splits", type=int, help="only the first so many")
    parser.add_argument("--sum-up", action="store_true", help="run nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    names = ("breast_cancer",) if options.quick else tuple(TABLES)
    journal, folders = Journal(NAME, options.quick), Folders(options.data, options.packages)
    bench = Bench(journal, None)
    for seed in () if options.sum_up else SEEDS[: 1 if options.quick else options.splits]:
        for name in names:
            table = Table(name, TABLES[name](folders), seed)
            if bench.missing(name, seed, BOOSTED):
                run_boosted(bench, table)
            if bench.missing(name, seed, (AUTO,)):
                with fits_shared():
                    run_ours(bench, table, AUTO)
    journal.fold()
    print(write_result(NAME, summary(list(journal.rows.values())), options.quick))


if __name__ == "__main__":
    main()
