"""Class weights: how much a positive counts for beside a negative.

`CrossEntropy(pos_weight)` in `solve/baseline.py` applies a weight to the batches of a network. Here are the weights of
the recipes for linear models, the weights that are tried, and the weight that networks get by default.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from setpoint.data.rows import Rows
from setpoint.measure.constraint import CUT, Constraint
from setpoint.measure.rate import Rate, fpr
from setpoint.problem.problem import Problem

#: Weights that `Auto` tries: few, and far apart, since among 21 weights it is noise that is chosen.
TRIED = (0.25, 4.0)
#: Weights that `ClassWeights`, the rival of every comparison, chooses from.
GRID = tuple(4.0**power for power in range(-3, 4))
#: The weight of the positives where few negatives may pass.
LOWERED = 0.5
#: The largest share of negatives that may pass for that weight.
FEW = 0.05


def lean_weight(problem: Problem) -> float | None:
    """The weight of positives: a half where a bound lets at most 5 % of the negatives pass, else None.

    With such a bound the negatives nearest to the threshold matter most, and they are few among many easy ones. In the
    study of networks, less weight on positives was better over all data sets together, and by points on some. A weight
    of a quarter gained more on some sets and lost more than a point on others. For bounds on positives it was tried on
    a few splits only, and gained nothing.
    """
    bound = None if problem.group is not None or problem.kind != CUT else deciding_bound(problem)
    if bound is None or not isinstance(bound.quantity, Rate) or bound.quantity.whole != fpr.whole:
        return None
    return LOWERED if round(min(bound.bound, 1 - bound.bound), 9) <= FEW else None


def class_weights(rows: Rows, ratio: float) -> Tensor:
    """Sample weights of mean 1, with positives `ratio` times as heavy."""
    weights = torch.where(rows.labels > 0, ratio * rows.weights_or_ones, rows.weights_or_ones)
    return weights / weights.mean()


def ratio_for(pos_weight: float | Literal["balanced"] | None, rows: Rows) -> float:
    """The number of negatives that a positive counts for; "balanced" gives both classes the same weight in all."""
    if pos_weight == "balanced":
        weights = rows.weights_or_ones
        positives = (weights * rows.labels).sum()
        return float((weights.sum() - positives) / positives.clamp(min=1e-300))
    return 1.0 if pos_weight is None else float(pos_weight)


def deciding_bound(problem: Problem) -> Constraint | None:
    """The tightest bound on a rate that moves one way with the threshold; for an area, its middle."""
    if problem.over is not None:
        return Constraint(problem.over.rate, "==", (problem.over.low + problem.over.high) / 2)
    moving = [c for c in problem.constraints if isinstance(c.quantity, Rate) and c.quantity.direction]
    return min(moving, key=lambda c: min(c.bound, 1 - c.bound), default=None)
