"""The answer: a point, its prices, and a proof that anyone can check against the program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from setpoint.lp.program import LinearProgram


class Status(Enum):
    """How a solve ended: only `SOLVED` promises an optimum, every other name says what is known instead.

    Example:
        >>> from setpoint import lp
        >>> lp.Status.INFEASIBLE.message
        'infeasible: no x satisfies all rows; `dual` proves it'
    """

    SOLVED = "solved: the point, its prices and the gap between them are within the tolerance"
    INFEASIBLE = "infeasible: no x satisfies all rows; `dual` proves it"
    UNBOUNDED = "unbounded: the cost falls without end; `x` is the direction"
    STALLED = "stalled: the steps ran out first; `gap` and `proof` say how far it got"

    @property
    def message(self) -> str:
        return self.value


@dataclass(frozen=True)
class OptimalityProof:
    """How far a point and its prices are from proving that the point is optimal: three relative violations per program.

    Attributes:
        primal: The worst broken row / (1 + max |bound|).
        dual: The worst negative reduced cost / (1 + max |cost|).
        gap: |cost . x + bound . dual + equality_bound . equality_dual| / (1 + |cost . x|).

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> found = lp.solve(lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), torch.tensor([2.0])))
        >>> bool(found.proof.worst <= 1e-8)
        True
    """

    primal: Tensor
    dual: Tensor
    gap: Tensor

    @property
    def worst(self) -> Tensor:
        return torch.maximum(torch.maximum(self.primal, self.dual), self.gap)


@dataclass(frozen=True)
class Solution:
    """A point, its prices and their proof; for a batch of programs each field has the leading dimensions of the batch.

    An infeasible program has value inf and a proof in its duals (matrix' dual + equality_matrix' equality_dual >= 0
    with bound . dual + equality_bound . equality_dual < 0); an unbounded one has value -inf and its direction in `x`.
    The gradient that was asked for decides which fields carry gradients.

    Attributes:
        x: The point.
        dual: Prices of the inequality rows, 0 or more: the value falls by `dual[i]` per unit of `bound[i]`.
        equality_dual: Prices of the equality rows.
        value: Cost of the point.
        gap: The relative gap between cost and prices.
        iterations: Number of steps taken.
        statuses: How the solve of each program ended.
        proof: The three violations that the status was judged by.
        degenerate: True where the gradient is one of many; None where nobody looked.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> bound = torch.tensor([2.0], requires_grad=True)
        >>> found = lp.solve(lp.LinearProgram(torch.tensor([-3.0]), torch.tensor([[1.0]]), bound))
        >>> found.status.name, found.dual.tolist()
        ('SOLVED', [3.0])
        >>> torch.autograd.grad(found.value, bound)
        (tensor([-3.]),)
    """

    x: Tensor
    dual: Tensor
    equality_dual: Tensor
    value: Tensor
    gap: Tensor
    iterations: Tensor
    statuses: tuple[Status, ...]
    proof: OptimalityProof
    degenerate: Tensor | None = None

    @property
    def status(self) -> Status:
        """The status of a single program; of a batch, the worst."""
        return max(self.statuses, key=list(Status).index)

    @property
    def solved(self) -> Tensor:
        """True for each program that was solved."""
        flags = torch.tensor([status is Status.SOLVED for status in self.statuses])
        return flags.reshape(self.value.shape)

    @property
    def message(self) -> str:
        worst = self.status
        gap = f" (gap {float(self.proof.worst.max()):.1e})" if worst is Status.STALLED else ""
        return worst.message + gap


@dataclass(frozen=True)
class RawSolution:
    """The answer of an engine, in float64 and without gradients, before `solve` has checked it."""

    x: Tensor
    dual: Tensor
    equality_dual: Tensor
    iterations: Tensor
    #: The word of the engine; `SOLVED` is not believed until the proof holds.
    statuses: tuple[Status, ...]


@torch.no_grad()
def certify(program: LinearProgram, x: Tensor, dual: Tensor, equality_dual: Tensor) -> OptimalityProof:
    """The three violations of a raw solution, measured on the program as it was given."""
    cost, bound = program.cost.double(), program.bound.double()
    equal = program.equality_bound
    equality_bound = bound[..., :0] if equal is None else equal.double()
    broken = torch.cat([program.slack_rows(x), program.equality_rows(x).abs(), -x, -dual], -1)
    scale = 1 + torch.cat([bound, equality_bound], -1).abs().amax(-1)
    value = (cost * x).sum(-1)
    gap = value + (bound * dual).sum(-1) + (equality_bound * equality_dual).sum(-1)
    reduced = program.reduced_cost(dual, equality_dual)
    return OptimalityProof(
        primal=broken.amax(-1).clamp(min=0) / scale,
        dual=(-reduced).amax(-1).clamp(min=0) / (1 + cost.abs().amax(-1)),
        gap=gap.abs() / (1 + value.abs()),
    )


@torch.no_grad()
def proves_infeasible(program: LinearProgram, dual: Tensor, equality_dual: Tensor, tolerance: float) -> Tensor:
    """Farkas: prices >= 0 under which every x >= 0 costs at least 0, while the bounds sum to less than 0."""
    bound = program.bound.double()
    total = (bound * dual).sum(-1)
    if program.equality_bound is not None:
        total = total + (program.equality_bound.double() * equality_dual).sum(-1)
    prices = program.reduced_cost(dual, equality_dual) - program.cost.double()
    return (total < 0) & (prices.amin(-1) >= -tolerance * total.abs()) & (dual >= 0).all(-1)


@torch.no_grad()
def proves_unbounded(program: LinearProgram, ray: Tensor, tolerance: float) -> Tensor:
    """A direction >= 0 that breaks no row and lowers the cost for ever (if any point is feasible at all)."""
    fall = -(program.cost.double() * ray).sum(-1)
    broken = program.slack_rows(ray) + program.bound.double()
    worst = broken.amax(-1).clamp(min=0) if broken.shape[-1] else torch.zeros_like(fall)
    if program.equality_bound is not None:
        equal = (program.equality_rows(ray) + program.equality_bound.double()).abs()
        worst = torch.maximum(worst, equal.amax(-1))
    return (fall > 0) & (worst <= tolerance * fall) & (ray >= 0).all(-1)
