"""Promises end to end: a table goes in, `setpoint fit` with its defaults decides, and the population judges.

    python -m benchmarks.studies.promises_tables [--repeats 1000] [--models linear,trees,auto] [--quick]

The population is known exactly. A row has two whole numbers from 0 to 19, a word of four, and a number of three that
may be missing; all 6,400 combinations are equally likely, and each has its own probability of a positive (16 %
overall), which is not linear in the columns. So the true rate of a decision is a finite sum, without an error of its
own.

Each repeat draws 1,200 rows, trains with the defaults of `setpoint fit` (the seed is that of the repeat), and asks
whether the certified bound holds in the population: `minimize fnr where fpr <= 10%`, certified at 95 % from the
calibration rows, as is the default. "broken" is the share of all repeats with a certificate whose bound does not hold;
the confidence limits it to 5 %, and the test here to 5 % plus two standard errors. "bare" is how often the bound does
not hold if the threshold is that of the calibration rows without a certificate. Each finished repeat is a row of
`results/rows/promises_tables.parquet`, and not run again.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import torch
from scipy.special import expit

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.studies.promises.study import limit
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.scoring import score_rows

ASK, BOUND, CONFIDENCE, ROWS = "minimize fnr where fpr <= 10%", 0.1, 0.95, 1200
MODELS = ("linear", "trees", "auto")
WORDS = {"north": -1.0, "east": 0.0, "south": 0.4, "west": 1.0}
NUMBERS = (0.0, 1.0, 2.0, None)


def population() -> tuple[pl.DataFrame, np.ndarray]:
    """Every combination of values, and the probability of a positive in each."""
    cells = list(itertools.product(range(20), range(20), WORDS, NUMBERS))
    frame = pl.DataFrame(cells, schema=["a", "b", "place", "size"], orient="row")
    logits = [
        -3.2 + 0.9 * (a - 9.5) / 5 + 2.0 * ((a > 12) == (b > 12)) * (b - 6) / 7 + WORDS[place] + 0.3 * (size or -1.0)
        for a, b, place, size in cells
    ]
    return frame, expit(np.array(logits))


def drawn(seed: int) -> pl.DataFrame:
    """A sample of the population, with the label in `y`."""
    frame, chance = population()
    draw = np.random.default_rng((21, seed))
    rows = draw.integers(0, frame.height, ROWS)
    return frame[rows].with_columns(pl.Series("y", (draw.random(ROWS) < chance[rows]).astype(np.int64)))


def true_rates(flagged: np.ndarray) -> dict[str, float]:
    """FPR and FNR in the population of a decision on each of its cells."""
    _, chance = population()
    return {
        "fpr": float((flagged * (1 - chance)).sum() / (1 - chance).sum()),
        "fnr": float(((1 - flagged) * chance).sum() / chance.sum()),
    }


def repeat(model: str, seed: int) -> dict[str, Any]:
    run = fit_table(drawn(seed), "y", sp.ask(ASK), Settings(model=model, seed=seed))
    own, everyone = run.chosen, population()[0]
    scores = score_rows(own.model, run.schema.encode(everyone))
    calibration = own.sample("calibration")
    bare = sp.calibrate(ASK, calibration.scores, calibration.labels)
    found = {
        name: true_rates(point.predict(scores).numpy().astype(float))
        for name, point in (("shipped", own.point), ("bare", bare))
    }
    return {"model": model, "seed": seed, "certified": own.point.certificate is not None, **found}


def counted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How often a certificate was given, how often it was wrong, and what it cost."""
    repeats = len(rows)
    issued = [row for row in rows if row["certified"]]
    broken = sum(row["shipped"]["fpr"] > BOUND for row in issued) / repeats
    return {
        "model": rows[0]["model"], "repeats": repeats, "issued": len(issued) / repeats, "broken": broken,
        "limit": limit(repeats), "met": broken <= limit(repeats),
        "bare broken": sum(row["bare"]["fpr"] > BOUND for row in rows) / repeats,
        **{f"{name}, {rate}": statistics.mean(row[name][rate] for row in rows)
           for name in ("shipped", "bare") for rate in ("fpr", "fnr")},
    }  # fmt: skip


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sum-up", action="store_true", help="run nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    journal = Journal("promises_tables", options.quick)
    for seed in range(3 if options.quick else options.repeats) if not options.sum_up else ():
        for model in options.models.split(","):
            journal.row(f"{model} | {seed}", partial(repeat, model, seed))
        if seed % 20 == 0:
            print(seed, flush=True)
    rows = list(journal.rows.values())
    cells = [counted(own) for model in MODELS if (own := [row for row in rows if row["model"] == model])]
    for cell in cells:
        print(cell)
    journal.fold()
    print(write_result("promises_tables", {"confidence": CONFIDENCE, "ask": ASK, "cells": cells}, options.quick))
    if not all(cell["met"] for cell in cells):
        sys.exit("promises are broken more often than their confidence allows")
