"""Rare events on real tables: positives thinned to 0.2 %, linear models, the recall that a certificate allows.

    python -m benchmarks.studies.rare_events [--data DIR] [--quick] [--so-far] [--seeds N]

Fixed before the first result:

- ijcnn1 (all 141,691 rows), the same under 100 ReLU features, and adult. Negatives are split 50/15/15/20 into rows to
  train on, to choose on, for the threshold, and to test; to each of the first three come as many positives as make 0.2
  % of its rows. The positives that are left over all go to the test rows, where a recall is then known to a percent;
  the precision there is computed from recall and FPR at 0.2 %.
- Two asks: recall where FPR is at most 0.1 %, and recall where precision is at least 50 %; certified at 95 % on the
  calibration rows. A refusal, or a cut that flags nothing, has a recall of zero.
- Linear models with the same ridge, all trained on training and held-out rows: cross-entropy; the best of 21 class
  weights, chosen on held-out rows by the exact ask, trained again on both; and the default of `setpoint`, nothing
  chosen.
- Splits 900 to 907. Paired gains in recall, errors corrected for splits that overlap. A bound is *broken* if it does
  not hold on the test rows; at 95 % that may happen in one of twenty splits.

Finished rows are rows of `results/rows/rare_events.parquet`, and not run again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import Part, arguments, load_arrays, paired
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import RELU
from benchmarks.studies.default_study.study import CLASS_WEIGHTS, Fitted
from setpoint.data.standardise import Standardiser
from setpoint.errors import TooFewSamples

SHARE, CONFIDENCE = 0.002, 0.95
ASKS = ("maximize recall where fpr <= 0.1%", "maximize recall where precision >= 50%")
SETS, SEEDS = ("ijcnn1", f"ijcnn1{RELU}", "adult"), range(900, 908)
OURS, PLAIN, TUNED = "default", "cross-entropy", "best of 21 weights"
RIVALS = (PLAIN, TUNED)
SHARES = {"train": 0.5, "held out": 0.15, "calibration": 0.15, "test": 0.2}


def load(name: str, data: str, seed: int, most: int | None = None) -> dict[str, Part]:
    """The four parts of a split; all but the test rows have 0.2 % positives."""
    arrays, draw = load_arrays(name.removesuffix(RELU), data), np.random.default_rng(seed)
    x, y = arrays["X"].astype(np.float64), arrays["y"] > 0
    positives, negatives = (draw.permutation(np.flatnonzero(y == side)) for side in (True, False))
    negatives, parts = negatives[:most], {}
    ends = np.round(np.cumsum([0, *SHARES.values()]) * len(negatives)).astype(int)
    for place, part in enumerate(SHARES):
        own = negatives[ends[place] : ends[place + 1]]
        taken = len(positives) if part == "test" else round(SHARE / (1 - SHARE) * len(own))
        rows, positives = np.concatenate([own, positives[:taken]]), positives[taken:]
        parts[part] = draw.permutation(rows)
    centre, spread = x[parts["train"]].mean(0), x[parts["train"]].std(0)
    scaled = torch.tensor(np.clip((x - centre) / np.where(spread > 0, spread, 1), -5, 5))
    if name.endswith(RELU):
        drawn, width = torch.Generator().manual_seed(scaled.shape[1]), scaled.shape[1]
        weight = torch.randn(width, 100, generator=drawn, dtype=torch.float64) / width**0.5
        scaled = torch.relu(scaled @ weight + torch.randn(100, generator=drawn, dtype=torch.float64))
    return {part: (scaled[rows], torch.tensor(y[rows].astype(np.float64))) for part, rows in parts.items()}


def judge(problem: sp.Problem, scaling: Standardiser, theta: Tensor, parts: dict[str, Part]) -> dict[str, float]:
    """The certified cut on the test rows: recall, FPR, precision at 0.2 %, and whether the bound is broken there."""
    scores = {part: scaling.with_ones(x) @ theta for part, (x, _) in parts.items() if part != "train"}
    try:
        point = sp.calibrate(problem, scores["calibration"], parts["calibration"][1], confidence=CONFIDENCE)
        cut = float(point.threshold)  # type: ignore[arg-type]
    except TooFewSamples:
        cut = math.inf
    flagged, labels = scores["test"] > cut, parts["test"][1] > 0
    recall, fpr = float(flagged[labels].double().mean()), float(flagged[~labels].double().mean())
    passed = SHARE * recall + (1 - SHARE) * fpr
    precision = SHARE * recall / passed if passed else 1.0
    bound = problem.constraints[0]
    broken = fpr > bound.bound if str(bound.quantity) == "fpr" else precision < bound.bound
    return {"recall": recall, "fpr": fpr, "precision": precision, "broken": float(broken),
            "refused": float(not bool(flagged.any()))}  # fmt: skip


def chosen_weight(problem: sp.Problem, once: Fitted, held_out: Part) -> float:
    """The weight with the best exact objective on held-out rows; ties go to the nearest to 1."""
    outwards = sorted(CLASS_WEIGHTS, key=lambda weight: max(weight, 1 / weight))
    scores = {weight: once.scaling.with_ones(held_out[0]) @ once.weighted(weight)[0] for weight in outwards}
    found = {weight: sp.evaluate(problem, own, held_out[1]) for weight, own in scores.items()}
    return max(outwards, key=lambda weight: found[weight].objective if found[weight].feasible else -1.0)


def run_split(journal: Journal, name: str, seed: int, data: str, most: int | None) -> None:
    missing = [ask for ask in ASKS if f"{name} | {ask} | {seed}" not in journal]
    if not missing:
        return
    parts = load(name, data, seed, most)
    once, both = Fitted(parts["train"]), Fitted(parts["train"], parts["held out"])
    for ask in missing:
        problem = sp.ask(ask)
        weight = chosen_weight(problem, once, parts["held out"])
        thetas = {OURS: both.default(problem)[0], PLAIN: both.weights[1.0], TUNED: both.weighted(weight)[0]}
        found = {method: judge(problem, both.scaling, theta, parts) for method, theta in thetas.items()}
        sizes = {part: [len(labels), int(labels.sum())] for part, (_, labels) in parts.items()}
        key = f"{name} | {ask} | {seed}"
        journal.add(key, {"set": name, "ask": ask, "seed": seed, "weight": weight, "sizes": sizes, "methods": found})
        told = ", ".join(f"{method} {100 * own['recall']:.1f}" for method, own in found.items())
        print(f"{key}: {told}", flush=True)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per set and ask: the mean of each method, and our gains in recall."""
    cells = []
    for name, ask in dict.fromkeys((row["set"], row["ask"]) for row in rows):
        own = [row for row in rows if (row["set"], row["ask"]) == (name, ask)]
        found = {
            method: {what: float(np.mean([row["methods"][method][what] for row in own]))
                     for what in ("recall", "fpr", "precision", "broken", "refused")}
            for method in (OURS, *RIVALS)
        }  # fmt: skip
        gains = {
            rival: paired([row["methods"][OURS]["recall"] - row["methods"][rival]["recall"] for row in own],
                          SHARES["test"], SHARES["train"] + SHARES["held out"])
            for rival in RIVALS
        }  # fmt: skip
        cells.append({"set": name, "ask": ask, "splits": len(own), "sizes": own[0]["sizes"], **found, "gain": gains})
    return cells


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0], len(SEEDS)).parse_args()
    torch.set_num_threads(1)
    sets, seeds, most = SETS, SEEDS[: options.seeds], None
    if options.quick:
        sets, seeds, most = ("ijcnn1",), range(2), 40_000
    journal = Journal("rare_events", options.quick)
    for seed in () if options.so_far else seeds:
        for name in sets:
            run_split(journal, name, seed, options.data, most)
    rows = [row for row in journal.rows.values() if row["set"] in sets]
    journal.fold()
    write_result("rare_events", {"share": SHARE, "confidence": CONFIDENCE, "planned": len(SEEDS), "seeds": list(SEEDS),
                                 "cells": summary(rows)}, options.quick)  # fmt: skip
