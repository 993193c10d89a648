"""The best band: the pair of cuts that is best among all pairs, exactly, in O(n log n).

Every rate of a band is the sum of a part that the upper cut brings and a part that the lower cut brings. For each upper
cut the bounds therefore allow a stretch of lower cuts, and the best lower cut of a stretch is a range minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.decide.by_rank import EQUAL
from setpoint.errors import BadProblem
from setpoint.measure.band import BandRate, is_one_sided
from setpoint.measure.constraint import SLACK, Constraint
from setpoint.measure.curve import Curve, curve
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Band

Numbers = NDArray[np.float64]
#: Of equally good upper cuts so many are looked at for the narrowest band.
_EQUALS = 256


def find_band(problem: Problem, sample: Sample) -> Band:
    """The best pair of cuts that meets all bounds, of equally good ones the narrowest band.

    If no pair meets all bounds, the pair breaks the bounds on one cut each least; bounds on both cuts together, such as
    that on `review`, are then left aside.
    """
    return band_of(Pairs(problem, curve(sample.scores, sample.labels, sample.weights)).best())


@dataclass(frozen=True)
class CutPair:
    """A pair of cuts by their numbers, `high` at most `low`, with the curve that they are cuts of."""

    cuts: Curve
    high: int
    low: int


def band_of(chosen: CutPair) -> Band:
    """The thresholds of a pair of cuts."""
    high, low = chosen.cuts.thresholds(torch.tensor([chosen.high, chosen.low])).tolist()
    return Band(low, high)


class Pairs:
    """All pairs of cuts of one curve.

    Args:
        problem: The problem, of kind "band".
        cuts: The curve.
        highs: The upper cuts that may be chosen, as a boolean mask; all of them if None.
        lows: The lower cuts that may be chosen, likewise.
    """

    def __init__(
        self,
        problem: Problem,
        cuts: Curve,
        highs: NDArray[np.bool_] | None = None,
        lows: NDArray[np.bool_] | None = None,
    ) -> None:
        size = len(cuts.tp)
        self.problem, self.cuts = problem, cuts
        self.highs = np.ones(size, dtype=bool) if highs is None else highs
        self.lows = np.ones(size, dtype=bool) if lows is None else lows
        self.sign = -1.0 if problem.maximize else 1.0

        one_sided = [c for c in problem.constraints if is_one_sided(c)]
        self.broken_high, self.broken_low = (self._broken(one_sided, side) for side in (0, 1))

    def best(self) -> CutPair:
        """The best pair, or the pair that breaks its bounds least."""
        return self.feasible() or self._least_broken(self.broken_high, self.broken_low)

    def feasible(self) -> CutPair | None:
        """The best pair that meets all bounds, if there is one."""
        stretches = self._stretches([c for c in self.problem.constraints if not is_one_sided(c)])
        highs, lows = self.highs & (self.broken_high <= SLACK), self.lows & (self.broken_low <= SLACK)
        return self._within(highs, lows, *stretches)

    def _broken(self, bounds: list[Constraint], side: int) -> Numbers:
        """How far the bounds on one of the two cuts are broken at each cut."""
        total = np.zeros(len(self.highs))
        for c in bounds:
            upper, lower = self._parts(c.quantity)
            if _of(c.quantity).sides[side]:
                # The other cut brings the same to the value wherever it lies.
                value = upper + lower[0] if side == 0 else lower + upper[0]
                total += np.maximum(value - c.bound if c.relation == "<=" else c.bound - value, 0.0)
        return total

    def _parts(self, quantity: object) -> tuple[Numbers, Numbers]:
        upper, lower = _of(quantity).of_cuts(self.cuts)
        return upper.numpy(), lower.numpy()

    def _stretches(self, bounds: list[Constraint]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last lower cut that the bounds on both cuts allow beside each upper cut."""
        size = len(self.highs)
        first, last = np.arange(size), np.full(size, size - 1)
        for c in bounds:
            upper, lower = self._parts(c.quantity)
            falls = _falls(c)
            room = c.bound - upper + (SLACK if c.relation == "<=" else -SLACK)
            # In the order of rising values: from the first lower cut to the last, or the other way round.
            rising = lower[::-1] if falls else lower
            if c.relation == "<=":
                end = np.searchsorted(rising, room, side="right") - 1
                first, last = (np.maximum(first, size - 1 - end), last) if falls else (first, np.minimum(last, end))
            else:
                start = np.searchsorted(rising, room, side="left")
                first, last = (first, np.minimum(last, size - 1 - start)) if falls else (np.maximum(first, start), last)
        return first, last

    def _within(
        self, highs: NDArray[np.bool_], lows: NDArray[np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> CutPair | None:
        """The best pair among these upper and lower cuts, each lower cut within the stretch of its upper cut."""
        upper, lower = (self.sign * part for part in self._parts(self.problem.objective))
        cost = upper + range_minimum(np.where(lows, lower, np.inf), first, last)
        cost = np.where(highs, cost, np.inf)
        if not np.isfinite(cost).any():
            return None
        pairs = []
        for high in np.flatnonzero(cost <= cost.min() + EQUAL)[:_EQUALS]:
            stretch = slice(first[high], last[high] + 1)
            fits = lows[stretch] & (upper[high] + lower[stretch] <= cost.min() + EQUAL)
            pairs += [(int(high), int(first[high]) + int(place)) for place in np.flatnonzero(fits)[:1]]
        passed = (self.cuts.tp + self.cuts.fp).numpy()
        return CutPair(self.cuts, *min(pairs, key=lambda pair: passed[pair[1]] - passed[pair[0]]))

    def _least_broken(self, broken_high: Numbers, broken_low: Numbers) -> CutPair:
        """The pair that breaks the bounds on one cut each least, the narrowest band among equals."""
        size = len(broken_high)
        above, below = np.where(self.highs, broken_high, np.inf), np.where(self.lows, broken_low, np.inf)
        total = above + range_minimum(below, np.arange(size), np.full(size, size - 1))
        high = int(np.flatnonzero(total <= total.min() + EQUAL)[-1])
        low = high + int(np.flatnonzero(above[high] + below[high:] <= total.min() + EQUAL)[0])
        return CutPair(self.cuts, high, low)


def _of(quantity: object) -> BandRate:
    assert isinstance(quantity, BandRate)
    return quantity


def _falls(constraint: Constraint) -> bool:
    """Whether the value falls, or stays, as the lower cut lets more rows be reviewed instead of left unflagged."""
    _, _, fn, tn, rp, rn = _of(constraint.quantity).part
    if rp <= fn and rn <= tn:
        return True
    if rp >= fn and rn >= tn:
        return False
    raise BadProblem(f"{constraint} rises and falls with the lower cut, so the best band is not found exactly; drop it")


def range_minimum(values: Numbers, first: NDArray[np.int64], last: NDArray[np.int64]) -> Numbers:
    """The least of `values[first : last + 1]` for each pair of ends; infinity where a range is empty."""
    found = np.full(len(first), np.inf)
    length = last - first + 1
    levels = np.where(length > 0, np.frexp(np.maximum(length, 1))[1] - 1, -1)
    # `least[i]` is the least of the 2^level values from i on; two such blocks cover a range.
    least = values
    for level in range(int(levels.max()) + 1):
        asked = np.flatnonzero(levels == level)
        found[asked] = np.minimum(least[first[asked]], least[last[asked] - 2**level + 1])
        if 2 ** (level + 1) <= len(values):
            blocks = len(values) - 2 ** (level + 1) + 1
            least = np.minimum(least[:blocks], least[2**level : 2**level + blocks])
    return found
