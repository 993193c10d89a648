"""Separable non-negative factorisation, by a linear program: V = F W with rows of V itself as W."""

from __future__ import annotations

from dataclasses import dataclass

import scipy
import torch
from torch import Tensor

from setpoint.errors import BadProgram
from setpoint.lp.highs import Highs
from setpoint.lp.layer import Engine, solve
from setpoint.lp.program import LinearProgram
from setpoint.lp.solution import Status


@dataclass(frozen=True)
class Factorization:
    """A separable non-negative factorisation V = F W, where W is made of rows of V.

    Gradients flow from V to both factors with the anchors and the zeros of F held.

    Attributes:
        F: How much of each anchor is in every row of V.
        W: The rows of V that are anchors.
        anchors: Numbers of those rows.
        exact: False when V is not separable at this rank, and the anchors are those of least total error.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> V = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> torch.allclose(lp.factorize(V, rank=2).product, V, atol=1e-6)
        True
    """

    F: Tensor
    W: Tensor
    anchors: Tensor
    exact: bool

    @property
    def product(self) -> Tensor:
        return self.F @ self.W


def factorize(V: Tensor, rank: int, *, engine: Engine | None = None, seed: int = 0) -> Factorization:
    """Factor a non-negative V (s, w) as F (s, rank) times W (rank, w), W being `rank` of the rows of V.

    The program is: minimise p . diag(C) where C V = V, trace C = rank, C_ij <= C_jj <= 1, C >= 0, with the rows of V
    scaled to sum 1 and p any distinct numbers; the anchors are the j with the largest C_jj. If no C does that, |C V -
    V| is minimised instead. The program has s^2 variables, which limits s.

    Args:
        V: The matrix.
        rank: Number of anchors.
        engine: The engine that solves the program; by default `Highs()`.
        seed: Seed of the distinct numbers p.

    Returns:
        Both factors and the anchors.

    Raises:
        BadProgram: If V or the rank cannot be used, or no factorisation was found.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> lp.factorize(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), rank=2).anchors
        tensor([0, 1])
    """
    _check(V, rank)
    engine = engine or Highs()
    rows = V.detach().double()
    rows = rows / rows.sum(1, keepdim=True)
    generator = torch.Generator().manual_seed(seed)
    distinct = 1 + torch.rand(len(rows), generator=generator, dtype=torch.float64)
    found = solve(separable_program(rows, rank, distinct), engine)
    exact = found.status is Status.SOLVED
    if not exact:
        found = solve(nearest_program(rows, rank, distinct), engine)
        if found.status is not Status.SOLVED:
            raise BadProgram(f"no factorisation of rank {rank}: the program is {found.message}")
    coefficients = found.x[: len(rows) ** 2].reshape(len(rows), len(rows))
    anchors = coefficients.diagonal().topk(rank).indices.sort().values
    parts = V[anchors]
    return Factorization(_shares_of(V, parts), parts, anchors, exact)


def separable_program(rows: Tensor, rank: int, distinct: Tensor) -> LinearProgram:
    """The program of `factorize` in the entries of C, row by row; `rows` sum to 1."""
    s = len(rows)
    unit = torch.eye(s, dtype=rows.dtype)
    trace = unit.reshape(1, -1)
    return LinearProgram(
        torch.diag(distinct).reshape(-1),
        _limits(s, rows.dtype),
        unit.reshape(-1),
        torch.cat([torch.kron(unit, rows.T.contiguous()), trace]).to_sparse(),
        torch.cat([rows.reshape(-1), rows.new_tensor([float(rank)])]),
    )


def nearest_program(rows: Tensor, rank: int, distinct: Tensor) -> LinearProgram:
    """The same with C V = V + over - under, minimising the sum of both; always feasible."""
    s, w = rows.shape
    unit, many = torch.eye(s, dtype=rows.dtype), torch.eye(s * w, dtype=rows.dtype)
    none = rows.new_zeros(1, 2 * s * w)
    limits = torch.cat([_limits(s, rows.dtype).to_dense(), rows.new_zeros(s * s, 2 * s * w)], 1)
    equal = torch.cat([torch.kron(unit, rows.T.contiguous()), -many, many], 1)
    trace = torch.cat([unit.reshape(1, -1), none], 1)
    # The distinct costs only break ties between equally good anchors.
    cost = torch.cat([1e-6 * torch.diag(distinct).reshape(-1), rows.new_ones(2 * s * w)])
    return LinearProgram(
        cost,
        limits.to_sparse(),
        unit.reshape(-1),
        torch.cat([equal, trace]).to_sparse(),
        torch.cat([rows.reshape(-1), rows.new_tensor([float(rank)])]),
    )


def _limits(s: int, dtype: torch.dtype) -> Tensor:
    """C_jj <= 1 in the rows of the diagonal, C_ij - C_jj <= 0 in the others."""
    row = torch.arange(s * s)
    i, j = row // s, row % s
    off = i != j
    index = torch.cat([torch.stack([row, row]), torch.stack([row[off], (j * s + j)[off]])], 1)
    value = torch.cat([torch.ones(s * s, dtype=dtype), -torch.ones(int(off.sum()), dtype=dtype)])
    return torch.sparse_coo_tensor(index, value, (s * s, s * s), check_invariants=False).coalesce()


def _shares_of(V: Tensor, parts: Tensor) -> Tensor:
    """Non-negative least squares of each row of V on the parts; differentiable on the support it finds."""
    basis = parts.detach().double().T.cpu().numpy()
    rows = []
    for row in V:
        share, _ = scipy.optimize.nnls(basis, row.detach().double().cpu().numpy())
        used = torch.from_numpy(share > 0).to(V.device)
        held = torch.zeros(len(parts), dtype=V.dtype, device=V.device)
        if bool(used.any()):
            solved = torch.linalg.lstsq(parts[used].T.double(), row.double()).solution
            held = held.index_copy(0, used.nonzero().squeeze(-1), solved.to(V.dtype).clamp(min=0))
        rows.append(held)
    return torch.stack(rows)


def _check(V: Tensor, rank: int) -> None:
    if V.dim() != 2 or not V.is_floating_point():
        raise BadProgram(f"V must be a floating-point matrix, not {V.dtype} of shape {tuple(V.shape)}")
    if V.dtype in (torch.float16, torch.bfloat16):
        raise BadProgram(f"V is {V.dtype}, in which shares of small parts overflow; pass V.float()")
    if not bool((V.detach().isfinite() & (V.detach() >= 0)).all()):
        raise BadProgram("V must be finite and not negative")
    sizes = V.detach().double().sum(1)
    least = torch.finfo(V.dtype).eps ** 2
    if len(sizes) and not bool((sizes > least * sizes.amax()).all()):
        raise BadProgram("every row of V needs a positive entry; leave rows of zeros, or next to zero, out")
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= len(V):
        raise BadProgram(f"rank {rank} must be a whole number between 1 and the {len(V)} rows of V")
