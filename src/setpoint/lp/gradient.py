"""How a solution answers to its program: three ways to differentiate, each a named object.

`Envelope` differentiates the value and is exact. `ActiveSet` differentiates the point and the prices through the
rows that hold them. `Unrolled` differentiates the steps of the bare exterior penalty, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.lp.control import Array, as_array
from setpoint.lp.penalty import descend, stacked
from setpoint.lp.program import Entries, LinearProgram, Matrix, Operator, product
from setpoint.lp.solution import RawSolution
from setpoint.lp.structure import Structure, choose


class Attached(NamedTuple):
    """A raw solution with gradients: float64, in the shape of the program."""

    x: Tensor
    dual: Tensor
    equality_dual: Tensor
    value: Tensor
    degenerate: Tensor | None = None


class Gradient(Protocol):
    """How a solution is differentiated: `attach` hangs point, prices and value into the graph of the program's tensors.

    Example:
        >>> from setpoint import lp
        >>> gradient: lp.Gradient = lp.BurnIn(steps=10).at(0)
    """

    def attach(self, program: LinearProgram, raw: RawSolution) -> Attached: ...


@dataclass(frozen=True)
class Envelope:
    """The gradient of the value, that of the Lagrangian with point and prices held constant: exact, and the default.

        value(c, A, b, E, e) = c . x + u . (A x - b) + v . (E x - e)

    Where the program is degenerate the gradient is one of the subgradients of the value. Point and prices carry none.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> cost = torch.tensor([-1.0], requires_grad=True)
        >>> program = lp.LinearProgram(cost, torch.tensor([[1.0]]), torch.tensor([2.0]))
        >>> torch.autograd.grad(lp.solve(program, gradient=lp.Envelope()).value, cost)
        (tensor([2.]),)
    """

    def attach(self, program: LinearProgram, raw: RawSolution) -> Attached:
        x, dual, equality_dual = raw.x, raw.dual, raw.equality_dual
        paid = (program.cost.double() * x).sum(-1)
        total = paid + _charged(program.matrix, program.bound, x, dual)
        if program.equality_matrix is not None and program.equality_bound is not None:
            total = total + _charged(program.equality_matrix, program.equality_bound, x, equality_dual)
        # The prices times what is left of the rows is rounding: the value is the cost alone.
        return Attached(x, dual, equality_dual, total + (paid - total).detach())


def _charged(matrix: Matrix, bound: Tensor, x: Tensor, prices: Tensor) -> Tensor | float:
    """prices . (matrix x - bound) as far as it carries gradients, each tensor times its slope."""
    total: Tensor | float = 0.0
    if isinstance(matrix, Operator):
        total = total + (prices * matrix.apply(x)).sum(-1)
    elif isinstance(matrix, Entries) and matrix.value.requires_grad:
        slope = prices.index_select(-1, matrix.index[0]) * x.index_select(-1, matrix.index[1])
        total = total + (matrix.value.double() * slope).sum(-1)
    elif isinstance(matrix, Tensor) and matrix.requires_grad:
        total = total + (prices * product(matrix, x)).sum(-1)
    if bound.requires_grad:
        total = total - (prices * bound.double()).sum(-1)
    return total


@dataclass(frozen=True)
class ActiveSet:
    """The gradient of the point and the prices, through the rows and variables that decide them.

    With J the priced rows at the variables above zero, J x = b and J' u = -c, so dx = J^+ (db - dJ x) and du = -J^+'
    (dc + dJ' u). `degenerate` is True where J is not square, or a row or a variable is at its bound at price zero: the
    gradient is then one of many (that of least norm).

    Args:
        tolerance: How close to its bound a row or a variable counts as at it.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> bound = torch.tensor([2.0], requires_grad=True)
        >>> program = lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), bound)
        >>> torch.autograd.grad(lp.solve(program, gradient=lp.ActiveSet()).x.sum(), bound)
        (tensor([1.]),)
    """

    tolerance: float = 1e-7

    def attach(self, program: LinearProgram, raw: RawSolution) -> Attached:
        active, basic, degenerate = self._decide(program, raw)
        system = _Normal(choose(program), active, basic)
        x, prices = raw.x, torch.cat([raw.dual, raw.equality_dual], -1)
        rows = torch.cat([program.slack_rows(x), program.equality_rows(x)], -1)
        reduced = program.reduced_cost(raw.dual, raw.equality_dual)
        x = x - _Linear.apply(system.point, system.prices, rows - rows.detach())  # type: ignore[no-untyped-call]
        moved = _Linear.apply(system.prices, system.point, reduced - reduced.detach())  # type: ignore[no-untyped-call]
        prices = prices - moved
        dual, equality_dual = prices.split([program.bound.shape[-1], prices.shape[-1] - program.bound.shape[-1]], -1)
        return Attached(x, dual, equality_dual, (program.cost.double() * x).sum(-1), degenerate)

    @torch.no_grad()
    def _decide(self, program: LinearProgram, raw: RawSolution) -> tuple[Tensor, Tensor, Tensor]:
        x, dual, equality_dual = raw.x, raw.dual, raw.equality_dual
        slack, reduced = -program.slack_rows(x), program.reduced_cost(dual, equality_dual)
        at = self.tolerance
        tight, priced = slack <= at * (1 + _size(slack)), dual > at * (1 + _size(dual))
        basic, free = x > at * (1 + _size(x)), reduced <= at * (1 + _size(program.cost.double()))
        always = torch.ones_like(equality_dual, dtype=torch.bool)
        short = (priced.sum(-1) + always.sum(-1)) < basic.sum(-1)
        # Too few priced rows to fix the point: let the tight ones help.
        rows = torch.where(short.unsqueeze(-1), tight | priced, priced)
        active = torch.cat([rows, always], -1)
        degenerate = (tight & ~priced).any(-1) | (free & ~basic).any(-1) | (active.sum(-1) != basic.sum(-1))
        return active, basic, degenerate


@dataclass(frozen=True)
class Unrolled:
    """The gradient of the minimum of the bare penalty, back-propagated through its Newton steps.

    It differs from the exact gradient by what the penalty leaves open, and costs the memory of all steps; with too few
    of them it points elsewhere. The point given back is that of the penalty, which breaks its rows by O(epsilon).

    Args:
        epsilon: Weight of the cost beside the penalty.
        steps: Number of Newton steps.
        ridge: Keeps the Hessian invertible.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), torch.tensor([2.0]))
        >>> round(float(lp.solve(program, gradient=lp.Unrolled(epsilon=0.1)).x), 2)
        2.1
    """

    epsilon: float = 0.01
    steps: int = 60
    ridge: float = 1e-6

    def attach(self, program: LinearProgram, raw: RawSolution) -> Attached:
        cost, rows, bounds = stacked(program)
        y, pushed = descend(cost, rows, bounds, self.epsilon, self.ridge, self.steps, line_search=True)
        m, e = program.bound.shape[-1], raw.equality_dual.shape[-1]
        prices = pushed / self.epsilon
        equality_dual = prices[..., m : m + e] - prices[..., m + e : m + 2 * e]
        return Attached(y, prices[..., :m], equality_dual, (cost * y).sum(-1))


@dataclass(frozen=True)
class BurnIn:
    """The schedule of the paper: unrolled gradients while epsilon still grows, the active set once it has settled.

    `at(step)` is the gradient to use in that step of training, with epsilon = start * growth^step.

    Args:
        start: The first epsilon.
        growth: Factor of epsilon per step, 1 or more.
        steps: Number of unrolled steps.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> from setpoint import lp
        >>> lp.BurnIn(steps=10).at(10)
        ActiveSet(tolerance=1e-07)
    """

    start: float = 1e-3
    growth: float = 1.02
    steps: int = 100

    def __post_init__(self) -> None:
        if self.start <= 0 or self.growth < 1 or self.steps < 0:
            raise BadSetting("a burn-in needs start > 0, growth >= 1 and steps >= 0")

    def at(self, step: int) -> Gradient:
        return Unrolled(self.start * self.growth**step) if step < self.steps else ActiveSet()


Map = Callable[[Array], Array]


class _Normal:
    """J^+ and its transpose for the active rows and basic variables, by refined normal equations."""

    def __init__(self, rows: Structure, active: Tensor, basic: Tensor) -> None:
        self.rows, self.basic = rows, as_array(basic)
        self.active = rows.spread(as_array(active))
        # Variables at zero are held there by a wall; the rest get a ridge that refinement takes away again.
        self.diagonal = np.where(self.basic > 0, 1e-9, 1e9)

    def inverse(self, target: Array) -> Array:
        """(J' J)^-1 on the basic variables."""
        target = target * self.basic
        result = np.zeros_like(target)
        for _ in range(3):
            left = target - self.basic * self.rows.transpose(self.active * self.rows.apply(result))
            result = result + self.basic * self.rows.solve(self.active, self.diagonal, left)
        return result

    def point(self, rows: Array) -> Array:
        """J^+ rows, whose transpose is `prices`."""
        return self.inverse(self.rows.transpose(self.active * self.rows.spread(rows) / self.rows.norms))

    def prices(self, variables: Array) -> Array:
        return self.rows.gather(self.active * self.rows.apply(self.inverse(variables)) / self.rows.norms)


class _Linear(torch.autograd.Function):
    """A linear map whose transpose is known."""

    @staticmethod
    def forward(ctx: Any, along: Map, back: Map, vector: Tensor) -> Tensor:
        ctx.back = back
        return torch.from_numpy(along(as_array(vector))).to(vector.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        (gradient,) = gradients
        return None, None, torch.from_numpy(ctx.back(as_array(gradient))).to(gradient.device)


def _size(vector: Tensor) -> Tensor:
    if not vector.shape[-1]:
        return vector.new_zeros((*vector.shape[:-1], 1))
    return vector.abs().amax(-1, keepdim=True)
