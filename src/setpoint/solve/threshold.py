"""Find the thresholds: the best feasible among all cuts, exactly, from one sort."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.measure.constraint import SLACK
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Range
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.by_group import find_by_group

#: Two cuts whose objectives differ by less are equally good.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Found:
    """Thresholds `(m,)`, the true counts there `(m, 4)`, and which bounds hold them in place `(k,)`.

    With one threshold a group: `(1, G)` and `(1, G, 4)`.
    """

    thresholds: Tensor
    counts: Tensor
    feasible: bool
    active: Tensor


def find(problem: Problem, sample: Sample) -> Found:
    """The best feasible cut; if there is none, the cut that breaks the bounds least.

    An equality is met by the nearest cut, and counts as feasible within the weight of one sample. Among cuts
    of equal objective the one closest to its bounds is taken: on new data it has the most to gain. A bound is
    active when a neighbouring cut would break it; equalities always are.
    """
    if problem.group is not None:
        return Found(*find_by_group(problem, sample))
    heaviest = 1.0 if sample.weights is None or not problem.constraints else float(sample.weights.max())
    return find_among(problem, curve(sample.scores, sample.labels, sample.weights), heaviest)


def find_among(problem: Problem, cuts: Curve, heaviest: float = 1.0) -> Found:
    """The same from the cuts themselves, of samples of a weight of `heaviest` at most; groups have no such cuts."""
    counts = cuts.counts
    if problem.over is not None:
        chosen = _cuts_at_levels(problem, problem.over, counts)
        active = torch.ones(len(chosen), dtype=torch.bool, device=counts.device)
        return Found(cuts.thresholds(chosen), counts[chosen], True, active)
    violations = torch.stack([c.violation(counts) for c in problem.constraints]) if problem.constraints else None
    cost = problem.objective(counts) * (-1 if problem.maximize else 1)
    best = _best_cut(problem, cost, violations)
    feasible, active = True, torch.zeros(0, dtype=torch.bool, device=counts.device)
    if violations is not None:
        feasible = problem.holds(counts[best : best + 1], heaviest)
        beside = violations[:, max(best - 1, 0) : best + 2]
        equality = torch.tensor([c.relation == "==" for c in problem.constraints], device=counts.device)
        active = equality | (beside > SLACK).any(1)
    chosen = torch.tensor([best], device=counts.device)
    return Found(cuts.thresholds(chosen), counts[chosen], feasible, active)


def _best_cut(problem: Problem, cost: Tensor, violations: Tensor | None) -> int:
    if violations is None:
        return int((cost <= cost.min() + _EQUAL).nonzero()[0])
    equality = torch.tensor([c.relation == "==" for c in problem.constraints], device=cost.device)
    bounds, targets = violations[~equality], violations[equality]
    # From the first criterion to the last, keep only the cuts that are as good as the best.
    alive = torch.ones_like(cost, dtype=torch.bool)
    for criterion in (bounds.clamp(min=SLACK).sum(0), targets.sum(0), cost, -violations.sum(0)):
        lowest = torch.where(alive, criterion, torch.inf).min()
        alive &= criterion <= lowest + _EQUAL
    return int(alive.nonzero()[0])


def _cuts_at_levels(problem: Problem, over: Range, counts: Tensor) -> Tensor:
    """For each bound the cut whose rate is nearest, and of several such the better one."""
    level, last = over.rate(counts), len(counts) - 1
    falling = over.rate.direction < 0
    level = level.flip(0) if falling else level
    bounds = level.new_tensor(over.bounds)
    above = torch.searchsorted(level, bounds).clamp(max=last)
    below = (above - 1).clamp(min=0)
    near = torch.where(bounds - level[below] < level[above] - bounds, level[below], level[above])
    first = torch.searchsorted(level, near)
    final = torch.searchsorted(level, near, right=True) - 1
    if falling:
        first, final = last - first, last - final
    value = problem.objective(counts) * (-1 if problem.maximize else 1)
    return torch.where(value[first] <= value[final], first, final)
