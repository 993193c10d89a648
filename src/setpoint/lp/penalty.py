"""The bare exterior penalty of the paper, as a named engine: Newton on e c.y + 1/2 |(G y - h)+|^2.

G stacks all rows, equalities as two inequalities and x >= 0 as rows of -1; steps are full, no safeguards. It is
here so that the paper can be reproduced: full steps cycle on some programs, and only a small enough e is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.errors import BadProgram, BadSetting
from setpoint.lp.program import LinearProgram, Operator, dense
from setpoint.lp.solution import RawSolution, Solution, Status


@dataclass(frozen=True)
class ExteriorPenalty:
    """The exterior penalty as published: Newton's method without safeguards, for small dense programs.

    The point solves the rows that push back at the end; the proof of the solution says whether to believe it.

    Args:
        epsilon: Weight of the cost beside the penalty.
        ridge: Keeps the Hessian invertible.
        steps: Number of Newton steps.
        tolerance: Largest violation of the proof that counts as solved.
        line_search: Make the steps exact; the paper goes without.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), torch.tensor([2.0]))
        >>> lp.solve(program, lp.ExteriorPenalty()).status.name
        'SOLVED'
    """

    epsilon: float = 0.01
    ridge: float = 1e-6
    steps: int = 100
    tolerance: float = 1e-8
    line_search: bool = False

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.ridge <= 0 or self.steps < 1:
            raise BadSetting("epsilon and ridge must be positive, and steps at least 1")

    @torch.no_grad()
    def run(self, program: LinearProgram, warm: Solution | None = None) -> RawSolution:
        cost, rows, bounds = stacked(program)
        settings = (self.epsilon, self.ridge, self.steps)
        _, pushed = descend(cost, rows, bounds, *settings, line_search=self.line_search)
        equal = 0 if program.equality_bound is None else program.equality_bound.shape[-1]
        m = program.bound.shape[-1]
        prices = pushed / self.epsilon
        pushing = pushed > 0
        held, target = pushing.unsqueeze(-1) * rows, (pushing * bounds).unsqueeze(-1)
        x = torch.linalg.lstsq(held, target, driver="gelsd").solution.squeeze(-1)
        taken = torch.full(program.batch, self.steps)
        statuses = (Status.SOLVED,) * max(1, taken.numel())
        equality_dual = prices[..., m : m + equal] - prices[..., m + equal : m + 2 * equal]
        return RawSolution(x.clamp(min=0), prices[..., :m], equality_dual, taken, statuses)


def stacked(program: LinearProgram) -> tuple[Tensor, Tensor, Tensor]:
    """cost, G and h of the program with every constraint as a row of G y <= h; gradients flow into all three."""
    if isinstance(program.matrix, Operator) or isinstance(program.equality_matrix, Operator):
        raise BadProgram("the exterior penalty writes its matrix down: give a tensor, not an Operator")
    parts, bounds = [dense(program.matrix, program.variables)], [program.bound.double()]
    if program.equality_matrix is not None and program.equality_bound is not None:
        equal, value = dense(program.equality_matrix, program.variables), program.equality_bound.double()
        parts, bounds = [*parts, equal, -equal], [*bounds, value, -value]
    unit = torch.eye(program.variables, dtype=torch.float64, device=program.cost.device)
    parts.append(-unit.expand(*program.batch, -1, -1))
    bounds.append(torch.zeros_like(program.cost, dtype=torch.float64))
    return program.cost.double(), torch.cat(parts, -2), torch.cat(bounds, -1)


def descend(
    cost: Tensor, rows: Tensor, bounds: Tensor, epsilon: float, ridge: float, steps: int, *, line_search: bool
) -> tuple[Tensor, Tensor]:
    """`steps` Newton steps from zero: the point and (G y - h)+. Differentiable; the cells are held constant."""
    y = torch.zeros_like(cost)
    unit = torch.eye(cost.shape[-1], dtype=cost.dtype, device=cost.device)
    for _ in range(steps):
        residual = (rows @ y.unsqueeze(-1)).squeeze(-1) - bounds
        pushing = (residual > 0).double()
        gradient = epsilon * cost + ((pushing * residual).unsqueeze(-2) @ rows).squeeze(-2)
        if not torch.is_grad_enabled() and float(gradient.abs().max()) <= 1e-14:
            break
        hessian = (rows * pushing.unsqueeze(-1)).mT @ rows + ridge * unit
        moved, singular = torch.linalg.solve_ex(hessian, gradient)
        if bool(singular.any()):
            raise BadProgram(
                f"the rows of the program are too large beside a ridge of {ridge:g}; scale them, or use sp.lp.Newton()"
            )
        down = -moved
        if line_search:
            with torch.no_grad():
                along = (rows @ down.unsqueeze(-1)).squeeze(-1)
                length = _exact_length(residual, along, epsilon * (cost * down).sum(-1))
            down = length.unsqueeze(-1) * down
        y = y + down
    return y, ((rows @ y.unsqueeze(-1)).squeeze(-1) - bounds).clamp(min=0)


def _exact_length(residual: Tensor, along: Tensor, flat: Tensor) -> Tensor:
    """Root of the slope flat + sum (residual + a along)+ along over a >= 0, by bisection."""
    low, high = torch.zeros_like(flat), torch.ones_like(flat)

    def slope(length: Tensor) -> Tensor:
        return flat + ((residual + length.unsqueeze(-1) * along).clamp(min=0) * along).sum(-1)

    for _ in range(40):
        rising = slope(high) >= 0
        if bool(rising.all()):
            break
        high = torch.where(rising, high, 2 * high)
    full = slope(torch.ones_like(flat)).abs() <= 1e-9 * slope(torch.zeros_like(flat)).abs()
    for _ in range(60):
        middle = (low + high) / 2
        below = slope(middle) < 0
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return torch.where(full, torch.ones_like(flat), (low + high) / 2)
