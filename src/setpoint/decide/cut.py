"""The best thresholds: the best feasible of all cuts, exactly, from one sort or by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from setpoint.decide.by_gap import OneGap
from setpoint.decide.by_group import find_by_group
from setpoint.decide.by_level import Bounded, Levelled
from setpoint.decide.by_rank import EQUAL, Ranked
from setpoint.measure.constraint import SLACK, Quantity
from setpoint.measure.curve import Curve, curve, curve_of_fixed_length, curve_of_top
from setpoint.measure.looks import constant, constant_like, may_look
from setpoint.measure.rate import Range, flagged, fpr
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

#: Bounds that let a larger share be flagged, and fewer rows, are not worth a selection before the sort.
SMALL, FEW = 0.25, 1024


@dataclass(frozen=True)
class Found:
    """Thresholds `(m,)`, the true counts there `(m, 4)`, and which bounds hold them in place `(k,)`.

    With one threshold per group: `(1, G)` and `(1, G, 4)`.
    """

    thresholds: Tensor
    counts: Tensor
    feasible: Tensor
    active: Tensor


class Finder:
    """The search for the best cut of a problem; what does not depend on a sample is worked out once."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.by_group = problem, problem.group is not None
        self.ranked = None if self.by_group else Ranked.of(problem)
        self.in_arrays = Levelled.of(problem) or Bounded.of(problem)
        self.one_gap = OneGap.of(problem)
        self.limit = None if self.by_group else _limit(problem)

    def __call__(self, sample: Sample) -> Found:
        problem, sees = self.problem, may_look(sample.scores)
        if self.by_group:
            plain = sample.weights is None and sees and sample.scores.dtype == sample.dtype
            by_gap = self.one_gap.find(sample) if self.one_gap is not None and plain else None
            return Found(*(by_gap or find_by_group(problem, sample)))
        if self.ranked is not None and sample.weights is None and sees:
            by_rank = self.ranked.find(sample.scores, sample.labels)
            if by_rank is not None:
                return Found(*by_rank)
        heaviest = 1.0 if sample.weights is None or not problem.constraints else sample.weights.max()
        edge = self._edge(sample, *self.limit) if self.limit and sample.weights is None and sees else None
        if self.in_arrays is not None and sample.weights is None and sees and sample.scores.dtype == sample.dtype:
            found = self.in_arrays.find(sample.scores, sample.labels, edge)
            if found is not None:
                return Found(*found)
        if edge is not None:
            return find_among(problem, curve_of_top(sample.scores, sample.labels, edge))
        make = curve if sees else curve_of_fixed_length
        return find_among(problem, make(sample.scores, sample.labels, sample.weights), heaviest)

    def _edge(self, sample: Sample, share: float, of_negatives: bool) -> float | None:
        """A score below which no cut can be the best, nor beside it; None if all scores should be looked at."""
        scores = sample.scores.detach().to(sample.dtype).numpy()
        if len(scores) < FEW:
            return None
        rows = scores[sample.labels.numpy() == 0] if of_negatives else scores
        # The row that a cut may not flag any more, and another beyond it.
        place = len(rows) - 2 - int(share * len(rows))
        if place < 2:
            return None
        ordered = np.partition(rows, (place - 2, place))
        return float(ordered[place - 2]) if ordered[place - 2] < ordered[place] else None


def _limit(problem: Problem) -> tuple[float, bool] | None:
    """The share, of the negatives or of all rows, that the only bound allows to be flagged, if it is small.

    With several bounds there may be no cut that meets all, and the cut that breaks them least may lie anywhere.
    """
    if problem.over is not None:
        rate, share = cast(Quantity, problem.over.rate), problem.over.high
    elif len(problem.constraints) == 1 and problem.constraints[0].relation != ">=":
        rate, share = problem.constraints[0].quantity, problem.constraints[0].bound
    else:
        return None
    of_negatives = bool(rate == fpr)
    return (share, of_negatives) if share <= SMALL and (of_negatives or bool(rate == flagged)) else None


def find(problem: Problem, sample: Sample) -> Found:
    """The best feasible cut; if there is none, the cut that breaks the bounds least.

    An equality is met by the nearest cut, and counts as feasible within the weight of one sample. Among cuts
    of equal objective the one closest to its bounds is taken: on new data it has the most to gain. A bound is
    active when a neighbouring cut would break it; equalities always are.
    """
    return Finder(problem)(sample)


def find_among(problem: Problem, cuts: Curve, heaviest: float | Tensor = 1.0) -> Found:
    """The best of the given cuts; no sample weighs more than `heaviest`. Not for problems that compare groups."""
    counts = cuts.counts
    if problem.over is not None:
        chosen = _cuts_at_levels(problem, problem.over, counts)
        chosen = chosen if cuts.places is None else cuts.places[chosen]
        active = torch.ones(len(chosen), dtype=torch.bool, device=counts.device)
        return Found(cuts.thresholds(chosen), counts[chosen], problem.holding(counts), active)
    violations = problem.violations_per_cut(counts)
    best = _first_best(criteria(problem, violations, problem.costs(counts), violations))
    chosen = best.view(1)
    equality = constant(tuple(c.relation == "==" for c in problem.constraints), torch.bool, counts.device)
    active = equality | (violations[:, cuts.beside(best)] > SLACK).any(1)
    return Found(cuts.thresholds(chosen), counts[chosen], problem.holding(counts[chosen], heaviest), active)


def best_cut(problem: Problem, counts: Tensor) -> Tensor:
    """The place of the best of some cuts, from the counts at each."""
    violations = problem.violations_per_cut(counts)
    return _first_best(criteria(problem, violations, problem.costs(counts), violations))


def criteria(problem: Problem, violations: Tensor, cost: Tensor, farthest: Tensor) -> list[Tensor]:
    """The criteria by which cuts are compared, one after the other; smaller is better in each.

    The violation of all bounds, the distance from all equalities, the cost, and then the nearness to the bounds.
    `violations` and `farthest` are `(k, m)`, `cost` and each criterion `(m,)`.
    """
    bounds = [v.clamp(min=SLACK) for v, c in zip(violations, problem.constraints) if c.relation != "=="]
    targets = [v for v, c in zip(violations, problem.constraints) if c.relation == "=="]
    return [*_sum(bounds), *_sum(targets), cost, *([-farthest.sum(0)] if problem.constraints else [])]


def _first_best(criteria: list[Tensor]) -> Tensor:
    """The place of the best cut; of equals the first."""
    # From the first criterion to the last, keep only the cuts that are as good as the best.
    alive: Tensor | None = None
    for criterion in criteria:
        lowest = (criterion if alive is None else torch.where(alive, criterion, torch.inf)).min()
        as_good = criterion <= lowest + EQUAL
        alive = as_good if alive is None else alive & as_good
    assert alive is not None
    return alive.byte().argmax()


def _sum(parts: list[Tensor]) -> list[Tensor]:
    """A list with the sum of the parts, or an empty list."""
    return [torch.stack(parts).sum(0)] if len(parts) > 1 else parts


def _cuts_at_levels(problem: Problem, over: Range, counts: Tensor) -> Tensor:
    """The cut whose rate is nearest to each point of the range; among equally near cuts the better one."""
    level, last = over.rate(counts), len(counts) - 1
    falling = over.rate.direction < 0
    level = level.flip(0) if falling else level
    bounds = constant_like(tuple(over.bounds), level)
    above = torch.searchsorted(level, bounds).clamp(max=last)
    below = (above - 1).clamp(min=0)
    near = torch.where(bounds - level[below] < level[above] - bounds, level[below], level[above])
    first = torch.searchsorted(level, near)
    final = torch.searchsorted(level, near, right=True) - 1
    if falling:
        first, final = last - first, last - final
    cost = problem.costs(counts)
    return torch.where(cost[first] <= cost[final], first, final)
