"""MAPIE's controllers on the same draws; run by the study in an environment of MAPIE's own.

    PYTHON -m benchmarks.studies.promises_kinds.by_mapie REPEATS > rows.jsonl

The parameters of a controller are a grid of quantiles of the scores of a quarter of the rows. Bounds on precision, npv
or several rates are tested by `split_fixed_sequence`, whose order that quarter learns. Parameters at which a rate is
undefined on these rows are left out: its p-value there is NaN, which the order takes for the best, so that nothing
else would be tested. Bounds that one end of the grid keeps (review, fpr) are tested by `fixed_sequence` from that end:
for review on the other rows, along bands that widen around the cut of the fewest errors.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from mapie.risk_control import BinaryRisk, MultiClassificationLTTController
from mapie.risk_control.risks import build_precision_ovr, build_recall_ovr

from benchmarks.studies.promises_kinds.population import (
    CELLS,
    CONFIDENCE,
    GRID,
    Cell,
    Numbers,
    drawn,
    everyone,
    judged,
)  # fmt: skip

#: Cuts per side where there are two.
SIDE = 15
#: The share of the rows that learns the order of a split sequence.
LEARN = 0.25


def everywhere(y_true: Numbers, y_pred: Numbers) -> Numbers:
    return np.ones(len(y_true), dtype=bool)


ERROR = BinaryRisk(lambda y, p: ~np.isnan(p) & (p != y), everywhere, higher_is_better=False)
REVIEWED = BinaryRisk(lambda y, p: np.isnan(p), everywhere, higher_is_better=False)
NPV = BinaryRisk(lambda y, p: p == y, lambda y, p: p == 0, higher_is_better=True)
PRECISION = BinaryRisk(lambda y, p: p == y, lambda y, p: p == 1, higher_is_better=True)
FPR = BinaryRisk(lambda y, p: p == 1, lambda y, p: y == 0, higher_is_better=False)
RECALL = BinaryRisk(lambda y, p: p == y, lambda y, p: y == 1, higher_is_better=True)


def cuts(scores: Numbers, number: int) -> Numbers:
    """Quantiles of the scores from low to high, and a cut above them all."""
    inner = np.quantile(scores, np.linspace(0.0, 1.0, number), method="higher") - 1e-9
    return np.unique([*inner, scores.max() + 1.0])


def band(scores: Numbers, low: float, high: float) -> Numbers:
    return np.where(scores > high, 1.0, np.where(scores <= low, 0.0, np.nan))


def one_cut(scores: Numbers, cut: float) -> Numbers:
    return (scores > cut).astype(float)


def shifted(scores: Numbers, *shifts: float) -> Numbers:
    """The class of each row when the last classes are shifted."""
    return (scores - np.array([0.0] * (scores.shape[1] - len(shifts)) + list(shifts))).argmax(1).astype(float)


def around(centre: float, scores: Numbers, width: float) -> Numbers:
    """A band that reaches equally far to both sides."""
    return band(scores, centre - width, centre + width)


def way(
    cell: Cell, scores: Numbers, labels: Numbers
) -> tuple[Callable[..., Numbers], list[Any], list[float], Any, Numbers]:
    """How the cell is decided, its risks with their levels, the objective, and the grid of parameters."""
    levels = [bound for _, _, bound in cell.bounds]
    if cell.kind == "band":
        if len(levels) == 1:
            centre = min(cuts(scores, GRID), key=lambda cut: np.mean(one_cut(scores, cut) != labels))
            widths = np.quantile(np.abs(scores - centre), np.linspace(0, 1, GRID))
            return partial(around, centre), [REVIEWED], levels, ERROR, np.unique([0.0, *widths])[:, None]
        lines = cuts(scores, SIDE)
        grid = np.array([(low, high) for low, high in product(lines, lines) if low <= high])
        return band, [PRECISION, NPV], levels, REVIEWED, grid
    if cell.kind == "worth":
        return one_cut, [FPR], levels, RECALL, cuts(scores, GRID)[::-1, None]
    if cell.name == "one class":
        margin = scores[:, 2] - scores[:, :2].max(1)
        return shifted, build_precision_ovr([2]), levels, build_recall_ovr([2])[0], cuts(margin, GRID)[:, None]
    apart = [cuts(scores[:, k] - scores[:, 0], SIDE) for k in (1, 2)]
    return shifted, build_recall_ovr([0, 1]), levels, ERROR, np.array([*product(*apart)])


def decided(cell: Cell, seed: int) -> Numbers | None:
    """The decision on every point of the population, or None where no parameter is valid."""
    scores, labels, _ = drawn(cell, seed)
    learn = round(LEARN * len(scores))
    decide, risks, levels, objective, grid = way(cell, scores[:learn], labels[:learn])
    split = cell.name not in ("worth", "band, one bound")
    if split:
        sizes = [[risk.get_value_and_effective_sample_size(labels[:learn], decide(scores[:learn], *one))[1]
                  for risk in risks] for one in grid]  # fmt: skip
        grid = grid[(np.array(sizes) > 0).all(1)]
    controller = MultiClassificationLTTController(
        decide if split else lambda x, params: np.stack([decide(x, cut) for cut in np.ravel(params)]), risks, levels,
        CONFIDENCE, objective, grid if split else grid[:, 0], classes=np.unique(labels),
        fwer_method="split_fixed_sequence" if split else "fixed_sequence",
    )  # fmt: skip
    if split:
        controller.learn_fixed_sequence_order(scores[:learn], labels[:learn], binary=True)
    if cell.name != "worth":
        scores, labels = scores[learn:], labels[learn:]
    controller.calibrate(scores, labels)
    if controller.best_predict_param is None:
        return None
    found = decide(everyone(cell), *np.atleast_1d(np.array(controller.best_predict_param, dtype=float)))
    return np.where(np.isnan(found), -1, found).astype(int)


def main() -> None:
    warnings.simplefilter("ignore")
    for seed, cell in product(range(int(sys.argv[1])), CELLS):
        print(json.dumps({"cell": cell.name, "seed": seed, **judged(cell, decided(cell, seed))}), flush=True)


if __name__ == "__main__":
    main()
