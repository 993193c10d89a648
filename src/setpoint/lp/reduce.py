"""Dimension reduction: look for the solution in a few directions, x = Z w, and say whether that was enough.

The reduced program has k variables instead of n but as many rows, so it saves factorisation, not reading. Its
point is feasible in the full program; whether it is optimal there only prices of the full program can tell. They
are sought among the rows that hold the point; if the proof fails, the full program is solved from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.lp.control import as_array
from setpoint.lp.gradient import Gradient
from setpoint.lp.layer import Engine, solve
from setpoint.lp.newton import Newton
from setpoint.lp.program import LinearProgram, dense, matrices, product
from setpoint.lp.solution import RawSolution, Solution, Status, certify
from setpoint.lp.structure import choose


@dataclass(frozen=True)
class Reduction:
    """The solution of a full program, and whether a few directions were enough for it.

    Attributes:
        solution: Solution of the full program, whichever way it was found.
        reduced: Solution within the directions; its value is an upper bound.
        certified: Whether the solution within the directions is that of the full program.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0, 1.0]), torch.eye(2), torch.ones(2))
        >>> lp.solve_reduced(program, torch.tensor([[1.0], [0.0]])).certified
        True
    """

    solution: Solution
    reduced: Solution
    certified: bool


def solve_reduced(
    program: LinearProgram, basis: Tensor, engine: Engine | None = None, gradient: Gradient | None = None
) -> Reduction:
    """Solve a program within a few directions, and the full program where the proof of that solution fails.

    Args:
        program: One program, not a batch.
        basis: The directions, as columns `(n, k)`.
        engine: The engine that solves the programs; by default `Newton()`.
        gradient: How the solution is differentiated; by default `Envelope()`.

    Returns:
        The solution of the full program, and whether the directions gave it.

    Raises:
        ShapeMismatch: If `basis` does not fit the program.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5, -0.2]), torch.tensor([1, 0, 0, 1])
        >>> basis = lp.forms.f_score_basis(scores, labels)
        >>> lp.solve_reduced(lp.forms.f_score(scores, labels), basis).solution.status.name
        'SOLVED'
    """
    engine = engine or Newton()
    if basis.dim() != 2 or basis.shape[0] != program.variables or program.batch:
        raise ShapeMismatch(f"basis {tuple(basis.shape)} must be ({program.variables}, k), for one program")
    basis = basis.detach().double()
    basis = basis / basis.norm(dim=0).clamp(min=1e-300)
    small = _within(program, basis)
    reduced = solve(small, engine)
    size = basis.shape[1]
    point = (basis @ (reduced.x[:size] - reduced.x[size:])).clamp(min=0).detach()
    dual, equality_dual = _prices_at(program, point)
    proof = certify(program, point, dual, equality_dual)
    certified = reduced.status is Status.SOLVED and float(proof.worst) <= engine.tolerance
    status = Status.SOLVED if certified else Status.STALLED
    warm = Solution(point, dual, equality_dual, reduced.value, proof.gap, reduced.iterations, (status,), proof)
    chosen: Engine = _Given(warm, engine.tolerance) if certified else engine
    start = warm if reduced.status is Status.SOLVED else None
    return Reduction(solve(program, chosen, gradient, start=start), reduced, certified)


@dataclass(frozen=True)
class _Given:
    """An engine that has the answer already."""

    answer: Solution
    tolerance: float

    def run(self, program: LinearProgram, warm: Solution | None = None) -> RawSolution:
        found = self.answer
        return RawSolution(found.x, found.dual, found.equality_dual, found.iterations, found.statuses)


def _within(program: LinearProgram, basis: Tensor) -> LinearProgram:
    """The program in w = plus - minus, with x = Z w >= 0 as rows."""

    def split(rows: Tensor) -> Tensor:
        return torch.cat([rows, -rows], -1)

    rows, *equal = (torch.stack([product(part, one) for one in basis.T], -1) for part in matrices(program))
    return LinearProgram(
        split(program.cost.detach().double() @ basis),
        split(torch.cat([rows, -basis])),
        torch.cat([program.bound.detach().double(), basis.new_zeros(len(basis))]),
        split(equal[0]) if equal else None,
        None if program.equality_bound is None else program.equality_bound.detach().double(),
    )


@torch.no_grad()
def _prices_at(program: LinearProgram, point: Tensor) -> tuple[Tensor, Tensor]:
    """Least-squares prices of the rows that are tight at the point: c + J' u = 0 where x > 0.

    Rows whose price comes out negative are let go, a few times over; the rest is checked by the proof.
    """
    rows = choose(program)
    cost, m = as_array(program.cost), program.bound.shape[-1]
    slack = -as_array(program.slack_rows(point))
    tight = slack <= 1e-7 * (1 + (float(program.bound.abs().max()) if m else 0.0))
    basic = as_array(point > 1e-9 * (1 + point.max()))
    count = m + (0 if program.equality_bound is None else program.equality_bound.shape[-1])
    prices = np.zeros(count)
    held = np.concatenate([tight, np.ones(count - m, bool)])
    diagonal = np.where(basic > 0, 1e-9, 1e9)
    for _ in range(8):
        active = rows.spread(held.astype(np.float64))
        # u = -J (J' J)^-1 c, refined: the least prices that pay for the cost of every variable in use.
        inner = np.zeros_like(cost)
        for _ in range(3):
            left = basic * (cost - rows.transpose(active * rows.apply(inner)))
            inner = inner + basic * rows.solve(active, diagonal, left)
        prices = -rows.gather(active * rows.apply(inner) / rows.norms)
        wrong = (prices < -1e-12) & held
        wrong[m:] = False
        if not wrong.any():
            break
        held = held & ~wrong
    found = torch.from_numpy(prices).to(point.device)
    return found[:m].clamp(min=0), found[m:]


def random_directions(program: LinearProgram, size: int, *, seed: int = 0) -> Tensor:
    """Draw random orthogonal directions: the control that a cleverer choice has to beat.

    Args:
        program: The program whose variables they are directions of.
        size: Number of directions.
        seed: Seed of the draw.

    Returns:
        The directions, as columns `(n, size)`.

    Raises:
        BadSetting: If `size` is not between 1 and the number of variables.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0, 1.0]), torch.eye(2), torch.ones(2))
        >>> lp.random_directions(program, 1).shape
        torch.Size([2, 1])
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(program.variables, _check_size(program, size), generator=generator, dtype=torch.float64)
    orthogonal: Tensor = torch.linalg.qr(drawn)[0]
    return orthogonal


def sliced_inverse_directions(program: LinearProgram, size: int, *, slices: int = 10) -> Tensor:
    """Find directions by sliced inverse regression of the bounds on the rows.

    Rows are whitened, sorted by their bound (by their cost share a . c where bounds tie) and cut into slices; the
    leading directions of the slice means are where the rows move with their bounds. They say nothing of where the
    *solution* lies, and in measurements did not find it: see the page on linear programs.

    Args:
        program: The program whose rows are looked at.
        size: Number of directions.
        slices: Number of slices; never more than there are rows.

    Returns:
        The directions, as columns `(n, size)`.

    Raises:
        BadSetting: If `size` is not between 1 and the number of variables.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0, 1.0]), torch.eye(2), torch.tensor([1.0, 2.0]))
        >>> lp.sliced_inverse_directions(program, 1, slices=2).shape
        torch.Size([2, 1])
    """
    _check_size(program, size)
    unit = torch.eye(program.variables, dtype=torch.float64)
    rows = torch.cat([dense(part, program.variables) for part in matrices(program)])
    bounds = torch.cat([b.detach().double() for b in (program.bound, program.equality_bound) if b is not None])
    key = bounds + 1e-9 * (rows @ program.cost.detach().double())
    rows = rows - rows.mean(0)
    spread = rows.T @ rows / len(rows) + 1e-6 * rows.square().mean() * unit
    values, vectors = torch.linalg.eigh(spread)
    whiten = vectors * values.clamp(min=1e-12).rsqrt()
    ordered = (rows @ whiten)[key.argsort()]
    means = torch.stack([part.mean(0) * len(part) ** 0.5 for part in ordered.tensor_split(min(slices, len(rows)))])
    _, _, directions = torch.linalg.svd(means, full_matrices=True)
    orthogonal: Tensor = torch.linalg.qr(whiten @ directions[:size].T)[0]
    return orthogonal


def _check_size(program: LinearProgram, size: int) -> int:
    if not 1 <= size <= program.variables:
        raise BadSetting(f"{size} directions of {program.variables} variables: give a number between 1 and those")
    return size
