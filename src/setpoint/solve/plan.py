"""The loss of `price.py` for rates and gaps on the processor: the same formulas, worked out once per problem.

A step of a small model counts few numbers, and the overhead of each operation on a tensor costs more than its numbers
do. So everything that does not change from step to step is an array of the plan, slopes are written out, and only the
counts of the batch itself are left to autograd. `price.py` stays the reference, for every metric, step and device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.errors import BadScores
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.measure.step import HingeStep, SigmoidStep, SmoothStep, SoftplusStep
from setpoint.problem.problem import Problem
from setpoint.solve.price import OVERFLOW, Damping
from setpoint.solve.with_slopes import with_slopes

Array = NDArray[Any]
#: Rows times thresholds that are counted at once: beyond that they leave the cache of the processor.
BLOCK = 2**17


class Countable:
    """A sample as arrays, ready to be counted at T thresholds: one, one per point of an area or one per group."""

    def __init__(self, sample: Sample) -> None:
        self.scores, labels = sample.scores.detach().numpy(), sample.labels.numpy()
        self.weights = None if sample.weights is None else sample.weights.numpy()
        self.groups = None if sample.n_groups is None or sample.groups is None else sample.groups.numpy()
        if self.groups is None:
            #: The weight of each row as a positive and as a negative, `(2, n)`.
            self.sides = np.empty((2, len(labels)), labels.dtype)
            if self.weights is None:
                self.sides[0] = labels
                np.subtract(1, labels, out=self.sides[1])
                self.positives = float(np.count_nonzero(labels))
                self.negatives = len(labels) - self.positives
                self.totals = np.array([[self.positives, self.negatives]])
                return
            np.multiply(labels, self.weights, out=self.sides[0])
            np.subtract(self.weights, self.sides[0], out=self.sides[1])
            self.totals = self.sides.sum(1, dtype=np.float64)[None]
        else:
            self.places, self.size = 2 * self.groups + (labels == 0), 2 * (sample.n_groups or 0)
            self.totals = np.bincount(self.places, self.weights, self.size).reshape(-1, 2).astype(np.float64)
        self.positives, self.negatives = self.totals.sum(0).tolist()

    @property
    def mass(self) -> float:
        return float(self.positives + self.negatives)

    @property
    def has_both_classes(self) -> bool:
        return bool(self.positives > 0 and self.negatives > 0)

    def margins(self, thresholds: Array) -> Array:
        """Scores less their thresholds: `(n,)` for one threshold or one per group, else `(m, n)`."""
        thresholds = thresholds.astype(self.scores.dtype, copy=False)
        own = thresholds.ravel()[self.groups] if self.groups is not None else thresholds
        return self.scores - (own[:, None] if self.groups is None and len(own) > 1 else own)

    def blocks(self, thresholds: int) -> list[slice]:
        """The thresholds of an area, in blocks to be counted one after the other."""
        step = max(BLOCK // max(len(self.scores), 1), 1)
        if self.groups is not None or thresholds <= step:
            return [slice(None)]
        return [slice(start, start + step) for start in range(0, thresholds, step)]

    def soft_counts(self, thresholds: Array, heat: float) -> tuple[Array, Array]:
        """The four counts under the sigmoid step `(T, 4)`, and their pace."""
        shares = (softly(self.margins(thresholds[some]), heat) for some in self.blocks(len(thresholds)))
        found = [(self.counts(passed), self.pace(passed)) for passed in shares]
        if len(found) == 1:
            return found[0]
        counts, paces = zip(*found)
        return np.concatenate(counts), np.concatenate(paces)

    def counts(self, passed: Array) -> Array:
        """The four counts `(T, 4)`, from the share of each row that passes."""
        above = self._above(passed)
        return np.concatenate([above, self.totals - above], 1)

    def true_counts(self, margins: Array) -> Array:
        """The four counts `(T, 4)` of the rows with margins above 0."""
        above = margins > 0
        if self.groups is not None or self.weights is not None or above.ndim > 1:
            return self.counts(above.astype(np.float64))
        tp = np.count_nonzero(self.sides[0][above])
        fp = np.count_nonzero(above) - tp
        return np.array([[tp, fp, self.positives - tp, self.negatives - fp]])

    def counts_by(self, step: SmoothStep, margins: Array) -> Array:
        """The four counts at one threshold under any step, `(1, 4)`."""
        above, below = (side(torch.from_numpy(margins)).numpy() for side in (step.above, step.below))
        return np.concatenate([self._above(above), self._above(below)], 1)

    def pace(self, passed: Array) -> Array:
        """The derivatives of soft counts by their thresholds per unit of temperature, `(T, 4)`."""
        rising = self._above(passed - passed * passed)
        return np.concatenate([-rising, rising], 1)

    def priced(self, net: Array) -> Array:
        """The weight of each row times the price of its class `(T, 2)`: in the shape of the margins."""
        if self.groups is None:
            own: Array = net.astype(self.sides.dtype, copy=False) @ self.sides
            return own[0] if len(own) == 1 else own
        own = net.ravel()[self.places].astype(self.scores.dtype, copy=False)
        return own if self.weights is None else own * self.weights

    def per_threshold(self, terms: Array) -> Array:
        """Sums of terms in the shape of the margins, in that of the thresholds."""
        if self.groups is not None:
            return np.bincount(self.groups, terms, self.size // 2)[None]
        return np.atleast_1d(terms.sum(-1))

    def _above(self, passed: Array) -> Array:
        """The weight of each side that passes each threshold, `(T, 2)`."""
        if self.groups is None:
            return np.atleast_2d(passed @ self.sides.T).astype(np.float64)
        weighed = passed if self.weights is None else passed * self.weights
        return np.bincount(self.places, weighed, self.size).reshape(-1, 2)


def softly(margins: Array, heat: float) -> Array:
    """The sigmoid step in the place of the margins."""
    return torch.from_numpy(margins).mul_(heat).sigmoid_().numpy()


@dataclass(frozen=True)
class Around:
    """Cost and excesses to first order around some counts `(T, 4)`: see `price.Expansion`.

    `excess_slopes` are `(k, T, 4)`; for areas, whose every bound is about its own threshold, the diagonal `(T, 4)`.
    """

    counts: Array
    cost: float
    excesses: Array
    cost_slope: Array
    excess_slopes: Array

    def slope(self, prices: Array, hold: Array | None = None, *, weight: float = 1.0) -> Array:
        """The derivative of weight x cost + prices . excesses + hold . passing by each count, `(T, 4)`."""
        slope = weight * self.cost_slope
        if self.excess_slopes.ndim == 2:
            slope += prices[:, None] * self.excess_slopes
        else:
            for price, excess_slope in zip(prices.tolist(), self.excess_slopes):
                slope += price * excess_slope
        if hold is not None:
            slope[:, :2] += hold[:, None]
        return slope


class LossPlan:
    """A problem whose quantities are rates, or gaps of rates between groups, as arrays."""

    def __init__(self, problem: Problem) -> None:
        over, constraints = problem.over, problem.constraints
        plain = [(c, c.quantity) for c in constraints if isinstance(c.quantity, Rate)]
        gaps = [(c, c.quantity.rate) for c in constraints if isinstance(c.quantity, Gap)]
        rates = [problem.objective, *([] if over is None else [over.rate]), *(rate for _, rate in plain)]
        #: Parts and wholes of the objective and of the rates that all rows together are about, `(4, q)`.
        self.parts, self.wholes = self._sides(rates)
        self.fixed = np.array([getattr(rate, "has_fixed_whole", False) for rate in rates])
        self.gap_parts, self.gap_wholes = self._sides([rate for _, rate in gaps])
        #: The order of bounds is that of the problem: the plain ones, and those of gaps, go there.
        order = [constraints.index(c) for c, _ in (*plain, *gaps)]
        self.order = None if order == sorted(order) else np.argsort(order)
        ordered = [c for c, _ in (*plain, *gaps)]
        self.is_area, self.by_group, self.has_gaps = over is not None, problem.group is not None, bool(gaps)
        self.points = problem.n_thresholds
        self.sign = (-1.0 if problem.maximize else 1.0) / self.points
        self.bounds = np.array(over.bounds if over is not None else [c.bound for c in ordered], float)
        self.signs = np.array([-1.0 if c.relation == ">=" else 1.0 for c in ordered], float)

    @staticmethod
    def of(problem: Problem, step: Callable[[Tensor], SmoothStep]) -> LossPlan | None:
        """The plan of a problem under a step; None if `price.py` has to do it."""
        quantities = [problem.objective, *(c.quantity for c in problem.constraints)]
        if step is not SigmoidStep or not all(isinstance(q, Rate | Gap) for q in quantities):
            return None
        return LossPlan(problem)

    @staticmethod
    def of_learned(problem: Problem, step: Callable[[Tensor], SmoothStep]) -> LossPlan | None:
        """The same where prices and threshold are learned: one threshold may be learned by the convex steps too."""
        one = problem.over is None and problem.group is None
        quantities = [problem.objective, *(c.quantity for c in problem.constraints)]
        if step in (SoftplusStep, HingeStep) and one and all(isinstance(q, Rate) for q in quantities):
            return LossPlan(problem)
        return LossPlan.of(problem, step)

    @staticmethod
    def _sides(rates: list[Any]) -> tuple[Array, Array]:
        return (
            np.array([rate.part for rate in rates], float).reshape(-1, 4).T.copy(),
            np.array([rate.whole for rate in rates], float).reshape(-1, 4).T.copy(),
        )

    def excesses(self, counts: Array) -> Array:
        """The excess of each bound at true counts."""
        return self.expand(counts).excesses

    def expand(self, counts: Array, sizes: Array | None = None) -> Around:
        """The problem to first order around counts `(T, 4)`.

        `sizes` are those of both classes, `(1, 2)`, under a step whose shares above and below do not add up to 1.
        """
        if self.by_group:
            return self._expand_groups(counts)
        values, slopes = _rates(counts, self.parts, self.wholes)
        if sizes is not None:
            whole = (sizes @ self.wholes[:2])[0]
            over = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
            values = np.where(self.fixed, counts @ self.parts * over, values)
            slopes = np.where(self.fixed, self.parts * over, slopes)
        cost, cost_slope = self.sign * float(values[:, 0].sum()), self.sign * slopes[:, :, 0]
        if self.is_area:
            return Around(counts, cost, values[:, 1] - self.bounds, cost_slope, slopes[:, :, 1])
        excess_slopes = self.signs[:, None, None] * slopes[:, :, 1:].transpose(2, 0, 1)
        return Around(counts, cost, self.signs * (values[0, 1:] - self.bounds), cost_slope, excess_slopes)

    def _expand_groups(self, counts: Array) -> Around:
        """The same with one threshold per group: rates of all rows together, and gaps between groups."""
        values, slopes = _rates(counts.sum(0, keepdims=True), self.parts, self.wholes)
        each, each_slopes = _rates(counts, self.gap_parts, self.gap_wholes)
        empty = counts @ self.gap_wholes <= 0
        highest, lowest = np.where(empty, -np.inf, each).max(0), np.where(empty, np.inf, each).min(0)
        nobody = empty.all(0)
        # Groups that share an end of the gap share its slope.
        at_top, at_end = (each == highest) & ~empty, (each == lowest) & ~empty
        share = at_top / np.maximum(at_top.sum(0), 1) - at_end / np.maximum(at_end.sum(0), 1)
        gaps = np.where(nobody, 0.0, np.where(nobody, 0.0, highest) - np.where(nobody, 0.0, lowest))
        levels = np.concatenate([values[0, 1:], gaps])
        spread = np.broadcast_to(slopes[:, :, 1:], (len(counts), *slopes[:, :, 1:].shape[1:]))
        rising = np.concatenate([spread, each_slopes * share[:, None]], 2).transpose(2, 0, 1)
        excesses, excess_slopes = self.signs * (levels - self.bounds), self.signs[:, None, None] * rising
        if self.order is not None:
            excesses, excess_slopes = excesses[self.order], excess_slopes[self.order]
        cost_slope = np.repeat(self.sign * slopes[:, :, 0], len(counts), 0)
        return Around(counts, self.sign * float(values[0, 0]), excesses, cost_slope, excess_slopes)

    def by_threshold(self, around: Around, pace: Array) -> tuple[Array, Array]:
        """Slopes of the cost `(T,)`, and of the excesses `(k, T)`, for areas `(T,)`, when thresholds move counts."""
        return (around.cost_slope * pace).sum(-1), (around.excess_slopes * pace).sum(-1)

    def prices(self, cost_slope: Array, excess_slopes: Array, active: Array, damping: Damping) -> Array:
        """The prices of `price.solve_prices`."""
        floor = damping.slope_floor**2
        if not excess_slopes.size:
            return np.zeros(len(excess_slopes))
        if not math.isfinite(excess_slopes.sum() + cost_slope.sum()):
            raise BadScores(OVERFLOW)
        if self.is_area:
            own = excess_slopes * active
            found = -own * cost_slope / (own * own + floor)
        elif len(active) == 1 or len(cost_slope) == 1:
            # One bound or one threshold: the pseudo-inverse of a row or of a column.
            slopes = excess_slopes * active[:, None]
            found = -(slopes @ cost_slope) / ((slopes * slopes).sum() + floor)
        else:
            # Of the active bounds alone: rounding would give the others a small price.
            left, stretch, right = np.linalg.svd(excess_slopes[active], full_matrices=False)
            found = np.zeros(len(active))
            found[active] = -left @ (stretch / (stretch * stretch + floor) * (right @ cost_slope))
        return _clipped(found, damping)

    def hold(self, cost_slope: Array, excess_slopes: Array, prices: Array, pace: Array, damping: Damping) -> Array:
        """The prices of passing of `price.hold_passing`, where a threshold is free."""
        left, passing = cost_slope + prices @ excess_slopes, pace[:, :2].sum(1)
        found = -left * passing / (passing * passing + damping.slope_floor**2)
        return _clipped(found, damping)


def _clipped(prices: Array, damping: Damping) -> Array:
    found: Array = np.minimum(np.maximum(prices, -damping.price_limit), damping.price_limit)
    return found


def _rates(counts: Array, parts: Array, wholes: Array) -> tuple[Array, Array]:
    """The q rates of counts `(T, 4)`, and their slopes by each count: `(T, q)` and `(T, 4, q)`; 0 of nothing."""
    whole = counts @ wholes
    if whole.size and whole.min() > 0:
        over = 1.0 / whole
    else:
        present = whole > 0
        over = present / np.where(present, whole, 1.0)
    values = counts @ parts * over
    return values, (parts - values[:, None] * wholes) * over[:, None]


def batch_loss(
    batch: Sample,
    rows: Countable,
    thresholds: Tensor,
    heat: float,
    value: float,
    slope: Array,
    counts: Array,
    share: float,
) -> Tensor:
    """value + slope . (soft counts of the batch / share - counts), with its slopes by scores and thresholds.

    Above and below add up to 1, so that the counts below are those of all rows less those above.
    """
    net = (slope[:, :2] - slope[:, 2:]) / share
    fixed = value - float(np.vdot(slope, counts)) + float((slope[:, 2:] * rows.totals).sum()) / share
    number, by_scores, by_thresholds = fixed, None, []
    for some in rows.blocks(len(net)):
        passed = softly(rows.margins(thresholds.detach().numpy()[some]), heat)
        own = rows.priced(net[some])
        number += float(np.vdot(passed, own))
        slopes = passed * passed
        np.subtract(passed, slopes, out=slopes)
        slopes *= own
        slopes *= heat
        if thresholds.requires_grad:
            by_thresholds.append(-rows.per_threshold(slopes))
        summed = slopes if slopes.ndim == 1 else slopes.sum(0)
        by_scores = summed if by_scores is None else by_scores + summed

    def again(scores: Tensor, thresholds: Tensor = thresholds) -> Tensor:
        levels = thresholds.to(scores.dtype)
        if rows.groups is not None:
            levels = levels[0, batch.groups]
        elif len(levels) > 1:
            levels = levels[:, None]
        return torch.sigmoid(heat * (scores - levels)).mul(torch.from_numpy(rows.priced(net))).sum() + fixed

    assert by_scores is not None
    if not thresholds.requires_grad:
        return with_slopes(number, (by_scores,), again, batch.scores)
    return with_slopes(number, (by_scores, np.concatenate(by_thresholds)), again, batch.scores, thresholds)


def convex_loss(
    batch: Sample, rows: Countable, thresholds: Tensor, step: SmoothStep, slope: Array, share: float
) -> Tensor:
    """The part of the same loss that depends on scores and threshold, under a step that does not add up to 1."""
    sides = torch.from_numpy((slope.reshape(2, 2) / share).astype(rows.sides.dtype) @ rows.sides)
    margins = batch.scores - thresholds.to(batch.scores.dtype)
    return torch.dot(step.above(margins), sides[0]) + torch.dot(step.below(margins), sides[1])
