"""`solve`: a program in, a certified and differentiable solution out."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from setpoint.errors import ShapeMismatch
from setpoint.lp.gradient import Envelope, Gradient
from setpoint.lp.newton import Newton
from setpoint.lp.program import LinearProgram
from setpoint.lp.solution import Candidate, Certificate, Outcome, Solution, certify


class Engine(Protocol):
    """Finds a candidate. What it claims is checked by `solve`, so an engine cannot be wrong silently."""

    @property
    def tolerance(self) -> float: ...

    def run(self, program: LinearProgram, warm: Solution | None = None) -> Candidate: ...


def solve(
    program: LinearProgram,
    engine: Engine | None = None,
    gradient: Gradient | None = None,
    *,
    start: Solution | None = None,
) -> Solution:
    """Minimise the program with `engine` (`Newton()`), differentiable as `gradient` (`Envelope()`) says.

    Everything is computed in float64 and handed back in the dtype of the cost. `start` is a solution of a
    neighbouring program of the same shape; a good one saves steps, a bad one costs some.
    """
    engine, gradient = engine or Newton(), gradient or Envelope()
    if start is not None and (start.x.shape != program.cost.shape or start.dual.shape != program.bound.shape):
        raise ShapeMismatch(
            f"start has x {tuple(start.x.shape)} and dual {tuple(start.dual.shape)}, the program cost "
            f"{tuple(program.cost.shape)} and bound {tuple(program.bound.shape)}; leave it out"
        )
    candidate = _in_range(engine.run(program, start), program.dtype)
    certificate = certify(program, candidate.x, candidate.dual, candidate.equality_dual)
    candidate = _believe(candidate, certificate, engine.tolerance, program)
    attached = gradient.attach(program, candidate)
    return Solution(
        x=attached.x.to(program.dtype),
        dual=attached.dual.to(program.dtype),
        equality_dual=attached.equality_dual.to(program.dtype),
        value=_named_value(attached.value, candidate.outcomes).to(program.dtype),
        gap=certificate.gap,
        iterations=candidate.iterations,
        outcomes=candidate.outcomes,
        certificate=certificate,
        degenerate=attached.degenerate,
    )


def _in_range(candidate: Candidate, dtype: torch.dtype) -> Candidate:
    """Numbers that the dtype of the program can hold; what has overflowed is then no proof of anything."""
    most = torch.finfo(dtype).max
    x, dual, equality_dual = (
        part.nan_to_num(0.0, most, -most).clamp(-most, most)
        for part in (candidate.x, candidate.dual, candidate.equality_dual)
    )
    return replace(candidate, x=x, dual=dual, equality_dual=equality_dual)


def _believe(candidate: Candidate, certificate: Certificate, tolerance: float, program: LinearProgram) -> Candidate:
    """A claim of `SOLVED` whose certificate does not hold, or whose value the dtype cannot hold, is `STALLED`."""
    value = (program.cost.detach().double() * candidate.x).sum(-1)
    holds = ((certificate.worst <= tolerance) & (value.abs() <= torch.finfo(program.dtype).max)).flatten().tolist()
    outcomes = tuple(
        Outcome.STALLED if outcome is Outcome.SOLVED and not good else outcome
        for outcome, good in zip(candidate.outcomes, holds)
    )
    return replace(candidate, outcomes=outcomes)


def _named_value(value: Tensor, outcomes: tuple[Outcome, ...]) -> Tensor:
    """inf for infeasible and -inf for unbounded programs, whose gradient is then zero."""
    endless = {Outcome.INFEASIBLE: torch.inf, Outcome.UNBOUNDED: -torch.inf}
    if not any(outcome in endless for outcome in outcomes):
        return value
    named = value.new_tensor([endless.get(outcome, 0.0) for outcome in outcomes]).reshape(value.shape)
    return torch.where(named == 0, value, named)
