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

from setpoint.decide.by_group import edges_of, threshold_of
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
        self.counts, self.bound = tuple(rate.whole), problem.constraints[0].bound
        self.part = np.array(objective.part, float) * (-1.0 if problem.maximize else 1.0)
        self.whole = np.array(objective.whole, float)

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
        values, table, begins = _cuts(sample)
        tp, fp = table[:, 0], table[:, 1]
        counted = tp if self.counts == POSITIVES else fp if self.counts == NEGATIVES else tp + fp
        ends = [*begins[1:], len(counted)]
        sizes = [int(counted[end - 1]) for end in ends]
        if not all(sizes):
            return None
        cost: Array = table @ (self.part / max(table[begins].sum(0) @ self.whole, 1e-300))
        # The first cut of each level of each group: every group begins anew at level 0.
        first = np.flatnonzero(np.concatenate([[True], counted[1:] != counted[:-1]]))
        places, cheapest = np.searchsorted(first, [*begins, len(counted)]).tolist(), np.minimum.reduceat(cost, first)
        reached = counted[first].astype(np.intp)
        of_groups = [slice(*ends) for ends in zip(places, places[1:])]
        low = edges_of([reached[own] / size for own, size in zip(of_groups, sizes)])
        high, low = low + (self.bound + SLACK), low - SLACK
        total = np.zeros(len(low))
        for own, size in zip(of_groups, sizes):
            lowest = _lowest_within(low, high, size, reached[own], cheapest[own])
            if lowest is None:
                return None
            total += lowest
        best = int(total.argmin())
        groups = [
            _Group(values[begin - number : end - 1 - number], counted[begin:end], size)
            for number, (begin, end, size) in enumerate(zip(begins, ends, sizes))
        ]
        cuts = [
            group.cheapest_within(float(low[best]), float(high[best]), cost[begin:end])
            for group, begin, end in zip(groups, begins, ends)
        ]
        thresholds = [threshold_of(group.values, cut) for group, cut in zip(groups, cuts)]
        found = np.array([thresholds], values.dtype), table[[begin + cut for begin, cut in zip(begins, cuts)]][None]
        return (*map(torch.from_numpy, found), *map(torch.tensor, self._judged(groups, cuts)))  # type: ignore[return-value]

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
    """The cuts of one group: its distinct scores, the highest first, and how many rows the rate counts at each cut."""

    def __init__(self, values: Array, counted: Array, size: int) -> None:
        self.values, self.counted, self.size = values, counted, size

    def cheapest_within(self, low: float, high: float, cost: Array) -> int:
        """The cheapest cut whose level lies in a window; among equal cuts, flagging more wins."""
        first, last = self.counted.searchsorted([math.ceil(low * self.size), int(high * self.size) + 1]).tolist()
        return int(last) - 1 - int(cost[first:last][::-1].argmin())

    def rate(self, cut: int) -> float:
        return float(self.counted[cut]) / self.size


def _cuts(sample: Sample) -> tuple[Array, Array, list[int]]:
    """The distinct scores of all groups, one group after the other and the highest first; the counts at all cuts.

    The table of counts is `(cuts, 4)`; each group has one cut more than scores, and the last result are their places.
    """
    assert sample.groups is not None and sample.n_groups is not None
    scores, labels, numbers = sample.scores.detach().numpy(), sample.labels.numpy(), sample.groups.numpy()
    places = np.argsort(-scores)
    numbers = numbers[places].astype(np.int16)
    in_groups = np.argsort(numbers, kind="stable")
    places, numbers = places[in_groups], numbers[in_groups]
    values, positive = scores[places], labels[places]
    sizes, positives = np.bincount(numbers, None, sample.n_groups), np.bincount(numbers, positive, sample.n_groups)
    each = np.arange(len(values) + len(sizes))
    begins = sizes.cumsum() - sizes + each[: len(sizes)]
    table = np.empty((len(each), 4))
    rising = np.zeros(len(each))
    at = each[1 : len(values) + 1] + numbers
    rising[at] = positive
    # The sum begins anew with every group.
    rising[begins[1:]] -= positives[:-1]
    tp = rising.cumsum(out=rising)
    fp = each - begins.repeat(sizes + 1) - tp
    table[:, 0], table[:, 1] = tp, fp
    np.subtract(positives.repeat(sizes + 1), tp, out=table[:, 2])
    np.subtract((sizes - positives).repeat(sizes + 1), fp, out=table[:, 3])
    parted = values[1:] != values[:-1]
    if not parted.all():
        # A cut stands where the next score of the group is lower.
        parted = np.append(parted | (numbers[1:] != numbers[:-1]), True)
        kept = np.ones(len(each), bool)
        kept[at] = parted
        begins, values, table = kept.cumsum()[begins] - 1, values[parted], table[kept]
    return values, table, begins.tolist()


def _lowest_within(low: Array, high: Array, size: int, reached: Array, cheapest: Array) -> Array | None:
    """The lowest cost among the cuts of a group in each window; infinite where it has none.

    Args:
        low: Where each window begins, ascending.
        high: Where each window ends.
        size: Rows of the group that the rate is a share of.
        reached: How many of them are counted, at each level.
        cheapest: The lowest cost at each level.
    """
    first, last = np.ceil(low * size).astype(np.intp), (high * size).astype(np.intp)
    width = last - first
    fewest, most = int(width.min()) + 1, int(width.max()) + 1
    run = 1 << max(fewest, 1).bit_length() - 1
    if most > 2 * run:
        return None
    lowest = np.full(int(last[-1]) + 1, np.inf)
    lowest[reached] = cheapest
    step = 1
    while step < run:
        lowest = np.minimum(lowest[:-step], lowest[step:])
        step *= 2
    found: Array = np.minimum(lowest[first], lowest[last - (run - 1)])
    if fewest < 1:
        found[width < 0] = np.inf
    return found
