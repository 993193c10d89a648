"""How often intervals of an F-score hold the truth, with equal and with heavy weights, by method.

    python -m benchmarks.studies.estimates [--quick] [--repeats 1000]

Scores of two normal classes, three in ten positive, n = 100 and 400, stated confidence 90 %. Weights are equal, or
Pareto with exponent 3 (finite variance) or 1.2 (infinite variance). The truth is the F-score that the distribution has
at the threshold that was set, which is the best of the sample. `setpoint` is what `sp.calibrate` returns; the others
are at the threshold of the sample: `unit draws` (samples of weight one from weighted shares), percentiles, studentised
(`bootstrap-t`) and accelerated (`BCa`) bootstraps of the rows with their weights, and the `normal` interval of the
linearised standard error. `area` is the mean recall over FPR 0 to 20 %, by `sp.calibrate`, in a tenth of the repeats.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy.stats import norm

import setpoint as sp
from benchmarks.common.harness import write_result

CONFIDENCE, SHARE, SHIFT, DRAWS = 0.9, 0.3, 2.0, 400
SIZES, WEIGHTS = (100, 400), {"equal": None, "Pareto(3)": 3.0, "Pareto(1.2)": 1.2}
AREA = "maximize recall over fpr in [0%, 20%]"


def f1(counts: np.ndarray) -> np.ndarray:
    tp, fp, fn, _ = np.moveaxis(counts, -1, 0)
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1e-300)


def error(counts: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The linearised standard error, from sums of weights and of their squares by kind."""
    return np.sqrt((slope(counts) ** 2 * squares).sum(-1))


def slope(counts: np.ndarray) -> np.ndarray:
    tp, fp, fn, _ = np.moveaxis(counts, -1, 0)
    whole = np.maximum(2 * tp + fp + fn, 1e-300)
    return np.stack([2 * (fp + fn) / whole**2, -2 * tp / whole**2, -2 * tp / whole**2, np.zeros_like(tp)], axis=-1)


def intervals(kinds: np.ndarray, weights: np.ndarray, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """The interval of each method at a fixed threshold; `kinds` are 0 to 3 for tp, fp, fn and tn."""
    n, tails = len(weights), np.array([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    rows = np.eye(4)[kinds] * weights[:, None]
    counts, squares = rows.sum(0), (rows**2).sum(0)
    value, own = f1(counts), error(counts, squares)
    times = draw.multinomial(n, np.full(n, 1 / n), DRAWS).astype(float)
    drawn, errors = f1(times @ rows), error(times @ rows, times @ rows**2)
    low, high = np.quantile((drawn - value) / np.maximum(errors, 1e-9), tails)
    influence = slope(counts)[kinds] * weights
    lean = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    bias = norm.ppf(np.clip((drawn < value).mean(), 1 / DRAWS, 1 - 1 / DRAWS))
    moved = bias + (bias + norm.ppf(tails)) / (1 - lean * (bias + norm.ppf(tails)))
    return {
        "unit draws": np.quantile(f1(draw.multinomial(n, counts / counts.sum(), DRAWS).astype(float)), tails),
        "percentile": np.quantile(drawn, tails),
        "bootstrap-t": np.array([value - high * own, value - low * own]),
        "BCa": np.quantile(drawn, norm.cdf(moved)),
        "normal": value + own * norm.ppf(tails),
    }


def cell(n: int, name: str, repeats: int) -> dict[str, object]:
    hits: dict[str, list[bool]] = {}
    edges = np.linspace(0, 0.2, 20_001)
    area = float(norm.sf(norm.isf(np.maximum(edges, 1e-12)) - SHIFT).mean())
    for repeat in range(repeats):
        draw = np.random.default_rng((n, list(WEIGHTS).index(name), repeat))
        labels = (draw.random(n) < SHARE).astype(int)
        scores = draw.normal(size=n) + SHIFT * labels
        exponent = WEIGHTS[name]
        weights = None if exponent is None else draw.pareto(exponent, n) + 1
        point = sp.calibrate("maximize f1", scores, labels, weights=weights, confidence=CONFIDENCE)
        threshold = float(point.threshold)  # type: ignore[arg-type]
        tp, fp = SHARE * norm.sf(threshold - SHIFT), (1 - SHARE) * norm.sf(threshold)
        kinds = np.where(scores > threshold, 1 - labels, 3 - labels)
        found = intervals(kinds, np.ones(n) if weights is None else weights, draw)
        found["setpoint"] = np.array([point.estimates[0].low, point.estimates[0].high])
        for method, (low, high) in found.items():
            hits.setdefault(method, []).append(bool(low <= 2 * tp / (tp + fp + SHARE) <= high))
        if repeat < repeats // 10:
            own = sp.calibrate(AREA, scores, labels, weights=weights, confidence=CONFIDENCE).estimates[0]
            hits.setdefault("area", []).append(own.low <= area <= own.high)
    return {"n": n, "weights": name, **{method: sum(found) / len(found) for method, found in hits.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="twenty repeats")
    parser.add_argument("--repeats", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    repeats = 20 if options.quick else options.repeats
    cells = []
    for n in SIZES:
        for name in WEIGHTS:
            cells.append(cell(n, name, repeats))
            print(cells[-1], flush=True)
    figures = {"confidence": CONFIDENCE, "repeats": repeats, "cells": cells}
    print(write_result("estimates", figures, options.quick))


if __name__ == "__main__":
    main()
