"""The loss of `price.py` at the thresholds of an area, or one per group, on the processor: the same formulas in arrays.

A step of a small model counts few numbers, and the overhead of each operation on a tensor costs more than its numbers
do. So everything that does not change from step to step is an array of the plan, slopes are written out, and only the
counts of the batch itself are left to autograd. `price.py` stays the reference, for every metric, step and device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadScores
from setpoint.measure.rate import Gap
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.counted import Array, CountedRows, passing, slope_of
from setpoint.solve.price import BROKEN_PRICE, OVERFLOW, Damping
from setpoint.solve.ratio import Ratio, ratios_of
from setpoint.solve.with_slopes import with_slopes

#: Rows times thresholds that are counted at once: beyond that they leave the cache of the processor.
BLOCK = 2**17
#: Groups up to which plain numbers are quicker than arrays.
FEW_GROUPS = 16


class RowsAtMany(CountedRows):
    """A sample, ready to be counted at T thresholds: one per point of an area, or one per group."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.weights = None if sample.weights is None else sample.weights.numpy()
        self.groups = None if sample.n_groups is None or sample.groups is None else sample.groups.numpy()
        if self.groups is not None:
            self.places, self.size = 2 * self.groups + (self.labels == 0), 2 * (sample.n_groups or 0)
            self.totals = np.bincount(self.places, self.weights, self.size).reshape(-1, 2).astype(np.float64)
        elif self.weights is None:
            positives = float(np.count_nonzero(self.labels))
            self.totals = np.array([[positives, len(self.labels) - positives]])
        else:
            self.weighed = self.sides(self.weights)
            self.totals = self.weighed.sum(1, dtype=np.float64)[None]
        self.positives, self.negatives = self.totals.sum(0).tolist()

    def levels(self, thresholds: Array) -> Array:
        """The threshold of each row, in a shape that scores are compared with."""
        thresholds = thresholds.astype(self.scores.dtype, copy=False)
        if self.groups is not None:
            per_row: Array = thresholds.ravel()[self.groups]
            return per_row
        return thresholds[:, None]

    def blocks(self, thresholds: int) -> list[slice]:
        """The thresholds of an area, in blocks to be counted one after the other."""
        step = max(BLOCK // max(len(self.scores), 1), 1)
        if self.groups is not None or thresholds <= step:
            return [slice(None)]
        return [slice(start, start + step) for start in range(0, thresholds, step)]

    def soft_counts(self, thresholds: Array, heat: float) -> Array:
        """The four counts under the sigmoid step, `(T, 4)`."""
        return self._all_four(self._soft(thresholds, heat, 1)[0])

    def counts_and_pace(self, thresholds: Array, heat: float) -> tuple[Array, Array]:
        """The same, and their derivatives by their thresholds per unit of temperature, `(T, 4)`."""
        above, rising = self._soft(thresholds, heat, 2)
        return self._all_four(above), np.concatenate([-rising, rising], 1)

    def true_counts(self, thresholds: Array) -> Array:
        """The four counts `(T, 4)` of the rows above their thresholds."""
        above = self.scores > self.levels(thresholds)
        return self._all_four(self._above(above.astype(np.float64)[None])[0])

    def loss(
        self, scores: Tensor, thresholds: Tensor, heat: float, value: float, slope: Array, counts: Array, share: float
    ) -> Tensor:
        """value + slope . (soft counts of these rows / share - counts), with its slopes by scores and thresholds.

        Above and below add up to 1, so that the counts below are those of all rows less those above.
        """
        net = (slope[:, :2] - slope[:, 2:]) / share
        fixed = value - float(np.vdot(slope, counts)) + float((slope[:, 2:] * self.totals).sum()) / share
        number, by_scores, by_thresholds = fixed, None, []
        for some in self.blocks(len(net)):
            if self.passed is None:
                passed, slopes = self.passing(thresholds.detach().numpy()[some], heat, 2)
            else:
                passed = self.passed
                slopes = slope_of(passed, np.empty_like(passed)) if self.slopes is None else self.slopes
            own = self.priced(net[some])
            number += float(np.vdot(passed, own))
            slopes *= own
            slopes *= heat
            if thresholds.requires_grad:
                by_thresholds.append(-self.per_threshold(slopes))
            summed = slopes if slopes.ndim == 1 else slopes.sum(0)
            by_scores = summed if by_scores is None else by_scores + summed

        def again(scores: Tensor, thresholds: Tensor = thresholds) -> Tensor:
            levels = thresholds.to(scores.dtype)
            levels = levels[:, None] if self.groups is None else levels[0, torch.from_numpy(self.groups)]
            return torch.sigmoid(heat * (scores - levels)).mul(torch.from_numpy(self.priced(net))).sum() + fixed

        assert by_scores is not None
        if not thresholds.requires_grad:
            return with_slopes(number, (by_scores,), again, scores)
        return with_slopes(number, (by_scores, np.concatenate(by_thresholds)), again, scores, thresholds)

    def passing(self, thresholds: Array, heat: float, parts: int) -> Array:
        """How far each row passes and, as a second part, the slope of that per unit of temperature.

        It is `(parts, n)` for one threshold per group, else `(parts, m, n)`.
        """
        levels = self.levels(thresholds)
        rows = self.scores.shape if levels.ndim == 1 else (len(levels), len(self.scores))
        found: Array = np.empty((parts, *rows), self.scores.dtype)
        passing(self.scores, levels, heat, found[0])
        if parts > 1:
            slope_of(found[0], found[1])
        return found

    def _soft(self, thresholds: Array, heat: float, parts: int) -> Array:
        """The weight of each side that passes each threshold and, as a second part, its slope: `(parts, T, 2)`."""
        blocks = self.blocks(len(thresholds))
        if len(blocks) > 1:
            return np.concatenate([self._above(self.passing(thresholds[some], heat, parts)) for some in blocks], 1)
        found = self.passing(thresholds, heat, parts)
        self.passed, self.slopes = found if parts > 1 else (found[0], None)
        return self._above(found)

    def _all_four(self, above: Array) -> Array:
        return np.concatenate([above, self.totals - above], 1)

    def priced(self, net: Array) -> Array:
        """The weight of each row times the price of its class `(T, 2)`: in the shape of the margins."""
        if self.groups is not None:
            own: Array = net.ravel()[self.places].astype(self.scores.dtype, copy=False)
            return own if self.weights is None else own * self.weights
        net = net.astype(self.scores.dtype, copy=False)
        if self.weights is None:
            own = (net[:, :1] - net[:, 1:]) * self.labels
            own += net[:, 1:]
        else:
            own = net @ self.weighed
        return own

    def per_threshold(self, terms: Array) -> Array:
        """Sums of terms in the shape of the margins, in that of the thresholds."""
        if self.groups is not None:
            return np.bincount(self.groups, terms, self.size // 2)[None]
        summed: Array = terms.sum(-1)
        return summed

    def _above(self, passed: Array) -> Array:
        """The weight of each side that passes each threshold, for each of k shares of the rows: `(k, T, 2)`."""
        if self.groups is not None:
            shares = passed if self.weights is None else passed * self.weights
            return np.stack([np.bincount(self.places, own, self.size).reshape(-1, 2) for own in shares])
        if self.weights is not None:
            weighed: Array = (passed @ self.weighed.T).astype(np.float64)
            return weighed.reshape(len(passed), -1, 2)
        found = np.empty((passed.size // len(self.scores), 2))
        found[:, 0], found[:, 1] = (passed @ self.labels).ravel(), passed.sum(-1).ravel()
        found[:, 1] -= found[:, 0]
        return found.reshape(len(passed), -1, 2)


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


class PlanAtMany:
    """A problem whose quantities are rates at the points of an area, or rates and gaps of rates between groups."""

    rows = RowsAtMany

    def __init__(self, problem: Problem) -> None:
        over, constraints = problem.over, problem.constraints
        self.is_area = over is not None
        #: The rates of all groups together.
        self.overall = ratios_of(problem)
        #: Parts and wholes of the objective and of the rate of an area, `(4, 2)`.
        sides = _sides([problem.objective, *([over.rate] if over else [])])
        self.parts, self.wholes = (side.T.copy() for side in sides)
        gaps = [(place, c.quantity.rate) for place, c in enumerate(constraints) if isinstance(c.quantity, Gap)]
        #: The places of bounds on gaps among all bounds, and those of the others.
        self.gap_places = [place for place, _ in gaps]
        self.plain_places = [place for place in range(len(constraints)) if place not in self.gap_places]
        self.gap_parts, self.gap_wholes = _sides([rate for _, rate in gaps])
        #: The rate whose gap is the only bound.
        self.only_gap = Ratio.of(gaps[0][1]) if gaps and len(constraints) == 1 else None
        self.sign = (-1.0 if problem.maximize else 1.0) / problem.n_thresholds
        self.bounds = np.array(over.bounds if over is not None else [c.bound for c in constraints], float)
        self.signs = np.array([-1.0 if c.relation == ">=" else 1.0 for c in constraints], float)

    def excesses(self, counts: Array) -> Array:
        """The excess of each bound at true counts."""
        return self.expand(counts).excesses

    def weighed(self, counts: Array, weight: float, prices: Array, sizes: Any = None) -> tuple[float, Array]:
        """weight x cost + prices . excesses around counts `(T, 4)`, and its slope by each of them."""
        here = self.expand(counts)
        return weight * here.cost + float(prices @ here.excesses), here.slope(prices, weight=weight)

    def solved(
        self, counts: Array, pace: Array, active: Array, broken: Array, damping: Damping
    ) -> tuple[float, Array, Array]:
        """cost + prices . excesses around soft counts, its slope by each of them, and the prices, solved for.

        `pace` are the derivatives of the counts by their thresholds, `(T, 4)`. The prices are those of
        `price.solve_prices`, and in the slope those of passing, `price.hold_passing`, where a threshold is free.
        """
        if self.only_gap is not None and 1 < len(counts) <= FEW_GROUPS:
            found = self._solved_with_gap(self.only_gap, counts.tolist(), pace.tolist(), active, broken, damping)
            if found is not None:
                return found
        here = self.expand(counts)
        cost_slope, excess_slopes = (here.cost_slope * pace).sum(-1), (here.excess_slopes * pace).sum(-1)
        prices = self._prices(cost_slope, excess_slopes, active, damping)
        prices[broken] = BROKEN_PRICE
        hold = None
        if not self.is_area and np.count_nonzero(active) < counts.shape[0] and not broken.any():
            left, passing = cost_slope + prices @ excess_slopes, pace[:, :2].sum(1)
            hold = _clipped(-left * passing / (passing * passing + damping.slope_floor**2), damping)
        return here.cost + float(prices @ here.excesses), here.slope(prices, hold), prices

    def _solved_with_gap(
        self,
        rate: Ratio,
        counts: list[list[float]],
        paces: list[list[float]],
        active: Array,
        broken: Array,
        damping: Damping,
    ) -> tuple[float, Array, Array] | None:
        """The same in plain numbers where a gap is the bound: the pseudo-inverse of a row. None if a group is empty."""
        if not all(sum(map(mul, rate.whole, own)) > 0 for own in counts):
            return None
        cost, cost_slopes = self.overall[0].at([sum(column) for column in zip(*counts)])
        rates = [rate.at(own) for own in counts]
        values = [value for value, _ in rates]
        high, low = max(values), min(values)
        # Groups that share an end of the gap share its slope.
        sign, (at_top, at_end) = float(self.signs[0]), (values.count(high), values.count(low))
        shares = [sign * ((value == high) / at_top - (value == low) / at_end) for value in values]
        slopes = [[share * slope for slope in own] for share, (_, own) in zip(shares, rates)]
        costs = [sum(map(mul, cost_slopes, pace)) for pace in paces]
        moves = [sum(map(mul, own, pace)) for own, pace in zip(slopes, paces)]
        if not math.isfinite(sum(costs) + sum(moves)):
            raise BadScores(OVERFLOW)
        floor, most = damping.slope_floor**2, damping.price_limit
        price, hold = 0.0, [0.0] * len(counts)
        if broken[0]:
            price = BROKEN_PRICE
        else:
            if active[0]:
                price = min(max(-sum(map(mul, moves, costs)) / (sum(map(mul, moves, moves)) + floor), -most), most)
            passing = [pace[0] + pace[1] for pace in paces]
            left = [of_cost + price * move for of_cost, move in zip(costs, moves)]
            hold = [min(max(-own * by / (by * by + floor), -most), most) for own, by in zip(left, passing)]
        rows = []
        for (by_tp, by_fp, by_fn, by_tn), held in zip(slopes, hold):
            tp, fp, fn, tn = cost_slopes
            rows.append([tp + price * by_tp + held, fp + price * by_fp + held, fn + price * by_fn, tn + price * by_tn])
        return cost + price * sign * (high - low - float(self.bounds[0])), np.array(rows), np.array([price])

    def expand(self, counts: Array) -> Around:
        """The problem to first order around counts `(T, 4)`."""
        if not self.is_area:
            return self._expand_groups(counts)
        values, slopes = _rates(counts, self.parts, self.wholes)
        cost, cost_slope = self.sign * float(values[:, 0].sum()), self.sign * slopes[:, :, 0]
        return Around(counts, cost, values[:, 1] - self.bounds, cost_slope, slopes[:, :, 1])

    def _expand_groups(self, counts: Array) -> Around:
        """The same with one threshold per group: rates of all rows together, and gaps between groups."""
        total = counts.sum(0).tolist()
        (cost, cost_slopes), *plain = [ratio.at(total) for ratio in self.overall]
        cost_slope = np.empty_like(counts)
        cost_slope[:] = cost_slopes
        excesses, excess_slopes = np.empty(len(self.signs)), np.empty((len(self.signs), *counts.shape))
        for place, (excess, slopes) in zip(self.plain_places, plain):
            excesses[place], excess_slopes[place] = excess, slopes
        gaps, rising = self._gaps(counts)
        places, signs = self.gap_places, self.signs[self.gap_places]
        excesses[places] = signs * (gaps - self.bounds[places])
        excess_slopes[places] = signs[:, None, None] * rising
        return Around(counts, cost, excesses, cost_slope, excess_slopes)

    def _gaps(self, counts: Array) -> tuple[Array, Array]:
        """The gaps between groups `(q,)`, and their slopes by each count `(q, T, 4)`."""
        whole = self.gap_wholes @ counts.T
        empty = whole <= 0
        if empty.any():
            over, nobody = ~empty / np.where(empty, 1.0, whole), empty.all(1, keepdims=True)
            each = self.gap_parts @ counts.T * over
            highest = np.where(nobody, 0.0, np.where(empty, -np.inf, each).max(1, keepdims=True))
            lowest = np.where(nobody, 0.0, np.where(empty, np.inf, each).min(1, keepdims=True))
            at_top, at_end = (each == highest) & ~empty, (each == lowest) & ~empty
        else:
            over = 1.0 / whole
            each = self.gap_parts @ counts.T * over
            highest, lowest = each.max(1, keepdims=True), each.min(1, keepdims=True)
            at_top, at_end = each == highest, each == lowest
        # Groups that share an end of the gap share its slope.
        share = at_top / np.maximum(at_top.sum(1, keepdims=True), 1)
        share -= at_end / np.maximum(at_end.sum(1, keepdims=True), 1)
        slopes = self.gap_parts[:, None] - each[:, :, None] * self.gap_wholes[:, None]
        slopes *= (over * share)[:, :, None]
        return (highest - lowest)[:, 0], slopes

    def _prices(self, cost_slope: Array, excess_slopes: Array, active: Array, damping: Damping) -> Array:
        """The prices of `price.solve_prices`, of areas and of groups."""
        floor = damping.slope_floor**2
        if not excess_slopes.size:
            return np.zeros(len(excess_slopes))
        if not math.isfinite(excess_slopes.sum() + cost_slope.sum()):
            raise BadScores(OVERFLOW)
        if self.is_area:
            own = excess_slopes * active
            found = -own * cost_slope / (own * own + floor)
        elif len(active) == 1:
            # One bound: the pseudo-inverse of a row.
            slopes = excess_slopes * active[:, None]
            found = -(slopes @ cost_slope) / ((slopes * slopes).sum() + floor)
        else:
            # Of the active bounds alone: rounding would give the others a small price.
            left, stretch, right = np.linalg.svd(excess_slopes[active], full_matrices=False)
            found = np.zeros(len(active))
            found[active] = -left @ (stretch / (stretch * stretch + floor) * (right @ cost_slope))
        return _clipped(found, damping)


def _sides(rates: list[Any]) -> tuple[Array, Array]:
    """Parts and wholes of rates, `(q, 4)` each."""
    parts, wholes = [rate.part for rate in rates], [rate.whole for rate in rates]
    return np.array(parts, float).reshape(-1, 4), np.array(wholes, float).reshape(-1, 4)


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
