"""HiGHS, through scipy, as a named engine: simplex and interior points for programs without exploitable shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from setpoint.errors import BadProgram
from setpoint.lp.program import Entries, LinearProgram, Matrix, Operator
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
        parts: tuple[Any, ...] = (
            program.cost, program.matrix, program.bound, program.equality_matrix, program.equality_bound
        )  # fmt: skip
        if not program.batch:
            return _one(*parts)
        flat, last = program.batch.numel(), len(program.batch) - 1
        split = [[None] * flat if part is None else part.flatten(0, last) for part in parts]
        each = [_one(*one) for one in zip(*split)]
        x, dual, equality_dual, taken = (
            torch.stack(pile).reshape(*program.batch, *pile[0].shape)
            for pile in zip(*((c.x, c.dual, c.equality_dual, c.iterations) for c in each))
        )
        return RawSolution(x, dual, equality_dual, taken, tuple(c.statuses[0] for c in each))


def _one(cost: Tensor, matrix: Any, bound: Tensor, equality_matrix: Any, equality_bound: Any) -> RawSolution:
    c, b = _array(cost), _array(bound)
    equal = None if equality_bound is None or len(equality_bound) == 0 else _array(equality_bound)
    rows = {"A_ub": _rows(matrix), "b_ub": b, "A_eq": None if equal is None else _rows(equality_matrix), "b_eq": equal}
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
        return scipy.sparse.csr_array((_array(matrix.value), tuple(matrix.index.cpu().numpy())), shape=matrix.shape)
    return _array(matrix)
