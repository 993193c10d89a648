"""Implicit shifts: one of K classes, predicted by argmax(score_k - shift_k), with the shifts found exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.decide.coverage import coverage_bounds, soft_correction, true_correction
from setpoint.decide.shift_search import ShiftDescent, search_shifts
from setpoint.decide.shifts import log_shares, no_shifts
from setpoint.errors import BadProblem
from setpoint.measure.classes import ClassQuantity, Micro, check_classes, class_shares, count_classes
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.memory import Memory, memory_size
from setpoint.solve.price import Damping, expand, solve_prices
from setpoint.solve.refuse import whole_number
from setpoint.solve.solver import Solver, settle_temperature, temperature_buffer

#: Classes whose shifts are searched anew in a step; all take their turn.
AT_ONCE = 4
#: Soft counts below this are 0.
NOTHING = 1e-12


class ImplicitShifts(Solver):
    """Train the objective of a problem of K classes at the shifts that its coverage bounds call for.

    A sample is given the class argmax(score_k - shift_k). A class within its bounds keeps its shift; the shifts of the
    others are set so that the true coverages meet theirs (a convex problem, solved to the sample), and the bounds are
    priced so that no small move of those shifts pays. An objective that is not the error (macro recall, macro F-score)
    first gets the shifts that are best for it, found by search and then held; with the error these are 0. Labels are
    class numbers.

    Args:
        problem: The objective and its bounds on the coverage of classes.
        n_classes: Number of classes K.
        temperature: Steepness of the softmax. None sets it once, from the spread of the first scores.
        memory: Number of rows of scores remembered. None chooses it from the bounds.
        every: Steps from one search of the shifts to the next.
        soft: Set the shifts by soft coverages instead of true ones.
        damping: Floor of the slopes and limit of the prices.

    Raises:
        BadProblem: If the problem does not ask for classes.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> problem = sp.minimize(sp.classes.Micro(sp.fnr), sp.classes.OfClass(sp.flagged, 0) <= 0.25)
        >>> solver = sp.classes.ImplicitShifts(problem, n_classes=3)
        >>> loss = solver(torch.eye(3).repeat(4, 1), torch.arange(3).repeat(4))
        >>> bool(solver.shifts[0] > 0)
        True
    """

    shifts: Tensor
    base: Tensor
    sides: Tensor
    prices: Tensor
    temperature: Tensor
    steps: Tensor

    def __init__(
        self,
        problem: Problem,
        n_classes: int,
        *,
        temperature: float | None = None,
        memory: int | None = None,
        every: int = 1,
        soft: bool = False,
        damping: Damping | None = None,
    ) -> None:
        super().__init__()
        _refuse_other_problems(problem)
        self.problem, self.n_classes = problem, whole_number("n_classes", n_classes, least=2)
        self.every, self.soft = whole_number("every", every), soft
        self.damping = damping or Damping()
        self.memory = Memory(memory_size(problem.tightest) if memory is None else memory)
        self.memory.register_buffer("scores", torch.zeros(self.memory.size, n_classes))
        self.low, self.high = coverage_bounds(problem, n_classes)
        for name in ("shifts", "base", "sides"):
            self.register_buffer(name, torch.zeros(n_classes, dtype=torch.float64))
        self.register_buffer("prices", torch.zeros(len(problem.constraints)))
        self.register_buffer("temperature", temperature_buffer(temperature))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n, K)` with class numbers `(n,)`."""
        return check_classes(scores, labels, weights, n_classes=self.n_classes)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        reference = self.memory.taking(batch, keep=self.training)
        if float(batch.mass) <= 0:
            return (0.0 * batch.scores).sum()
        temperature = settle_temperature(
            self.temperature, lambda: class_spread(reference), reference.dtype, keep=self.training
        )
        shifts, sides = self._search(reference, temperature)
        shifts = shifts.to(temperature.dtype)
        counts = _count(reference, shifts, temperature)
        # A class that no sample has and that none is near to: its rates are 0, and their slopes would be infinite.
        here = expand(self.problem, torch.where(counts < NOTHING, 0.0, counts))
        if not self.problem.constraints:
            # Nothing has a price, and the shifts, which are the best for the objective, are held.
            return here.loss(self.prices, _count(batch, shifts, temperature), batch.mass / reference.mass)
        pace = shift_pace(reference, shifts, temperature) / temperature
        # Only shifts that a bound has moved answer to a change of the scores; the others are held.
        moved = (sides != 0) | self._fixed(sides)
        cost_slope = torch.einsum("kc,jkc->j", here.cost_slope[0], pace)
        excess_slopes = torch.einsum("ikc,jkc->ij", here.excess_slopes[:, 0], pace) * moved
        active = self._active(sides)
        prices = solve_prices(cost_slope, excess_slopes, active, self.damping)
        if self.training:
            self.prices.copy_(prices)
        return here.loss(prices, _count(batch, shifts, temperature), batch.mass / reference.mass)

    def _fixed(self, sides: Tensor) -> Tensor:
        """The classes whose coverage is given, which answer whether they had to be moved or not."""
        return (self.low == self.high).to(sides.device)

    def _active(self, sides: Tensor) -> Tensor:
        """Marks the bounds that hold shifts in place: ceilings that raised a shift, floors that lowered one."""
        fixed, active = self._fixed(sides), []
        for constraint in self.problem.constraints:
            k = constraint.quantity.k  # type: ignore[attr-defined]
            pushed = sides[k] > 0 if constraint.relation == "<=" else sides[k] < 0
            active.append(bool(fixed[k]) or bool(pushed))
        return torch.tensor(active, dtype=torch.bool, device=sides.device)

    def _search(self, reference: Sample, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """The shifts, and the sign of what the bounds added to each; searched anew every `every` steps."""
        if self.training and int(self.steps) % self.every:
            self.steps += 1
            return self.shifts, self.sides
        base = self._best_alone(reference.detach())
        correction = self._correction(reference, base, temperature)
        shifts, sides = base + correction, correction.sign()
        if self.training:
            self.base.copy_(base)
            self.shifts.copy_(shifts)
            self.sides.copy_(sides)
            self.steps += 1
        return shifts, sides

    def _correction(self, reference: Sample, base: Tensor, temperature: Tensor) -> Tensor:
        """The least change of the shifts that brings all coverages within their bounds."""
        if not self.problem.constraints:
            return torch.zeros_like(base)
        low, high = self.low.to(base.device), self.high.to(base.device)
        start = (self.shifts - self.base).double() if int(self.steps) else None
        scores = reference.scores.detach().double() - base
        if self.soft:
            return soft_correction(scores, low, high, temperature, reference.weights, start)
        return true_correction(scores, low, high, reference.weights, start)

    def _best_alone(self, reference: Sample) -> Tensor:
        """The best shifts for the objective alone; after the first step some classes in turn, from the last shifts."""
        if isinstance(self.problem.objective, Micro):
            return torch.zeros_like(self.base, dtype=torch.float64)
        free = replace(self.problem, constraints=())
        if not int(self.steps):
            return search_shifts(free, reference, [no_shifts, log_shares])
        way = ShiftDescent(free, reference.double(), self.base)
        first = AT_ONCE * (int(self.steps) // self.every)
        for k in range(first, first + min(AT_ONCE, self.n_classes)):
            way.visit((k % self.n_classes,))
        return way.shifts

    def status(self) -> dict[str, Any]:
        return {"shifts": self.shifts.tolist(), "prices": self.prices.tolist(), "temperature": float(self.temperature)}


def _refuse_other_problems(problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected a problem, got {problem!r}; make one with sp.minimize or sp.maximize")
    if not isinstance(problem.objective, ClassQuantity) or problem.over is not None:
        raise BadProblem(f"many classes need an objective such as Micro(sp.fnr) or Macro(sp.recall), not '{problem}'")


def _count(sample: Sample, shifts: Tensor, temperature: Tensor) -> Tensor:
    """Soft counts `(1, K, 4)`: one question, K classes."""
    return count_classes(sample.scores, sample.labels, shifts, temperature, weights=sample.weights).unsqueeze(0)


@torch.no_grad()
def shift_pace(sample: Sample, shifts: Tensor, temperature: Tensor | float) -> Tensor:
    """The derivative of the soft counts by the shifts, `(K, K, 4)`: entry (j, k) that of class k by shift j.

    Every shift moves the counts of every class: d share_k / d t_j = -temperature share_k (1[j = k] - share_j).
    """
    shares = class_shares(sample.scores, shifts, temperature)
    assert sample.weights is not None
    weighted = shares * sample.weights.to(shares.dtype).unsqueeze(-1)
    hits = weighted * F.one_hot(sample.labels, shares.shape[1]).to(shares.dtype)
    flagged = -temperature * (torch.diag(weighted.sum(0)) - shares.T @ weighted)
    tp = -temperature * (torch.diag(hits.sum(0)) - shares.T @ hits)
    return torch.stack([tp, flagged - tp, -tp, tp - flagged], dim=-1)


def class_spread(sample: Sample) -> Tensor:
    """The weighted root mean square difference of two classes' scores, each from its mean, in float64."""
    assert sample.weights is not None
    scores, weights = sample.scores.detach().double(), sample.weights.double().unsqueeze(-1)
    centred = scores - scores.mean(-1, keepdim=True)
    centred = centred - (weights * centred).sum(0) / weights.sum()
    return (2 / (scores.shape[1] - 1) * (weights * centred**2).sum() / weights.sum()).sqrt()
