"""`solve`: a program in, a certified and differentiable solution out."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from setpoint.errors import BadProgram, ShapeMismatch
from setpoint.lp.gradient import Envelope, Gradient
from setpoint.lp.newton import Newton
from setpoint.lp.program import Entries, LinearProgram, Operator, matrices
from setpoint.lp.solution import OptimalityProof, RawSolution, Solution, Status, certify


class Engine(Protocol):
    """Finds a raw solution of a program; `solve` checks its claims, so that an engine cannot be wrong silently.

    An engine has a `tolerance` and a method `run(program, warm)` that gives a `RawSolution`.

    Example:
        >>> from setpoint import lp
        >>> engine: lp.Engine = lp.Highs(tolerance=1e-7)
    """

    @property
    def tolerance(self) -> float: ...

    def run(self, program: LinearProgram, warm: Solution | None = None) -> RawSolution: ...


def solve(
    program: LinearProgram,
    engine: Engine | None = None,
    gradient: Gradient | None = None,
    *,
    start: Solution | None = None,
) -> Solution:
    """Solve a linear program, with a proof of the answer and gradients to the tensors of the program.

    Everything is computed in float64 and handed back in the dtype of the cost.

    Args:
        program: The program.
        engine: The engine that solves it; by default `Newton()`.
        gradient: How the solution is differentiated; by default `Envelope()`.
        start: A solution of a neighbouring program of the same shape; a good one saves steps, a bad one costs some.

    Returns:
        The point, its prices, its value, and how the solve ended.

    Raises:
        ShapeMismatch: If `start` does not have the shape of the program.
        BadProgram: If an operator of the program gives what is not finite.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> cost = torch.tensor([-1.0, -2.0], requires_grad=True)
        >>> rows, bound = torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.tensor([4.0, 3.0])
        >>> found = lp.solve(lp.LinearProgram(cost, rows, bound))
        >>> round(found.value.item(), 4), found.status.name
        (-7.0, 'SOLVED')
        >>> torch.autograd.grad(found.value, cost)
        (tensor([1., 3.]),)
    """
    engine, gradient = engine or Newton(), gradient or Envelope()
    if start is not None and (start.x.shape != program.cost.shape or start.dual.shape != program.bound.shape):
        raise ShapeMismatch(
            f"start has x {tuple(start.x.shape)} and dual {tuple(start.dual.shape)}, the program cost "
            f"{tuple(program.cost.shape)} and bound {tuple(program.bound.shape)}; leave it out"
        )
    raw = _in_range(engine.run(program, start), program)
    proof = certify(program, raw.x, raw.dual, raw.equality_dual)
    if not bool(torch.isfinite(proof.worst).all()) and any(isinstance(part, Operator) for part in matrices(program)):
        raise BadProgram("an Operator of the program gave nan or inf for finite numbers; check what it multiplies by")
    raw = _believe(raw, proof, engine.tolerance, program)
    attached = gradient.attach(program, raw)
    return Solution(
        x=attached.x.to(program.dtype),
        dual=attached.dual.to(program.dtype),
        equality_dual=attached.equality_dual.to(program.dtype),
        value=_named_value(attached.value, raw.statuses).to(program.dtype),
        gap=proof.gap,
        iterations=raw.iterations,
        statuses=raw.statuses,
        proof=proof,
        degenerate=attached.degenerate,
    )


def _in_range(raw: RawSolution, program: LinearProgram) -> RawSolution:
    """Numbers that every dtype of the program can hold; what has overflowed is then no proof of anything.

    Prices are gradients of the bounds, whose dtype may be narrower than that of the cost.
    """
    values = [matrix.value if isinstance(matrix, Entries) else matrix for matrix in matrices(program)]
    parts = [program.cost, program.bound, program.equality_bound, *values]
    most = min(torch.finfo(part.dtype).max for part in parts if isinstance(part, Tensor))
    x, dual, equality_dual = (
        part.nan_to_num(0.0, most, -most).clamp(-most, most) for part in (raw.x, raw.dual, raw.equality_dual)
    )
    return replace(raw, x=x, dual=dual, equality_dual=equality_dual)


def _believe(raw: RawSolution, proof: OptimalityProof, tolerance: float, program: LinearProgram) -> RawSolution:
    """A claim of `SOLVED` whose proof does not hold, or whose value the dtype cannot hold, is `STALLED`."""
    value = (program.cost.detach().double() * raw.x).sum(-1)
    holds = ((proof.worst <= tolerance) & (value.abs() <= torch.finfo(program.dtype).max)).flatten().tolist()
    statuses = tuple(
        Status.STALLED if status is Status.SOLVED and not good else status for status, good in zip(raw.statuses, holds)
    )
    return replace(raw, statuses=statuses)


def _named_value(value: Tensor, statuses: tuple[Status, ...]) -> Tensor:
    """inf for infeasible and -inf for unbounded programs, whose gradient is then zero."""
    endless = {Status.INFEASIBLE: torch.inf, Status.UNBOUNDED: -torch.inf}
    if not any(status in endless for status in statuses):
        return value
    named = value.new_tensor([endless.get(status, 0.0) for status in statuses]).reshape(value.shape)
    return torch.where(named == 0, value, named)
