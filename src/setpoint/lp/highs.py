"""HiGHS, through scipy, as a named engine: simplex and interior points for programs without exploitable shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from setpoint.errors import BadProgram
from setpoint.lp.program import Entries, LinearProgram, Matrix, Operator, in_parts
from setpoint.lp.solution import RawSolution, Solution, Status


@dataclass(frozen=True)
class Highs:
    """HiGHS by `scipy.optimize.linprog`, on the processor: its own vertex, its own prices, no warm start.

    Infeasible and unbounded are the word of HiGHS, which hands over no proof: `dual` or `x` are then zero.

    Args:
        tolerance: Largest violation of the proof that counts as solved.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), torch.tensor([2.0]))
        >>> float(lp.solve(program, lp.Highs()).value)
        -2.0
    """

    tolerance: float = 1e-8

    @torch.no_grad()
    def run(self, program: LinearProgram, warm: Solution | None = None) -> RawSolution:
        if not program.batch:
            return _one(program)
        each = [_one(part) for part in in_parts(program, 1)]
        x, dual, equality_dual, taken = (
            torch.stack(pile).unflatten(0, program.batch)
            for pile in zip(*((c.x, c.dual, c.equality_dual, c.iterations) for c in each))
        )
        return RawSolution(x, dual, equality_dual, taken, tuple(c.statuses[0] for c in each))


def _one(program: LinearProgram) -> RawSolution:
    """The solution of one program, or of a batch of one."""
    cost, bound, equality_bound = program.cost, program.bound, program.equality_bound
    c, b = _array(cost).ravel(), _array(bound).ravel()
    equal = None if equality_bound is None or not equality_bound.numel() else _array(equality_bound).ravel()
    equal_rows = None if equal is None or program.equality_matrix is None else _rows(program.equality_matrix)
    rows = {"A_ub": _rows(program.matrix), "b_ub": b, "A_eq": equal_rows, "b_eq": equal}
    found = scipy.optimize.linprog(c, **rows, method="highs")
    if found.status == 0:
        status = Status.SOLVED
    elif found.status == 2 or (
        found.status in (3, 4) and scipy.optimize.linprog(0 * c, **rows, method="highs").status == 2
    ):
        status = Status.INFEASIBLE
    else:
        status = Status.UNBOUNDED if found.status == 3 else Status.STALLED
    x, dual = np.zeros_like(c), np.zeros_like(b)
    equality_dual = np.zeros(0 if equal is None else len(equal))
    if found.status == 0:
        x = np.maximum(found.x, 0)
        dual = np.maximum(-found.ineqlin.marginals, 0)
        equality_dual = -found.eqlin.marginals if equal is not None else equality_dual
    point, prices, equality_prices = (
        torch.from_numpy(np.ascontiguousarray(part)).to(cost.device) for part in (x, dual, equality_dual)
    )
    return RawSolution(point, prices, equality_prices, torch.tensor(int(found.nit)), (status,))


def _array(vector: Tensor) -> Any:
    return vector.detach().double().cpu().numpy()


def _rows(matrix: Matrix) -> Any:
    if isinstance(matrix, Operator):
        raise BadProgram("HiGHS needs its matrix written down: give a dense or sparse tensor, or use Newton")
    if isinstance(matrix, Entries):
        place = tuple(matrix.index.cpu().numpy())
        return scipy.sparse.csr_array((_array(matrix.value).ravel(), place), shape=matrix.shape)
    return _array(matrix.reshape(matrix.shape[-2:]))
