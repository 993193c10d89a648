"""What the runs of `critical_class` say: Table 1's columns, chosen on validation rows, beside what was published."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from statistics import mean, variance
from typing import Any

import numpy as np
import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import paired
from benchmarks.studies.critical_class.published import COLUMNS, TABLE_1
from setpoint.measure.curve import roc_area

TPRS = (0.98, 0.95, 0.92)
TEST_IMAGES = 2_000
ALONE, CONSTRAINED, STARTS, LISTED = "alone", "constrained", "several starts", "mu as listed"
Row = dict[str, Any]


def table_row(scores: Tensor, labels: Tensor) -> dict[str, float]:
    """Table 1's columns, in percent."""
    rates = [sp.evaluate(sp.minimize(sp.fpr, sp.recall >= tpr), scores, labels).objective for tpr in TPRS]
    return {column: 100 * float(value) for column, value in zip(COLUMNS, [*rates, roc_area(scores, labels)])}


def together(runs: list[Row], labels: Tensor) -> dict[str, float]:
    """Table 1's columns of the mean logit of several models."""
    return table_row(torch.stack([unpack(run["logits"]) for run in runs]).mean(0), labels)


def untuned_rows(runs: list[Row], labels: Tensor) -> list[Row]:
    """A row a method: means over seeds, the ensemble of all seeds by mean logit, and constrained minus alone."""
    rows = []
    for name in dict.fromkeys(run["loss"] for run in runs):
        of = {a: [run for run in runs if run["loss"] == name and run["augmented"] == a] for a in (False, True)}
        for augmented, group in of.items():
            if not group:
                continue
            means = {column: mean(run[column] for run in group) for column in COLUMNS}
            row = {"method": f"{'ALM + ' * augmented}{name}", **means, "ensemble": together(group, labels)}
            if augmented:
                row["minus alone"] = {
                    column: paired([b[column] - a[column] for a, b in zip(of[False], group)], 0.0, 1.0)
                    for column in COLUMNS
                }
            rows.append(row)
    return rows


def tuned_rows(runs: Iterable[Row]) -> list[Row]:
    """A row a ratio, base loss and way: of its settings the best by validation AUC, minus the base loss alone."""
    everything, rows = list(runs), []
    for ratio, loss in dict.fromkeys((run["ratio"], run["loss"]) for run in everything):
        here = [run for run in everything if (run["ratio"], run["loss"]) == (ratio, loss)]
        alone = best_by_seed([run for run in here if run["way"] == ALONE])
        for way in dict.fromkeys(run["way"] for run in here):
            # A start is chosen from all starts, of which the run alone is the first.
            best = best_by_seed([run for run in here if run["way"] == way or (way, run["way"]) == (STARTS, ALONE)])
            seeds = sorted(set(best) & set(alone) & {run["seed"] for run in here if run["way"] == way})
            if not seeds:
                continue
            row: Row = {"ratio": ratio, "loss": loss, "way": way, "seeds": seeds}
            row["settings"] = [best[seed]["setting"] for seed in seeds]
            row["choices"] = len({run["setting"] for run in here if run["way"] == way}) + (way == STARTS)
            row["seconds"] = mean(best[seed]["seconds"] for seed in seeds)
            row["highest price"] = max(best[seed].get("highest_price", 0.0) for seed in seeds)
            share = (TEST_IMAGES, mean(best[seed]["images"] for seed in seeds))
            for column in (*COLUMNS, "validation AUC"):
                values, base = ([of[seed][column] for seed in seeds] for of in (best, alone))
                row[column] = {"mean": mean(values), "ratio to alone": mean(values) / mean(base),
                               "minus alone": paired([a - b for a, b in zip(values, base)], *share)}  # fmt: skip
            if way == STARTS:
                row["deviation over starts"] = deviation(here, seeds)
            if way in (ALONE, CONSTRAINED):
                told = TABLE_1[ratio][loss]
                for place, column in enumerate(COLUMNS):
                    value = told[way == CONSTRAINED][place]
                    row[column]["published"] = value
                    row[column]["published minus alone"] = value - told[0][place]
            rows.append(row)
    return sorted(rows, key=lambda row: row["ratio"])


def deviation(runs: list[Row], seeds: list[int]) -> float:
    """By how much the test AUC of one loss on one set of images differs with the start alone: a standard deviation."""
    of = [[run["AUC"] for run in runs if run["seed"] == seed and run["way"] in (ALONE, STARTS)] for seed in seeds]
    return mean(variance(values) for values in of) ** 0.5


def best_by_seed(runs: list[Row]) -> dict[int, Row]:
    best: dict[int, Row] = {}
    for run in runs:
        if run["seed"] not in best or run["validation AUC"] > best[run["seed"]]["validation AUC"]:
            best[run["seed"]] = run
    return best


def pack(values: Tensor) -> str:
    """Half-precision numbers as text, so that a summary needs no models; labels are read from the data."""
    return base64.b64encode(values.half().numpy().tobytes()).decode()


def unpack(packed: str) -> Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(packed), dtype=np.float16).astype(np.float32))
