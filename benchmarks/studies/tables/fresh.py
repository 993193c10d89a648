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
- Added after the results were known: runs with a certificate alone, what the certificate costs, and means by table over
  the splits.
- A split is run whole, table by table, before the next one: a study that is stopped has whole splits, and a cell of
  fewer than three splits is not counted.
"""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import setpoint as sp
from benchmarks.common.data import arguments, paired
from benchmarks.common.harness import Journal, write_result
from benchmarks.studies.tables.rows import Table
from benchmarks.studies.tables.study import BOOSTED, Bench, fits_shared, run_boosted, run_ours
from benchmarks.studies.tables.tables import TABLES, Folders
from benchmarks.studies.tables.verdict import (
    AUTO,
    LEAST_SPLITS,
    PLAIN,
    TEST_SHARE,
    TRAIN_SHARE,
    TUNED,
    by_method,
    cells,
    counts,
)

NAME, SEEDS, CERTIFIED, ALONE = "tables_fresh", range(40, 45), "certified", "certified alone"
JUDGED = ("test", "at threshold", CERTIFIED, ALONE)
#: What is looked up to see whether a bound held, by the threshold that was judged.
HELD = {"at threshold": "bounds hold", CERTIFIED: "certified holds"}
METHODS = (AUTO, PLAIN, *(name for name in BOOSTED if name != "best of 7 weights"))
#: The rivals that lose least: they learn from held-out rows too.
STRONGEST = (f"{TUNED}, again", "TunedThresholdClassifierCV")


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


def is_certified(ask: str, own: dict[str, float]) -> bool:
    """Whether a run has a certificate; areas have no threshold and none."""
    return " over " not in ask and own["has a certificate"] == 1.0


def certificates(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The share of runs of `auto` with a certificate: of all, and of those of asks that have a threshold."""
    runs = [(ask, own) for row in rows if row["method"] == AUTO for ask, own in row["figures"].items()]
    certified = sum(is_certified(*run) for run in runs)
    return {"of runs": certified / len(runs), "of thresholds": certified / sum(" over " not in ask for ask, _ in runs)}


def held_where(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By method: how often the shipped threshold holds in runs in which ours has a certificate, and in the others."""
    ours = {(row["table"], row["seed"], ask): is_certified(ask, own) for row in rows if row["method"] == AUTO
            for ask, own in row["figures"].items() if " over " not in ask}  # fmt: skip
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for ask, own in row["figures"].items():
            if (certified := ours.get((row["table"], row["seed"], ask))) is not None:
                where = "with a certificate" if certified else "without"
                found.setdefault(row["method"], {}).setdefault(where, []).append(own["certified holds"])
    return {method: {where: statistics.mean(values) for where, values in own.items()} for method, own in found.items()}


def sign_of(ask: str) -> int:
    """1 where higher is better, else -1."""
    return 1 if sp.ask(ask).maximize else -1


def cost(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the certificate costs `auto`: the bare threshold's figure less the certified one's, by table, and in all."""
    lost: dict[str, list[float]] = {}
    for row in rows:
        for ask, own in row["figures"].items() if row["method"] == AUTO else ():
            if is_certified(ask, own):
                lost.setdefault(row["table"], []).append(sign_of(ask) * (own["at threshold"] - own[CERTIFIED]))
    values = [value for own in lost.values() for value in own]
    return {"runs": len(values), "mean": statistics.mean(values), "median": statistics.median(values),
            "by table": {name: statistics.mean(own) for name, own in lost.items()}}  # fmt: skip


def by_table(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By strongest rival and table: the paired gain as shipped, the mean of the asks, over the splits."""
    methods = by_method(rows)
    found: dict[str, dict[str, Any]] = {}
    for rival in STRONGEST:
        splits: dict[str, list[float]] = {}
        for (name, seed), row in methods.get(AUTO, {}).items():
            theirs = methods.get(rival, {}).get((name, seed), {"figures": {}})["figures"]
            both = {ask: own for ask, own in row["figures"].items() if CERTIFIED in theirs.get(ask, ())}
            gains = [sign_of(ask) * (own[CERTIFIED] - theirs[ask][CERTIFIED]) for ask, own in both.items()]
            splits.setdefault(name, []).extend([statistics.mean(gains)] if gains else [])
        found[rival] = {name: paired(own, TEST_SHARE, TRAIN_SHARE)
                        for name, own in splits.items() if len(own) >= LEAST_SPLITS}  # fmt: skip
    return found


def with_own_threshold(row: dict[str, Any]) -> dict[str, Any]:
    """A method that sets its threshold itself ships that one, beside the certified ones of the others."""
    figures = {ask: {CERTIFIED: own["at threshold"], "certified holds": own["bounds hold"], **own}
               for ask, own in row["figures"].items()}  # fmt: skip
    return {**row, "figures": figures}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of cells and gains against every rival, and how often the bounds held."""
    rows = [with_own_threshold(row) for row in rows if row["method"] in METHODS]
    certified = {(row["table"], row["seed"], ask) for row in rows if row["method"] == AUTO
                 for ask, own in row["figures"].items() if is_certified(ask, own)}  # fmt: skip
    for row in rows:
        for ask, own in row["figures"].items():
            if (row["table"], row["seed"], ask) in certified:
                own[ALONE] = own[CERTIFIED]
    found = cells(rows, judged=JUDGED)
    return {
        "seeds": sorted({row["seed"] for row in rows}), "tables": len({row["table"] for row in rows}),
        "certificates": certificates(rows), "cost": cost(rows), "held": held(rows),
        "held where": held_where(rows), "counts": counts(found, JUDGED),
        "by table": by_table(rows),
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
