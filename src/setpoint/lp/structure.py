"""The linear algebra of a Newton step, in the shape of the program: solve (R' S R + D) p = g for p.

R holds all rows of the program, scaled to unit length; S marks the rows that push back; D is diagonal. Dense
programs factor the matrix. Programs in which every row but a few names one variable of its own and a few shared
ones (an arrow: the F-score family) need O(n) a step. All others go through conjugate gradients, which see only
products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy
import torch

from setpoint.lp.arrow import Arrow, plan_for, product_of, product_with
from setpoint.lp.control import Array, as_array
from setpoint.lp.program import (
    Entries,
    LinearProgram,
    Operator,
    dense,
    listed,
    matrices,
    product,
    scaled,
    transpose_product,
)

#: Up to this many entries a sparse program without an arrow is written down densely and factored.
DENSE_UP_TO = 4_000_000
#: Below this many variables a dense factorisation is faster than looking for an arrow in a dense matrix.
ARROW_FROM = 96


class Structure(Protocol):
    """All rows of a program (inequalities, then equalities), scaled to unit length, in an order of its own.

    `spread` takes a vector from the program's order of rows to this one, `gather` back; `norms` are the lengths.
    """

    norms: Array
    #: True if `solve` is exact up to rounding: the penalty may then become as sharp as it likes.
    exact: bool

    def spread(self, rows: Array) -> Array: ...

    def gather(self, rows: Array) -> Array: ...

    def apply(self, x: Array) -> Array: ...

    def transpose(self, rows: Array) -> Array: ...

    def solve(self, active: Array, diagonal: Array, target: Array) -> Array:
        """(R' diag(active) R + diag(diagonal))^-1 target; `active` is 0 or 1 a row, `diagonal` positive."""
        ...


#: The lengths of the rows, products with them and with their transpose, and sums of squares of the rows that push.
Products = tuple[Array, Callable[[Array], Array], Callable[[Array], Array], Callable[[Array], Array] | None]


class InOrder:
    """Rows kept in the order of the program."""

    def spread(self, rows: Array) -> Array:
        return rows

    def gather(self, rows: Array) -> Array:
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
        norms = rows.norm(dim=-1)
        norms = torch.where(norms > 0, norms, 1.0)
        self.rows: Array = as_array(rows / norms.unsqueeze(-1))
        self.norms: Array = as_array(norms)

    def apply(self, x: Array) -> Array:
        return product_of(self.rows, x)

    def transpose(self, rows: Array) -> Array:
        return product_with(rows, self.rows)

    def solve(self, active: Array, diagonal: Array, target: Array) -> Array:
        if self.rows.ndim == 2:
            pushing = self.rows[active > 0]
            hessian = torch.from_numpy(pushing.T @ pushing)
        else:
            hessian = torch.from_numpy(np.swapaxes(self.rows * active[..., None], -1, -2) @ self.rows)
        ends, right = hessian.diagonal(dim1=-2, dim2=-1), torch.from_numpy(target)
        ends.add_(torch.from_numpy(diagonal))
        factor, broken = torch.linalg.cholesky_ex(hessian)
        if bool(broken.any()):
            # Rounding made the matrix indefinite; a ridge of its own last digits mends it.
            ends.add_(1e-13 * ends.sum(-1, keepdim=True))
            factor, broken = torch.linalg.cholesky_ex(hessian)
        if bool(broken.any()):
            found: Array = (right / ends).numpy()
        else:
            found = torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1).numpy()
        return found


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
        shape, index, _ = given = listed(program)
        norms, value = scaled(given)
        rows = scipy.sparse.csr_array((value, (index[0], index[1])), shape=shape)
        back = rows.T.tocsr()
        squared = back.multiply(back).tocsr()
        return norms, rows.dot, back.dot, squared.dot

    @staticmethod
    def _operators(program: LinearProgram) -> Products:
        parts, variables, device = matrices(program), program.variables, program.cost.device

        def raw(x: Array) -> Array:
            given = torch.from_numpy(x).to(device)
            return np.concatenate([as_array(product(matrix, given)) for matrix in parts])

        # E[(row . signs)^2] is the squared length of a row: a few random signs are enough to scale by.
        generator = torch.Generator().manual_seed(0)
        signs = torch.randint(0, 2, (24, variables), generator=generator).double() * 2 - 1
        norms: Array = np.sqrt(np.mean([raw(sign) ** 2 for sign in signs.numpy()], 0))
        norms[norms == 0] = 1.0

        def back(rows: Array) -> Array:
            pieces = torch.from_numpy(rows / norms).to(device).split([matrix.shape[0] for matrix in parts])
            return as_array(torch.stack([transpose_product(m, piece) for m, piece in zip(parts, pieces)]).sum(0))

        return norms, lambda x: raw(x) / norms, back, None

    def apply(self, x: Array) -> Array:
        return self._apply(x)

    def transpose(self, rows: Array) -> Array:
        return self._transpose(rows)

    def solve(self, active: Array, diagonal: Array, target: Array) -> Array:
        scale = diagonal if self._squares is None else diagonal + self._squares(active)
        result = np.zeros_like(target)
        left = target.copy()
        ready = left / scale
        along = ready.copy()
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
    """The fastest structure that fits: an arrow if there is one, dense when small or batched, else products."""
    parts = matrices(program)
    if any(isinstance(matrix, Operator) for matrix in parts):
        return Iterative(program)
    sparse = any(isinstance(matrix, Entries) for matrix in parts)
    if sparse or (program.variables >= ARROW_FROM and not program.batch):
        rows = listed(program)
        if plan_for(rows) is not None:
            return Arrow(program, rows)
    size = program.variables * sum(matrix.shape[-2] for matrix in parts)
    return Dense(program) if program.batch or size <= DENSE_UP_TO or not sparse else Iterative(program)
