"""The loss of rates at one threshold, in plain numbers: a few operations on the rows, then four counts.

A step of a small model counts few rows, and the overhead of each operation on them costs more than they do.
"""

from __future__ import annotations

import math
from operator import mul

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadScores
from setpoint.measure.sample import Sample
from setpoint.measure.step import SmoothStep
from setpoint.problem.problem import Problem
from setpoint.solve.counted import Array, CountedRows, passing, slope_of
from setpoint.solve.price import BROKEN_PRICE, OVERFLOW, Damping
from setpoint.solve.ratio import Four, ratios_of
from setpoint.solve.with_slopes import with_slopes


class RowsAtOne(CountedRows):
    """A sample, ready to be counted at one threshold."""

    def __init__(self, sample: Sample) -> None:
        super().__init__(sample)
        self.weighed: Array | None = None
        if sample.weights is None:
            # Booleans are counted in a fraction of the time that numbers take.
            self.positive = self.labels.astype(bool)
            self.positives = float(np.count_nonzero(self.positive))
            self.negatives = len(self.labels) - self.positives
        else:
            self.weighed = self.sides(sample.weights.numpy())
            self.positives, self.negatives = self.weighed.sum(1, dtype=np.float64).tolist()

    def soft_counts(self, thresholds: Array, heat: float) -> list[float]:
        """The four counts under the sigmoid step."""
        self.passed = self._passing(thresholds, heat, np.empty_like(self.scores))
        return self._all_four(self._above(self.passed[None])[0])

    def counts_and_pace(self, thresholds: Array, heat: float) -> tuple[list[float], list[float]]:
        """The four counts under the sigmoid step, and their derivatives by the threshold per unit of temperature."""
        both: Array = np.empty((2, len(self.scores)), self.scores.dtype)
        self.passed, self.slopes = both
        slope_of(self._passing(thresholds, heat, self.passed), self.slopes)
        above, (by_tp, by_fp) = self._above(both)
        return self._all_four(above), [-by_tp, -by_fp, by_tp, by_fp]

    def counts_by(self, step: SmoothStep, thresholds: Array) -> list[float]:
        """The four counts under any step."""
        margins = torch.from_numpy(self.scores - thresholds.astype(self.scores.dtype, copy=False))
        (tp, fp), (fn, tn) = self._above(np.stack([step.above(margins).numpy(), step.below(margins).numpy()]))
        # Counts below stand in the order of those above.
        return [tp, fp, fn, tn]

    def true_counts(self, thresholds: Array) -> list[float]:
        """The four counts of the rows above the threshold."""
        above = self.scores > thresholds.astype(self.scores.dtype, copy=False)
        if self.weighed is not None:
            return self._all_four((self.weighed.astype(np.float64) @ above).tolist())
        passed = np.count_nonzero(above)
        tp = np.count_nonzero(above & self.positive)
        return self._all_four([float(tp), float(passed - tp)])

    def loss(
        self, scores: Tensor, thresholds: Tensor, heat: float, value: float, slope: Four, counts: Four, share: float
    ) -> Tensor:
        """value + slope . (soft counts of these rows / share - counts), with its slopes by scores and threshold.

        Above and below add up to 1, so that the counts below are those of all rows less those above.
        """
        by_tp, by_fp, by_fn, by_tn = slope
        fixed: float = value - sum(map(mul, slope, counts)) + (by_fn * self.positives + by_tn * self.negatives) / share
        own = self._priced((by_tp - by_fn) / share, (by_fp - by_tn) / share)
        if self.passed is None:
            self.passed = self._passing(thresholds.detach().numpy(), heat, np.empty_like(self.scores))
        slopes = slope_of(self.passed, np.empty_like(self.scores)) if self.slopes is None else self.slopes
        slopes *= own
        slopes *= heat
        number = fixed + float(self.passed.dot(own))

        def again(scores: Tensor, threshold: Tensor = thresholds) -> Tensor:
            passed = torch.sigmoid(heat * (scores - threshold.to(scores.dtype)))
            return (passed * torch.from_numpy(own)).sum() + fixed

        if not thresholds.requires_grad:
            return with_slopes(number, (slopes,), again, scores)
        return with_slopes(number, (slopes, -slopes.sum(keepdims=True)), again, scores, thresholds)

    def convex_loss(
        self, scores: Tensor, thresholds: Tensor, by: SmoothStep, value: float, slope: Four, counts: Four, share: float
    ) -> Tensor:
        """The same under a step that does not add up to 1."""
        tp, fp, fn, tn = (price / share for price in slope)
        above, below = (torch.from_numpy(self._priced(*prices)) for prices in ((tp, fp), (fn, tn)))
        fixed: float = value - sum(map(mul, slope, counts))
        levels = thresholds.detach().to(scores.dtype)

        def again(scores: Tensor, thresholds: Tensor) -> Tensor:
            margins = scores - thresholds.to(scores.dtype)
            return torch.dot(by.above(margins), above) + torch.dot(by.below(margins), below) + fixed

        margins = scores.detach() - levels
        slopes = by.slope.above(margins).mul_(above).addcmul_(by.slope.below(margins), below).numpy()
        number = float(again(scores.detach(), levels))
        return with_slopes(number, (slopes, -slopes.sum(keepdims=True)), again, scores, thresholds)

    def _passing(self, thresholds: Array, heat: float, out: Array) -> Array:
        return passing(self.scores, thresholds.astype(out.dtype, copy=False), heat, out)

    def _above(self, shares: Array) -> list[list[float]]:
        """The weight of the positives and of the negatives that pass, for each of k shares of the rows `(k, n)`."""
        if self.weighed is not None:
            found: list[list[float]] = (shares @ self.weighed.T).tolist()
            return found
        positive, everything = (shares @ self.labels).tolist(), shares.sum(-1).tolist()
        return [[tp, passed - tp] for tp, passed in zip(positive, everything)]

    def _all_four(self, above: list[float]) -> list[float]:
        tp, fp = above
        return [tp, fp, self.positives - tp, self.negatives - fp]

    def _priced(self, on_positive: float, on_negative: float) -> Array:
        """The weight of each row times the price of its class."""
        if self.weighed is not None:
            priced: Array = np.array([on_positive, on_negative], self.scores.dtype) @ self.weighed
            return priced
        own: Array = self.labels * (on_positive - on_negative)
        own += on_negative
        return own


class PlanAtOne:
    """A problem whose quantities are rates at one threshold."""

    rows = RowsAtOne

    def __init__(self, problem: Problem) -> None:
        self.ratios = ratios_of(problem)

    def excesses(self, counts: Four) -> Array:
        """The excess of each bound at true counts."""
        return np.array([ratio.at(counts)[0] for ratio in self.ratios[1:]])

    def weighed(
        self, counts: Four, weight: float, prices: Array, sizes: Four | None = None
    ) -> tuple[float, list[float]]:
        """weight x cost + prices . excesses around the counts, and its slope by each of them; `sizes` as in `Ratio`."""
        return _sum_of([ratio.at(counts, sizes) for ratio in self.ratios], [weight, *prices.tolist()])

    def solved(
        self, counts: Four, pace: Four, active: Array, broken: Array, damping: Damping
    ) -> tuple[float, list[float], list[float]]:
        """cost + prices . excesses around soft counts, its slope by each of them, and the prices, solved for.

        `pace` are the derivatives of the counts by the threshold. The prices are those of `price.solve_prices`, the
        pseudo-inverse of a column, and in the slope those of passing, `price.hold_passing`, where the threshold is
        free.
        """
        found = [ratio.at(counts) for ratio in self.ratios]
        cost_slope, *moves = [sum(map(mul, slopes, pace)) for _, slopes in found]
        if moves and not math.isfinite(cost_slope + sum(moves)):
            raise BadScores(OVERFLOW)
        floor, most = damping.slope_floor**2, damping.price_limit
        held = [move if on else 0.0 for move, on in zip(moves, active.tolist())]
        squares = sum(map(mul, held, held)) + floor
        prices = [
            BROKEN_PRICE if never else min(max(-move * cost_slope / squares, -most), most)
            for move, never in zip(held, broken.tolist())
        ]
        value, slope = _sum_of(found, [1.0, *prices])
        if not active.any() and not broken.any():
            passing = pace[0] + pace[1]
            hold = min(max(-cost_slope * passing / (passing * passing + floor), -most), most)
            slope[0] += hold
            slope[1] += hold
        return value, slope, prices


def _sum_of(parts: list[tuple[float, tuple[float, ...]]], factors: list[float]) -> tuple[float, list[float]]:
    """The sum of values and slopes by the four counts, each times its factor."""
    total, tp, fp, fn, tn = 0.0, 0.0, 0.0, 0.0, 0.0
    for factor, (value, (by_tp, by_fp, by_fn, by_tn)) in zip(factors, parts):
        total += factor * value
        tp, fp, fn, tn = tp + factor * by_tp, fp + factor * by_fp, fn + factor * by_fn, tn + factor * by_tn
    return total, [tp, fp, fn, tn]
