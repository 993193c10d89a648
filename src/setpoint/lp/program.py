"""The question: a linear program, checked once, before any work is done.

    minimise cost . x   where   matrix x <= bound,   equality_matrix x = equality_bound,   x >= 0

A matrix is a dense tensor, a `torch.sparse` tensor (kept as its `Entries`), or an `Operator` that only knows its
products.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadProgram
from setpoint.lp.control import Array, as_array

#: Beyond this a number is as good as infinite to any solver.
LARGEST = 1e20


@dataclass(frozen=True)
class Operator:
    """A matrix that is never written down, known by its products.

    Gradients reach whatever tensors the two functions are made of.

    Args:
        shape: Rows and columns.
        apply: Product of the matrix with a float64 vector.
        transpose: Product of the transposed matrix with a float64 vector.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> sums = lp.Operator((1, 3), lambda x: x.sum().reshape(1), lambda row: row.expand(3))
        >>> program = lp.LinearProgram(-torch.arange(3.0), sums, torch.tensor([2.0]))
        >>> round(float(lp.solve(program, lp.Newton(tolerance=1e-6)).value), 4)
        -4.0
    """

    shape: tuple[int, int]
    apply: Callable[[Tensor], Tensor]
    transpose: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Entries:
    """A sparse matrix as a list of its entries, into whose values gradients flow.

    Args:
        index: Row and column of each entry, `(2, nnz)`, each place at most once.
        value: Each entry, `(..., nnz)`; leading dimensions are those of a batch of programs of one pattern.
        shape: Rows and columns of one matrix.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> lp.Entries.of(torch.tensor([[0.0, 2.0], [3.0, 0.0]])).value
        tensor([2., 3.])
    """

    index: Tensor
    value: Tensor
    shape: tuple[int, int]

    @staticmethod
    def of(matrix: Tensor) -> Entries:
        """Those of a `torch.sparse` matrix, or of a dense one."""
        listed = matrix.to_sparse_coo().coalesce()
        return Entries(listed.indices(), listed.values(), (matrix.shape[0], matrix.shape[1]))

    def detach(self) -> Entries:
        return Entries(self.index, self.value.detach(), self.shape)

    def to_dense(self) -> Tensor:
        rows, columns = self.shape
        flat = self.value.new_zeros((*self.value.shape[:-1], rows * columns))
        return flat.index_copy(-1, self.index[0] * columns + self.index[1], self.value).view(
            *flat.shape[:-1], *self.shape
        )


Matrix = Tensor | Entries | Operator


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise cost . x where matrix x <= bound, equality_matrix x = equality_bound and x >= 0.

    Leading dimensions, the same for all five tensors, make a batch of programs; a sparse matrix of a batch is `Entries`
    with values of these dimensions, and operators have none. Contradictions between rows are left to the solver.

    Args:
        cost: Cost of each variable, `(..., n)`.
        matrix: Inequality rows: a tensor `(..., m, n)`, a `torch.sparse` matrix, `Entries` or an `Operator`.
        bound: Bound of each row, `(..., m)`.
        equality_matrix: Equality rows, in any form of `matrix`.
        equality_bound: The value of each equality row.

    Raises:
        BadProgram: If shapes do not fit, a number is not finite, or a row cannot hold for any x >= 0.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> rows, bound = torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.tensor([4.0, 3.0])
        >>> program = lp.LinearProgram(torch.tensor([-1.0, -2.0]), rows, bound)
        >>> lp.solve(program).x
        tensor([1., 3.])
    """

    cost: Tensor
    matrix: Matrix
    bound: Tensor
    equality_matrix: Matrix | None = None
    equality_bound: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("matrix", "equality_matrix"):
            matrix = getattr(self, name)
            if isinstance(matrix, Tensor) and matrix.layout != torch.strided and matrix.dim() == 2:
                object.__setattr__(self, name, Entries.of(matrix))
        _check_vector("cost", self.cost)
        if self.cost.numel() == 0:
            raise BadProgram(f"cost has shape {tuple(self.cost.shape)}: a program needs at least one variable")
        _check_rows("matrix", self.matrix, "bound", self.bound, self.cost)
        if (self.equality_matrix is None) != (self.equality_bound is None):
            raise BadProgram("equality_matrix and equality_bound come together: give both or neither")
        rows = self.bound.shape[-1]
        if self.equality_matrix is not None and self.equality_bound is not None:
            _check_rows("equality_matrix", self.equality_matrix, "equality_bound", self.equality_bound, self.cost)
            rows += self.equality_bound.shape[-1]
        if rows == 0:
            raise BadProgram("a program without a single row has nothing to solve; give a matrix with rows")
        _check_can_hold(self)

    @property
    def variables(self) -> int:
        return self.cost.shape[-1]

    @property
    def batch(self) -> torch.Size:
        return self.cost.shape[:-1]

    @property
    def dtype(self) -> torch.dtype:
        return self.cost.dtype

    def slack_rows(self, x: Tensor) -> Tensor:
        """matrix x - bound: positive where broken. In float64, with gradients to matrix and bound."""
        return product(self.matrix, x) - self.bound.double()

    def equality_rows(self, x: Tensor) -> Tensor:
        """equality_matrix x - equality_bound; an empty vector when there are no equalities."""
        if self.equality_matrix is None or self.equality_bound is None:
            return x.new_zeros((*self.batch, 0))
        return product(self.equality_matrix, x) - self.equality_bound.double()

    def reduced_cost(self, dual: Tensor, equality_dual: Tensor) -> Tensor:
        """cost + matrix' dual + equality_matrix' equality_dual: what each variable costs at these prices."""
        total = self.cost.double() + transpose_product(self.matrix, dual)
        if self.equality_matrix is not None:
            total = total + transpose_product(self.equality_matrix, equality_dual)
        return total


def product(matrix: Matrix, x: Tensor) -> Tensor:
    """matrix x in float64, differentiable in both."""
    if isinstance(matrix, Operator):
        return matrix.apply(x)
    if isinstance(matrix, Entries):
        row, column = matrix.index
        empty = x.new_zeros((*x.shape[:-1], matrix.shape[0]))
        return empty.index_add(-1, row, matrix.value.double() * x.index_select(-1, column))
    return (matrix.double() @ x.unsqueeze(-1)).squeeze(-1)


def transpose_product(matrix: Matrix, rows: Tensor) -> Tensor:
    """matrix' rows in float64, differentiable in both."""
    if isinstance(matrix, Operator):
        return matrix.transpose(rows)
    if isinstance(matrix, Entries):
        row, column = matrix.index
        empty = rows.new_zeros((*rows.shape[:-1], matrix.shape[1]))
        return empty.index_add(-1, column, matrix.value.double() * rows.index_select(-1, row))
    return (matrix.double().mT @ rows.unsqueeze(-1)).squeeze(-1)


def dense(matrix: Matrix, variables: int) -> Tensor:
    """The matrix written down in float64."""
    if isinstance(matrix, Operator):
        return torch.stack([matrix.apply(unit) for unit in torch.eye(variables, dtype=torch.float64)], -1)
    return (matrix.to_dense() if isinstance(matrix, Entries) else matrix).double()


def matrices(program: LinearProgram) -> list[Matrix]:
    """The one or two matrices of a program, without gradients."""
    found = [program.matrix] if program.equality_matrix is None else [program.matrix, program.equality_matrix]
    return [matrix if isinstance(matrix, Operator) else matrix.detach() for matrix in found]


def in_parts(program: LinearProgram, size: int) -> list[LinearProgram]:
    """A batch of programs as several, of one leading dimension and at most `size` programs each."""

    def split(part: Any) -> Iterable[Any]:
        if part is None:
            return itertools.repeat(None)
        if isinstance(part, Entries):
            return [Entries(part.index, value, part.shape) for value in split(part.value)]
        pieces: tuple[Tensor, ...] = part.flatten(0, len(program.batch) - 1).split(size)
        return pieces

    fields = (program.cost, program.matrix, program.bound, program.equality_matrix, program.equality_bound)
    return [LinearProgram(*parts) for parts in zip(*map(split, fields))]


#: All rows of a program: their shape, row and column of each entry, and the values `(..., nnz)`.
Listed = tuple[tuple[int, int], Array, Array]


def listed(program: LinearProgram) -> Listed:
    """All rows as entries, places that are zero in every program left out."""
    indices, values, above = [], [], 0
    for matrix in matrices(program):
        assert not isinstance(matrix, Operator)
        if isinstance(matrix, Entries):
            index, value = matrix.index.cpu().numpy(), as_array(matrix.value)
        else:
            index, value = _every_place(*matrix.shape[-2:]), as_array(matrix.flatten(-2))
        indices.append(index + np.array([[above], [0]]) if above else index)
        values.append(value)
        above += matrix.shape[-2]
    index, value = np.concatenate(indices, 1), np.concatenate(values, -1)
    if not value.all():
        kept = (value != 0).any(tuple(range(value.ndim - 1)))
        index, value = index[:, kept], value[..., kept]
    return (above, program.variables), index, value


@functools.cache
def _every_place(rows: int, columns: int) -> Array:
    """Row and column of each place of a dense matrix."""
    return np.indices((rows, columns)).reshape(2, -1)


def scaled(rows: Listed) -> tuple[Array, Array]:
    """The length of every row (1 for rows of zeros), and the entries of the rows divided by it."""
    shape, index, value = rows
    # Not -1: a matrix without entries has no size from which it could be told.
    squares = (value * value).reshape(math.prod(value.shape[:-1]), value.shape[-1])
    norms = np.sqrt(np.stack([np.bincount(index[0], own, shape[0]) for own in squares]))
    norms[norms == 0] = 1.0
    norms = norms.reshape(*value.shape[:-1], shape[0])
    return norms, value / norms[..., index[0]]


def _check_vector(name: str, vector: Tensor) -> None:
    if not isinstance(vector, Tensor) or not vector.is_floating_point():
        came = vector.dtype if isinstance(vector, Tensor) else type(vector).__name__
        raise BadProgram(f"{name} must be a floating-point tensor, not {came}; convert it first")
    if vector.dim() == 0 or vector.layout != torch.strided:
        raise BadProgram(f"{name} must be a dense vector (or a batch of them), not of shape {tuple(vector.shape)}")
    _check_size(name, vector, "; a bound that never binds is a row to leave out")


def _check_size(name: str, values: Tensor, hint: str = "") -> None:
    largest = float(values.detach().abs().max()) if values.numel() else 0.0
    if not math.isfinite(largest):
        raise BadProgram(f"{name} holds nan or inf{hint}")
    if largest > LARGEST:
        raise BadProgram(f"{name} holds {largest:g}, more than {LARGEST:g}; scale the program to smaller numbers")


def _check_rows(name: str, matrix: Matrix, bound_name: str, bound: Tensor, cost: Tensor) -> None:
    _check_vector(bound_name, bound)
    if not isinstance(matrix, Operator):
        values = matrix.value if isinstance(matrix, Entries) else matrix
        if not isinstance(values, Tensor) or not values.is_floating_point():
            came = values.dtype if isinstance(values, Tensor) else type(values).__name__
            raise BadProgram(f"{name} must be a floating-point tensor or an Operator, not {came}")
        if values.layout != torch.strided:
            raise BadProgram(f"{name} is sparse with {values.dim()} dimensions; a batch needs dense matrices")
        _check_size(name, values)
    if isinstance(matrix, Operator) and cost.dim() > 1:
        raise BadProgram(f"a batch of programs needs matrices that are written down, but {name} is an Operator")
    expected = (*cost.shape[:-1], bound.shape[-1], cost.shape[-1])
    shape = (*matrix.value.shape[:-1], *matrix.shape) if isinstance(matrix, Entries) else tuple(matrix.shape)
    if shape != expected or bound.shape[:-1] != cost.shape[:-1]:
        raise BadProgram(
            f"{name} {shape}, {bound_name} {tuple(bound.shape)} and cost {tuple(cost.shape)} do not "
            f"fit together: {name} must be {expected}"
        )


def _check_can_hold(program: LinearProgram) -> None:
    """No x >= 0 can bring a row of coefficients >= 0 below a negative bound, nor to a negative equality."""
    impossible = _out_of_reach(program.matrix, program.bound.double(), least=True)
    if program.equality_matrix is not None and program.equality_bound is not None:
        equal = program.equality_bound.double()
        too_low = _out_of_reach(program.equality_matrix, equal, least=True)
        impossible = torch.cat([impossible, too_low | _out_of_reach(program.equality_matrix, equal, least=False)], -1)
    if bool(impossible.any()):
        row = int(impossible.nonzero()[0, -1])
        kind = "matrix" if row < program.bound.shape[-1] else "equality_matrix"
        row = row if kind == "matrix" else row - program.bound.shape[-1]
        raise BadProgram(f"row {row} of {kind} cannot hold for any x >= 0: its coefficients all have the wrong sign")


def _out_of_reach(matrix: Matrix, bound: Tensor, *, least: bool) -> Tensor:
    """Rows whose product with every x >= 0 stays above the bound (`least`), or below it."""
    sign = 1.0 if least else -1.0
    suspects = bound < 0 if least else bound > 0
    if isinstance(matrix, Operator) or not bool(suspects.any()):
        return torch.zeros_like(suspects)
    # A bound that misses zero by rounding can be held closely enough.
    suspects = sign * bound < -1e-12 * (1 + bound.abs().amax(-1, keepdim=True))
    if isinstance(matrix, Entries):
        helpful = (sign * matrix.value.detach() < 0).double()
        helps = torch.zeros_like(bound).index_add(-1, matrix.index[0], helpful)
        return suspects & (helps == 0)
    return suspects & (sign * matrix.detach() >= 0).all(-1)
