"""Areas: the exact mean of an objective over a range of another rate.

If the objective is a share of a fixed whole (recall, fpr, ...), both rates are linear between neighbouring cuts and the
trapezoid is exact; for the full ROC area it is the share of correctly ordered pairs, ties counted half. Otherwise
(precision, ...) the value at level r is that of the first cut whose rate reaches r: a step function, whose full area
over recall is the average precision. All areas are divided by the width of the range, so they are on the scale of the
objective.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.errors import MissingClass
from setpoint.measure.constraint import Quantity
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Range, Rate, fpr, precision, recall


def mean_over(cuts: Curve, objective: Quantity, stretch: Range) -> Tensor:
    """The mean of `objective` over `stretch`, from all cuts: a 0-dimensional float64 tensor."""
    counts = cuts.counts
    if float(stretch.rate.size(counts[0])) <= 0:
        raise MissingClass(f"the area over {stretch.rate} needs samples of the class that it is a share of")
    level, value = stretch.rate(counts), objective(counts)
    if stretch.rate.direction < 0:
        level, value = level.flip(0), value.flip(0)
    low, high = level.new_tensor(stretch.low), level.new_tensor(stretch.high)
    left, right = level[:-1].clamp(low, high), level[1:].clamp(low, high)
    if isinstance(objective, Rate) and objective.has_fixed_whole:
        rise = level[1:] - level[:-1]
        slope = torch.where(rise > 0, (value[1:] - value[:-1]) / torch.where(rise > 0, rise, 1), 0)
        middle = value[:-1] + slope * ((left + right) / 2 - level[:-1])
    else:
        # The cut that reaches the level is the one that flags more, wherever the list starts.
        middle = value[1:] if stretch.rate.direction > 0 else value[:-1]
    return ((right - left) * middle).sum() / (high - low)


def roc_area(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Mean recall over FPR in `low ... high`; the AUC when the range is whole."""
    return mean_over(curve(scores, labels, weights), recall, fpr.between(low, high))


def pr_area(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Mean precision over recall in `low ... high`; the average precision when the range is whole."""
    return mean_over(curve(scores, labels, weights), precision, recall.between(low, high))


def mcclish(area: Tensor, low: float, high: float) -> Tensor:
    """The partial ROC area rescaled so that chance is 1/2 and perfection 1: (1 + (a - c) / (1 - c)) / 2.

    `area` is a mean over FPR in `low ... high`, whose value by chance is c, the middle of the range.
    """
    chance = (low + high) / 2
    return (1 + (area - chance) / (1 - chance)) / 2
