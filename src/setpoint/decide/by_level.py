"""The cuts at the levels of an area, or under bounds, in plain arrays: the search of `cut.py` for batches that train.

A batch has few cuts, and the overhead of each operation on a tensor would cost more than its numbers do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.measure.constraint import SLACK
from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem

Array = NDArray[Any]
#: Above so many rows the sort takes nearly all of the time, and tensors are sorted as fast.
MOST = 2**16


class Levelled:
    """An area of one rate over another, whose cuts are the nearest to each of its levels."""

    def __init__(self, objective: Rate, problem: Problem) -> None:
        over = problem.over
        assert over is not None
        self.bounds, self.falling = np.array(over.bounds), over.rate.direction < 0
        #: Parts and wholes of the rate of the levels and of the objective, `(2, 4)`.
        self.parts = np.array([over.rate.part, objective.part], float)
        self.wholes = np.array([over.rate.whole, objective.whole], float)
        self.sign = -1.0 if problem.maximize else 1.0

    @staticmethod
    def of(problem: Problem) -> Levelled | None:
        """The search of a problem; None where it is no area of rates."""
        if problem.over is None or problem.constraints or not isinstance(problem.objective, Rate):
            return None
        return Levelled(problem.objective, problem)

    def find(self, scores: Tensor, labels: Tensor, edge: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """Thresholds, counts, that no bound is broken, and that each holds its threshold; as `find_among` has them.

        Scores below `edge` count as one range. None for many rows.
        """
        values, classes = scores.detach().numpy(), labels.numpy()
        if not 0 < len(values) <= MOST:
            return None
        lowest, highest, counts = _cuts(values, classes, edge)
        chosen = self._nearest(counts)
        thresholds, active = _thresholds(lowest, highest, chosen), np.ones(len(chosen), bool)
        found = (thresholds, counts[:, chosen].T.copy(), np.array(True), active)
        return tuple(torch.from_numpy(part) for part in found)  # type: ignore[return-value]

    def _nearest(self, counts: Array) -> Array:
        """The cut whose rate is nearest to each level; among equally near cuts the better one."""
        wholes = self.wholes @ counts
        level, value = self.parts @ counts / np.where(wholes > 0, wholes, np.inf)
        last, level = len(level) - 1, level[::-1] if self.falling else level
        above = np.minimum(level.searchsorted(self.bounds), last)
        below = np.maximum(above - 1, 0)
        over, under = level[above], level[below]
        near = np.where(self.bounds - under < over - self.bounds, under, over)
        first, final = level.searchsorted(near), level.searchsorted(near, "right") - 1
        if self.falling:
            first, final = last - first, last - final
        nearest: Array = np.where(self.sign * value[first] <= self.sign * value[final], first, final)
        return nearest


class Bounded:
    """A rate as the objective, under bounds on rates: the best feasible of all cuts, as `find_among` has it."""

    def __init__(self, rates: list[Rate], problem: Problem) -> None:
        self.parts = np.array([rate.part for rate in rates], float)
        self.wholes = np.array([rate.whole for rate in rates], float)
        self.cost_sign = -1.0 if problem.maximize else 1.0
        self.signs = np.array([[-1.0 if c.relation == ">=" else 1.0] for c in problem.constraints]).reshape(-1, 1)
        self.bounds = np.array([[c.bound] for c in problem.constraints]).reshape(-1, 1)
        self.equal = np.array([c.relation == "==" for c in problem.constraints], bool)

    @staticmethod
    def of(problem: Problem) -> Bounded | None:
        """The search of a problem; None where it is about more than rates at one threshold."""
        asked = [problem.objective, *(c.quantity for c in problem.constraints)]
        rates = [quantity for quantity in asked if isinstance(quantity, Rate)]
        plain = problem.over is None and problem.group is None and len(rates) == len(asked)
        return Bounded(rates, problem) if plain else None

    def find(self, scores: Tensor, labels: Tensor, edge: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """Threshold, counts, whether the bounds hold, and which of them are active. None for many rows."""
        values, classes = scores.detach().numpy(), labels.numpy()
        if not 0 < len(values) <= MOST:
            return None
        lowest, highest, counts = _cuts(values, classes, edge)
        sizes = self.wholes @ counts
        rates = self.parts @ counts / np.where(sizes > 0, sizes, np.inf)
        broken = self.signs * (rates[1:] - self.bounds)
        broken[self.equal] = np.abs(broken[self.equal])
        best = self._best(broken, self.cost_sign * rates[0])
        beside = broken[:, max(best - 1, 0) : best + 2]
        # An equality is met within one sample.
        slack = self.equal * np.divide(1.0, sizes[1:, best], out=np.zeros(len(broken)), where=sizes[1:, best] > 0)
        feasible, active = np.array((broken[:, best] <= SLACK + slack).all()), self.equal | (beside > SLACK).any(1)
        chosen = np.array([best])
        found = (_thresholds(lowest, highest, chosen), counts[:, chosen].T.copy(), feasible, active)
        return tuple(torch.from_numpy(part) for part in found)  # type: ignore[return-value]

    def _best(self, broken: Array, cost: Array) -> int:
        """The first of the cuts that are best by the criteria of `cut.criteria`, one after the other."""
        kept: Array = np.arange(len(cost))
        bounds = np.maximum(broken[~self.equal], SLACK)
        # A sum over no bounds is 0 everywhere, and keeps all cuts.
        for criterion in (bounds.sum(0), broken[self.equal].sum(0), cost, -broken.sum(0)):
            own = criterion[kept]
            kept = kept[own <= own.min() + EQUAL]
        return int(kept[0])


def _cuts(values: Array, classes: Array, edge: float | None) -> tuple[Array, Array, Array]:
    """The lowest and highest score of each value, the highest first, and the counts at each cut, `(4, c)`.

    Scores below `edge` count as one range.
    """
    positives = float(np.count_nonzero(classes))
    above = None if edge is None else values >= edge
    top, own = (values, classes) if above is None else (values[above], classes[above])
    order = np.argsort(-top)
    ordered = top[order]
    tp, passed = np.zeros(len(top) + 1), np.arange(len(top) + 1.0)
    (own[order] > 0).cumsum(out=tp[1:])
    parted = ordered[1:] != ordered[:-1]
    if not parted.all():
        last = np.append(np.flatnonzero(parted), len(ordered) - 1)
        ordered, cuts = ordered[last], np.append(0, last + 1)
        tp, passed = tp[cuts], passed[cuts]
    lowest = highest = ordered
    if above is not None:
        rest = values[~above]
        tp, passed = np.append(tp, positives), np.append(passed, len(values))
        lowest, highest = np.append(ordered, rest.min()), np.append(ordered, rest.max())
    fp = passed - tp
    return lowest, highest, np.stack([tp, fp, positives - tp, len(values) - positives - fp])


def _thresholds(lowest: Array, highest: Array, cuts: Array) -> Array:
    """The threshold of each cut, as `Curve.thresholds` has it."""
    last = len(lowest) - 1
    upper, lower = lowest[np.maximum(cuts - 1, 0)], highest[np.minimum(cuts, last)]
    middle = upper / 2 + lower / 2
    found: Array = np.where((middle < upper) & (middle > lower), middle, lower)
    found[cuts == 0] = highest[0]
    if (cuts > last).any():
        found = np.where(cuts > last, np.nextafter(upper, upper.dtype.type(-np.inf)), found)
    return found
