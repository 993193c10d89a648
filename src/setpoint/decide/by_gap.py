"""The best thresholds per group under one bound on a gap, in plain arrays: the search of `by_group.py` for training.

Without weights a rate such as the false positive rate takes the levels 0/N, 1/N, ..., N/N in a group of N negatives, so
the levels inside a window are counted off instead of searched for, and all windows of a group hold the same number of
levels, up to one. The lowest cost in each window is then the lower of two overlapping runs of one length.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_group import WINDOWS, edges_of, threshold_of
from setpoint.decide.by_rank import EQUAL
from setpoint.measure.constraint import SLACK
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

Array = NDArray[Any]
#: The rows that a rate is a share of, by its whole; a rate of those that pass and one of the others have one gap.
POSITIVES, NEGATIVES, ALL = (1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 1, 1)
#: Numbers of groups are sorted by their digits, as integers of 16 bits.
MOST_GROUPS = 2**15


class OneGap:
    """A rate as the objective, under one bound on the gap of another, both with a whole that no threshold changes."""

    def __init__(self, objective: Rate, rate: Rate, problem: Problem) -> None:
        self.counted, self.bound = tuple(rate.whole), problem.constraints[0].bound
        tp, fp, fn, tn = objective.part
        #: What one more true positive and one more false positive cost: whole numbers, so that equal cuts are equal.
        self.costs = (fn - tp, tn - fp) if problem.maximize else (tp - fn, fp - tn)

    @staticmethod
    def of(problem: Problem) -> OneGap | None:
        """The search of a problem; None where it is of another kind."""
        gap = problem.constraints[0] if len(problem.constraints) == 1 else None
        if gap is None or gap.relation != "<=" or not isinstance(gap.quantity, Gap):
            return None
        rate, objective = gap.quantity.rate, problem.objective
        part, whole = tuple(rate.part), tuple(rate.whole)
        shares = [(*whole[:2], 0, 0), (0, 0, *whole[2:])] if whole in (POSITIVES, NEGATIVES, ALL) else []
        if part not in shares or not isinstance(objective, Rate) or not objective.has_fixed_whole:
            return None
        return OneGap(objective, rate, problem)

    def find(self, sample: Sample) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """Thresholds, counts, whether the bound holds and whether it is active, as `find_by_group` has them.

        None if there is one group, or some group has no rows that the rate is a share of.
        """
        if not 1 < (sample.n_groups or 0) <= MOST_GROUPS:
            return None
        groups, tp, fp = _cuts(sample)
        counted = tp if self.counted == POSITIVES else fp if self.counted == NEGATIVES else tp + fp
        for group in groups:
            group.counted = counted[group.place]
            group.size = int(group.counted[-1])
        if any(group.size == 0 for group in groups):
            return None
        cost: Array = self.costs[0] * tp + self.costs[1] * fp
        window = self._free_window(groups, cost) or self._best_window(groups, counted, cost)
        if window is None:
            return None
        cuts = [group.cheapest_within(*window, cost[group.place]) for group in groups]
        thresholds = np.array([[threshold_of(group.values, cut) for group, cut in zip(groups, cuts)]])
        passed = [(tp[group.place], fp[group.place]) for group in groups]
        counts = [[p[cut], n[cut], p[-1] - p[cut], n[-1] - n[cut]] for cut, (p, n) in zip(cuts, passed)]
        thresholds = thresholds.astype(groups[0].values.dtype, copy=False)
        arrays = thresholds, np.array([counts]), *map(np.array, self._judged(groups, cuts))
        return tuple(map(torch.from_numpy, arrays))  # type: ignore[return-value]

    def _free_window(self, groups: list[_Group], cost: Array) -> tuple[float, float] | None:
        """The lowest window that holds a cheapest cut of every group; None if the bound stands against them."""
        rates = [group.rate(int(cost[group.place].argmin())) for group in groups]
        most = self.bound + SLACK
        if max(rates) - min(rates) > most:
            return None
        low = min(group.level_from(max(rates) - most) for group in groups)
        return low - SLACK, low + most

    def _best_window(self, groups: list[_Group], counted: Array, cost: Array) -> tuple[float, float] | None:
        """The ends of the window in which the cheapest cuts of all groups together cost least."""
        # The cuts of each level: every group begins anew at level 0.
        last = np.flatnonzero(counted[1:] != counted[:-1])
        first, last = np.concatenate([[0], last + 1]), np.concatenate([last, [len(counted) - 1]])
        # At one level only rows of the other class pass one after the other, so the cheapest cut stands at an end.
        reached, cheapest = counted[first].astype(np.intp), np.minimum(cost[first], cost[last])
        ends = first.searchsorted([group.place.stop for group in groups]).tolist()
        for group, start, end in zip(groups, [0, *ends], ends):
            group.reached, group.cheapest = reached[start:end], cheapest[start:end]
        levels = [group.reached / group.size for group in groups]
        # The levels of each group ascend, and a stable sort merges what is in order already.
        few = len(reached) <= WINDOWS
        low = np.sort(np.concatenate(levels), kind="stable") if few else edges_of(levels)
        high, low = low + (self.bound + SLACK), low - SLACK
        others = groups[1:]
        total = groups[0].lowest_within(low, high)
        if total is None:
            return None
        # A window can be the best only if it might cost as little as one that is known.
        total += sum(float(group.cheapest.min()) for group in others)
        known = int(total.argmin())
        most = sum(group.lowest_in(float(low[known]), float(high[known])) for group in groups)
        kept = np.flatnonzero(total <= most + EQUAL)
        low, high, total = low[kept], high[kept], total[kept]
        for group in others:
            lowest = group.lowest_within(low, high)
            if lowest is None:
                return None
            total += lowest - group.cheapest.min()
        best = int(total.argmin())
        return float(low[best]), float(high[best])

    def _judged(self, groups: list[_Group], cuts: list[int]) -> tuple[bool, list[bool]]:
        """Whether the bound holds, and whether moving one group to a neighbouring cut would break it."""
        most = self.bound + SLACK
        rates = [group.rate(cut) for group, cut in zip(groups, cuts)]
        ordered = sorted(rates)
        lowest, highest = ordered[0], ordered[-1]
        active = False
        for group, cut, rate in zip(groups, cuts, rates):
            # The ends of the rates of all other groups.
            low, high = ordered[rate == lowest], ordered[-1 - (rate == highest)]
            for moved in (cut - 1, cut + 1):
                if 0 <= moved <= len(group.values):
                    to = group.rate(moved)
                    active |= max(to, high) - min(to, low) > most
        return highest - lowest <= most, [active]


class _Group:
    """The cuts of one group.

    Attributes:
        values: Its distinct scores, the highest first.
        place: Where its cuts stand among those of all groups; there is one more than scores.
        counted: How many rows the rate counts at each cut.
        size: How many rows the rate is a share of.
        reached: The different numbers of `counted`.
        cheapest: The lowest cost of a cut at each of them.
    """

    counted: Array
    size: int
    reached: Array
    cheapest: Array

    def __init__(self, values: Array, place: slice) -> None:
        self.values, self.place = values, place

    def rate(self, cut: int) -> float:
        return float(self.counted[cut]) / self.size

    def cheapest_within(self, low: float, high: float, cost: Array) -> int:
        """The cheapest cut whose level lies in a window; among equal cuts, flagging more wins."""
        first, last = self.counted.searchsorted(self._numbers(low, high)).tolist()
        return int(last) - 1 - int(cost[first:last][::-1].argmin())

    def level_from(self, low: float) -> float:
        """The lowest level that is not below a number."""
        return float(self.counted[self.counted.searchsorted(math.ceil(low * self.size))]) / self.size

    def lowest_in(self, low: float, high: float) -> float:
        """The lowest cost in one window; infinite if the group has no cut there."""
        first, last = self.reached.searchsorted(self._numbers(low, high)).tolist()
        return float(self.cheapest[first:last].min(initial=np.inf))

    def _numbers(self, low: float, high: float) -> tuple[int, int]:
        """The first number of counted rows in a window, and the first beyond it."""
        return math.ceil(low * self.size), int(high * self.size) + 1

    def lowest_within(self, low: Array, high: Array) -> Array | None:
        """The lowest cost in each of many windows, which ascend; infinite where the group has no cut."""
        first, last = np.ceil(low * self.size).astype(np.intp), (high * self.size).astype(np.intp)
        width = last - first
        fewest, most = int(width.min()) + 1, int(width.max()) + 1
        run = 1 << max(fewest, 1).bit_length() - 1
        if most > 2 * run:
            return None
        lowest = np.full(int(last[-1]) + 2, np.inf)
        within = self.reached.searchsorted(len(lowest))
        lowest[self.reached[:within]] = self.cheapest[:within]
        step = 1
        while step < run:
            lowest = np.minimum(lowest[:-step], lowest[step:])
            step *= 2
        found: Array = np.minimum(lowest[first], lowest[last - (run - 1)])
        if fewest < 1:
            found[width < 0] = np.inf
        return found


def _cuts(sample: Sample) -> tuple[list[_Group], Array, Array]:
    """The groups, and how many positives and negatives pass at each of their cuts, one group after the other."""
    assert sample.groups is not None
    assert sample.n_groups is not None
    scores, labels, numbers = sample.scores.detach().numpy(), sample.labels.numpy(), sample.groups.numpy()
    ends = np.bincount(numbers, None, sample.n_groups).cumsum().tolist()
    values, classes = _sorted(scores, labels, numbers)
    positives, each = np.zeros(len(scores) + 1), np.arange(len(scores) + 1.0)
    classes.cumsum(out=positives[1:])
    tied = not (values[1:] != values[:-1]).all()
    groups, tps, passing = [], [], []
    place = 0
    for start, end in zip([0, *ends], ends):
        own, tp, passes = values[start:end], positives[start : end + 1] - positives[start], each[: end - start + 1]
        if tied:
            # A cut stands where the next score is lower.
            cuts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1], [True][: len(own)]]))
            own, tp, passes = own[cuts[1:] - 1], tp[cuts], passes[cuts]
        groups.append(_Group(own, slice(place, place + len(tp))))
        tps.append(tp)
        passing.append(passes)
        place += len(tp)
    tp = np.concatenate(tps)
    return groups, tp, np.concatenate(passing) - tp


def _sorted(scores: Array, labels: Array, numbers: Array) -> tuple[Array, Array]:
    """Scores and labels, one group after the other and the highest scores first."""
    if scores.dtype != np.float32:
        places = np.argsort(-scores)
        places = places[np.argsort(numbers[places].astype(np.int16), kind="stable")]
        return scores[places], labels[places].astype(np.float64)
    # Group, score and label as one integer: numbers are sorted in a fraction of the time that their places take.
    keys = (~_as_ordered(scores.view(np.int32))).astype(np.int64)
    keys += 2**31
    keys <<= 1
    keys |= labels.astype(np.int64)
    keys |= numbers << 33
    keys.sort()
    ordered = ~((keys >> 1) - 2**31).astype(np.uint32).view(np.int32)
    return _as_ordered(ordered).view(np.float32), (keys & 1).astype(np.float64)


def _as_ordered(bits: Array) -> Array:
    """The bits of a float32 as an integer of the same order; and back again."""
    ordered: Array = bits ^ (bits >> 31 & 2**31 - 1)
    return ordered
