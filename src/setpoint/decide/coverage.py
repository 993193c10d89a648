"""Corrections of shifts, so that every class is predicted as often as its bounds allow.

With coverage bounds `low <= coverage <= high` (0 and 1 where nothing is asked) the shifts t minimise a convex
function, the dual of the transport program "give each sample a class, for the largest sum of scores":

    mean_i max_k(s_ik - t_k) + sum_k (high_k max(t_k, 0) + low_k min(t_k, 0))

Its slope by t_k is the bound minus the coverage, so that a class within its bounds keeps the shift 0, one that
would be predicted too often gets a positive shift, and one predicted too seldom a negative one. With the softmax
in the place of the max it is smooth but for the kinks at 0, and Newton's method solves it; the true max is the
limit of high temperature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.measure.classes import OfClass, class_shares, predict_class
from setpoint.measure.rate import flagged
from setpoint.problem.problem import Problem

#: The temperature is raised by a factor, from 1 over the spread of the scores, until the true counts are right: at
#: most `_LEVELS` times, and no further after `_PATIENCE` levels without improvement (ties, unequal weights).
_HOTTER, _LEVELS, _PATIENCE = 4.0, 18, 9


def coverage_bounds(problem: Problem, n_classes: int) -> tuple[Tensor, Tensor]:
    """The lowest and the highest coverage asked of each class, `(K,)` each, 0 and 1 for a class without bounds."""
    low, high = [0.0] * n_classes, [1.0] * n_classes
    for constraint in problem.constraints:
        quantity = constraint.quantity
        if not isinstance(quantity, OfClass) or not bool(quantity.rate == flagged):
            raise BadProblem(f"shifts can hold coverages such as OfClass(sp.flagged, 0) <= 0.3, not '{constraint}'")
        k = quantity.k
        if k >= n_classes:
            raise BadProblem(f"'{constraint}' names a class beyond the last of {n_classes}, class {n_classes - 1}")
        if constraint.relation != "<=":
            low[k] = max(low[k], constraint.bound)
        if constraint.relation != ">=":
            high[k] = min(high[k], constraint.bound)
    if sum(low) > 1 + 1e-9 or sum(high) < 1 - 1e-9:
        raise BadProblem(
            f"every sample is predicted once, but the coverages asked for sum to at least {sum(low):g} "
            f"and at most {sum(high):g}: '{problem}'; 1 must lie between"
        )
    return torch.tensor(low, dtype=torch.float64), torch.tensor(high, dtype=torch.float64)


@torch.no_grad()
def soft_correction(
    scores: Tensor,
    low: Tensor,
    high: Tensor,
    temperature: Tensor | float,
    weights: Tensor | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """The shifts `(K,)`, in float64, at which the soft coverages meet their bounds, exactly but for rounding."""
    task = _Task.of(scores, low, high, weights)
    return task.newton(float(temperature), task.allowed(start))


@torch.no_grad()
def true_correction(
    scores: Tensor, low: Tensor, high: Tensor, weights: Tensor | None = None, start: Tensor | None = None
) -> Tensor:
    """The shifts `(K,)`, in float64, at which the true coverages meet their bounds.

    Bounds are first rounded to whole samples; the shifts then lie between those of neighbouring assignments, and
    the bounds are met to the sample, unless scores are tied. With unequal weights there is no such rounding: the
    bounds are met within the heaviest sample per class, and the safe side is tried for. A good `start` saves time.
    """
    if weights is not None:
        scores, weights = scores[weights > 0], weights[weights > 0]
    if not bool(((low > 0) | (high < 1)).any()) or not len(scores):
        return torch.zeros_like(low)
    task = _Task.of(scores, low, high, weights)
    if bool((task.weights == task.weights[0]).all()):
        low, high = _whole_samples(low, high, len(scores))
        return replace(task, low=low, high=high).anneal(start)[0]
    tight = task
    best, broken = task.anneal(start)
    for _ in range(3):
        beyond = task.beyond(task.coverage(best))
        if not bool((beyond.abs() > 1e-12).any()):
            break
        inequality = low < high
        tight_high = torch.where(inequality, (tight.high - beyond.clamp(min=0)).clamp(min=0), tight.high)
        tight_low = torch.where(inequality, (tight.low - beyond.clamp(max=0)).clamp(max=1), tight.low)
        if float(tight_low.sum()) > 1 or float(tight_high.sum()) < 1 or bool((tight_low > tight_high).any()):
            break
        tight = replace(task, low=tight_low, high=tight_high)
        tried, _ = tight.anneal(best)
        violation = task.violation(tried)
        if violation < broken:
            best, broken = tried, violation
    return best


@dataclass(frozen=True)
class _Task:
    """Scores `(n, K)` in float64, weights `(n,)` of sum 1, and the bounds `(K,)` on the coverage of each class."""

    scores: Tensor
    weights: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, scores: Tensor, low: Tensor, high: Tensor, weights: Tensor | None) -> _Task:
        scores = scores.detach().double()
        weights = torch.ones_like(scores[:, 0]) if weights is None else weights.double()
        return cls(scores, weights / weights.sum(), low, high)

    def coverage(self, shifts: Tensor, temperature: float | None = None) -> Tensor:
        if temperature is None:
            return torch.bincount(predict_class(self.scores, shifts), self.weights, len(shifts))
        return self.weights @ class_shares(self.scores, shifts, temperature)

    def beyond(self, coverage: Tensor) -> Tensor:
        """How far each coverage lies above its bounds, or below them (negative)."""
        return (coverage - self.high).clamp(min=0) - (self.low - coverage).clamp(min=0)

    def violation(self, shifts: Tensor) -> float:
        """How far all bounds together are broken at the true coverages."""
        return self._broken_at(self.coverage(shifts))

    def _broken_at(self, coverage: Tensor) -> float:
        total = float(self.beyond(coverage).abs().sum())
        return total if total > 1e-12 else 0.0

    def judged(self, shifts: Tensor) -> tuple[float, float]:
        """The violation, and how far shifted classes are from the bound that they are shifted for: 0 at the best."""
        coverage = self.coverage(shifts)
        idle = (self.high - coverage) * (shifts > 0) + (coverage - self.low) * (shifts < 0)
        idle_in_all = float(idle.clamp(min=0).sum())
        return self._broken_at(coverage), idle_in_all if idle_in_all > 1e-12 else 0.0

    def slope(self, coverage: Tensor, shifts: Tensor) -> Tensor:
        """Bound minus coverage; at the kink, 0 within the bounds."""
        below = torch.where(shifts < 0, self.low - coverage, -self.beyond(coverage))
        return torch.where(shifts > 0, self.high - coverage, below)

    def allowed(self, start: Tensor | None) -> Tensor:
        """A start on the sides that the bounds can push to: down for a floor, up for a ceiling; without one, 0."""
        if start is None:
            return torch.zeros_like(self.low)
        start = torch.where(self.low > 0, start.double(), start.double().clamp(min=0))
        return torch.where(self.high < 1, start, start.clamp(max=0))

    def anneal(self, start: Tensor | None) -> tuple[Tensor, float]:
        """The soft correction at ever higher temperature, until the true coverages prove it best."""
        centred = self.scores - self.scores.mean(-1, keepdim=True)
        outer = float(centred.std(correction=0)) or 1.0
        # Classes may lie much farther apart than the samples within them; only these are told apart by the bounds.
        spread = float((centred - centred.mean(0)).std(correction=0))
        spread = spread if spread > 1e-12 * outer else outer
        shifts = best = self.allowed(start)
        lowest = (float("inf"), float("inf"))
        temperature = best_at = 1 / outer if start is None else _HOTTER**4 / spread
        stale = 0
        while temperature * spread < _HOTTER**_LEVELS:
            # A hundredth of a sample decides nothing; the last digits are not worth their steps on the way.
            shifts = self.newton(temperature, shifts, 0.01 / len(self.scores))
            judged = self.judged(shifts)
            stale = 0 if judged < lowest or temperature * spread < 1 else stale + 1
            if judged < lowest:
                best, best_at, lowest = shifts, temperature, judged
            if max(lowest) <= 1e-12 or stale >= _PATIENCE:
                break
            temperature *= _HOTTER
        # Where the search stopped short must not decide: all shifts that are as good differ, and last digits would.
        settled = self.newton(best_at, best)
        best = settled if self.judged(settled) <= lowest else best
        return (best, 0.0) if lowest[0] <= 0 else self.past_ties(best, spread)

    def past_ties(self, shifts: Tensor, spread: float) -> tuple[Tensor, float]:
        """Move the class that breaks its bound most just past its tie, as long as that helps; ties pass together."""
        broken = self.violation(shifts)
        for _ in range(2 * len(self.low)):
            beyond = self.beyond(self.coverage(shifts))
            k = int(beyond.abs().argmax())
            tries = shifts.repeat(10, 1)
            tries[:, k] += shifts.new_tensor([float(beyond[k].sign()) * spread * 10.0**p for p in range(-9, 1)])
            after = [self.violation(tried) for tried in tries]
            if min(after) >= broken:
                break
            broken = min(after)
            shifts = tries[after.index(broken)]
        return shifts, broken

    def newton(self, temperature: float, shifts: Tensor, tolerance: float = 1e-13) -> Tensor:
        """The shifts at which the soft coverages meet their bounds, to within a tolerance of the coverages."""
        bounded, of_bounded, of_free = self._parts
        if of_free.shape[1] < 2:
            return self._newton(temperature, shifts, tolerance, self._widest)
        # Classes without bounds stay where they are, and together act as one class.
        together = torch.logsumexp(temperature * (of_free - shifts[~bounded]), -1) / temperature
        few = replace(
            self,
            scores=torch.cat([of_bounded, together.unsqueeze(-1)], -1),
            low=torch.cat([self.low[bounded], self.low.new_zeros(1)]),
            high=torch.cat([self.high[bounded], self.high.new_ones(1)]),
        )
        start = torch.cat([shifts[bounded], shifts.new_zeros(1)])
        moved = few._newton(temperature, start, tolerance, self._widest)
        return shifts.masked_scatter(bounded, moved[:-1])

    @cached_property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Which classes have bounds, the scores of these, and those of the others."""
        bounded = (self.low > 0) | (self.high < 1)
        return bounded, self.scores[:, bounded], self.scores[:, ~bounded]

    @cached_property
    def _widest(self) -> float:
        """The farthest that a shift may have to go."""
        rows, classes = (self.scores.amax(dim) - self.scores.amin(dim) for dim in (-1, 0))
        return float(rows.max()) + float(classes.max())

    def _newton(self, temperature: float, shifts: Tensor, tolerance: float, widest: float) -> Tensor:
        """Newton's method within the orthant that the slopes point into; a shift that would change sign stops at 0."""
        scores, weights, kinked = self.scores, self.weights, self.low < self.high

        def cost(at: Tensor) -> float:
            soft_max = torch.logsumexp(temperature * (scores - at), -1) / temperature
            return float(weights @ soft_max + self.high @ at.clamp(min=0) + self.low @ at.clamp(max=0))

        value = cost(shifts)
        for _ in range(60):
            shares = class_shares(scores, shifts, temperature)
            coverage = weights @ shares
            slope = self.slope(coverage, shifts)
            if float(slope.abs().max()) <= tolerance:
                break
            moving = (slope != 0).double()
            curvature = torch.diag(coverage) - shares.T @ (weights.unsqueeze(-1) * shares)
            curvature = temperature * curvature * moving * moving.unsqueeze(-1)
            curvature = curvature + torch.diag((1 - moving) + 1e-11 * temperature * float(coverage.max()))
            if bool(moving.all()) and abs(float(slope.sum())) <= 1e-12:
                # Nothing is gained by moving all shifts alike; left to rounding, that is most of the step.
                curvature = curvature + temperature * coverage.mean()
            direction = -torch.linalg.solve(curvature, slope)
            longest = float(direction.abs().max())
            direction = direction * min(1.0, max(widest, 1 / temperature) / longest)
            side = torch.where(shifts != 0, shifts.sign(), -slope.sign())
            for halving in range(40):
                tried = shifts + 0.5**halving * direction
                tried = torch.where(kinked & (tried.sign() != side), 0.0, tried)
                there = cost(tried)
                promised = float(slope @ (tried - shifts))
                if there <= value + 1e-4 * min(promised, 0.0):
                    break
                # Where the cost has no more digits to tell, its slope still has.
                if abs(there - value) <= 1e-14 * (1 + abs(value)):
                    steep = self.slope(self.coverage(tried, temperature), tried)
                    if float(steep.abs().max()) < 0.9 * float(slope.abs().max()):
                        break
            else:
                break
            shifts, value = tried, there
        return shifts


def _whole_samples(low: Tensor, high: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The bounds rounded to whole samples, inwards; where that leaves nothing, to the nearest that add up."""
    exact_low, exact_high = (size * low).tolist(), (size * high).tolist()
    lows = [-int(-(bound - 1e-6) // 1) for bound in exact_low]
    highs = [int((bound + 1e-6) // 1) for bound in exact_high]
    for k, (least, most) in enumerate(zip(lows, highs)):
        if least > most:
            lows[k] = highs[k] = round((exact_low[k] + exact_high[k]) / 2)
    while sum(lows) > size:
        k = max(range(len(lows)), key=lambda k: lows[k] - exact_low[k])
        lows[k] -= 1
    while sum(highs) < size:
        k = max(range(len(highs)), key=lambda k: exact_high[k] - highs[k])
        highs[k] += 1
    return low.new_tensor(lows) / size, high.new_tensor(highs) / size
