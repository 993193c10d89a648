"""The linear algebra of a Newton step, in the shape of the program: solve (R' S R + D) p = g for p.

R holds all rows of the program, scaled to unit length; S marks the rows that push back; D is diagonal. Dense
programs factor the matrix. Programs in which every row but a few names one variable of its own and a few shared
ones (an arrow: the F-score family) need O(n) a step. All others go through conjugate gradients, which see only
products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from setpoint.lp.arrow import Arrow, plan_for
from setpoint.lp.control import unit
from setpoint.lp.program import Entries, LinearProgram, Operator, dense, matrices, product, scaled, transpose_product

#: Up to this many entries a sparse program without an arrow is written down densely and factored.
DENSE_UP_TO = 4_000_000
#: Below this many variables a dense factorisation is faster than looking for an arrow.
ARROW_FROM = 96


class Structure(Protocol):
    """All rows of a program (inequalities, then equalities), scaled to unit length, in an order of its own.

    `spread` takes a vector from the program's order of rows to this one, `gather` back; `norms` are the lengths.
    """

    norms: Tensor
    #: True if `solve` is exact up to rounding: the penalty may then become as sharp as it likes.
    exact: bool

    def spread(self, rows: Tensor) -> Tensor: ...

    def gather(self, rows: Tensor) -> Tensor: ...

    def apply(self, x: Tensor) -> Tensor: ...

    def transpose(self, rows: Tensor) -> Tensor: ...

    def solve(self, active: Tensor, diagonal: Tensor, target: Tensor) -> Tensor:
        """(R' diag(active) R + diag(diagonal))^-1 target; `active` is 0 or 1 a row, `diagonal` positive."""
        ...


#: The lengths of the rows, products with them and with their transpose, and sums of squares of the rows that push.
Products = tuple[Tensor, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Callable[[Tensor], Tensor] | None]


class InOrder:
    """Rows kept in the order of the program."""

    def spread(self, rows: Tensor) -> Tensor:
        return rows

    def gather(self, rows: Tensor) -> Tensor:
        return rows


class Dense(InOrder):
    """Rows as one dense tensor `(..., m, n)`, with one Cholesky factorisation per step.

    Args:
        program: The program whose rows these are.

    Example:
        >>> from setpoint import lp
        >>> engine = lp.Newton(structure=lp.Dense)
    """

    exact = True

    def __init__(self, program: LinearProgram) -> None:
        rows = torch.cat([dense(matrix, program.variables) for matrix in matrices(program)], -2)
        self.norms: Tensor = unit(rows.norm(dim=-1))
        self.rows: Tensor = rows / self.norms.unsqueeze(-1)

    def apply(self, x: Tensor) -> Tensor:
        return (self.rows @ x.unsqueeze(-1)).squeeze(-1)

    def transpose(self, rows: Tensor) -> Tensor:
        return (rows.unsqueeze(-2) @ self.rows).squeeze(-2)

    def solve(self, active: Tensor, diagonal: Tensor, target: Tensor) -> Tensor:
        if self.rows.dim() == 2:
            pushing = self.rows[active > 0]
            hessian = pushing.mT @ pushing
        else:
            hessian = (self.rows * active.unsqueeze(-1)).mT @ self.rows
        hessian.diagonal(dim1=-2, dim2=-1).add_(diagonal)
        factor, broken = torch.linalg.cholesky_ex(hessian)
        if bool(broken.any()):
            # Rounding made the matrix indefinite; a ridge of its own last digits mends it.
            scale = 1e-13 * hessian.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
            hessian.diagonal(dim1=-2, dim2=-1).add_(scale)
            factor, broken = torch.linalg.cholesky_ex(hessian)
        if bool(broken.any()):
            return target / hessian.diagonal(dim1=-2, dim2=-1)
        return torch.cholesky_solve(target.unsqueeze(-1), factor).squeeze(-1)


class Iterative(InOrder):
    """Rows known by their products alone, with preconditioned conjugate gradients in each step of Newton.

    Args:
        program: The program whose rows these are.
        steps: Most steps of conjugate gradients per step of Newton.

    Example:
        >>> from setpoint import lp
        >>> engine = lp.Newton(structure=lp.Iterative, tolerance=1e-6)
    """

    exact = False

    def __init__(self, program: LinearProgram, steps: int = 2000) -> None:
        parts, self.steps = matrices(program), steps
        made_of = self._operators if any(isinstance(matrix, Operator) for matrix in parts) else self._entries
        self.norms, self._apply, self._transpose, self._squares = made_of(program)

    @staticmethod
    def _entries(program: LinearProgram) -> Products:
        norms, rows = scaled(program)
        squared = replace(rows, value=rows.value * rows.value)
        apply, transpose = partial(product, rows), partial(transpose_product, rows)
        return norms, apply, transpose, partial(transpose_product, squared)

    @staticmethod
    def _operators(program: LinearProgram) -> Products:
        parts, variables = matrices(program), program.variables
        # E[(row . signs)^2] is the squared length of a row: a few random signs are enough to scale by.
        generator = torch.Generator().manual_seed(0)
        signs = torch.randint(0, 2, (24, variables), generator=generator).double() * 2 - 1

        def raw(x: Tensor) -> Tensor:
            return torch.cat([product(matrix, x) for matrix in parts])

        with torch.no_grad():
            norms = unit(torch.stack([raw(sign).square() for sign in signs]).mean(0).sqrt())

        def back(rows: Tensor) -> Tensor:
            pieces = (rows / norms).split([matrix.shape[0] for matrix in parts])
            return torch.stack([transpose_product(m, piece) for m, piece in zip(parts, pieces)]).sum(0)

        return norms, lambda x: raw(x) / norms, back, None

    def apply(self, x: Tensor) -> Tensor:
        return self._apply(x)

    def transpose(self, rows: Tensor) -> Tensor:
        return self._transpose(rows)

    def solve(self, active: Tensor, diagonal: Tensor, target: Tensor) -> Tensor:
        scale = diagonal if self._squares is None else diagonal + self._squares(active)
        result = torch.zeros_like(target)
        left = target.clone()
        ready = left / scale
        along = ready.clone()
        energy = float(left @ ready)
        enough = 1e-20 * energy
        # In exact arithmetic as many steps as there are variables are enough; rounding asks for a few times as many.
        for _ in range(min(self.steps, 10 * len(target) + 20)):
            if energy <= enough:
                break
            pushed = self._transpose(active * self._apply(along)) + diagonal * along
            length = energy / float(along @ pushed)
            result += length * along
            left -= length * pushed
            ready = left / scale
            before, energy = energy, float(left @ ready)
            along = ready + (energy / before) * along
        return result


def choose(program: LinearProgram) -> Structure:
    """The fastest structure that fits: dense when small or batched, an arrow if there is one, else products."""
    parts = matrices(program)
    if any(isinstance(matrix, Operator) for matrix in parts):
        return Iterative(program)
    if program.batch or program.variables < ARROW_FROM:
        return Dense(program)
    if plan_for(program) is not None:
        return Arrow(program)
    size = program.variables * sum(matrix.shape[0] for matrix in parts)
    if size <= DENSE_UP_TO or not any(isinstance(matrix, Entries) for matrix in parts):
        return Dense(program)
    return Iterative(program)
