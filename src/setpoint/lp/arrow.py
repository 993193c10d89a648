"""Programs in the shape of an arrow: every row but a few names one variable of its own, and a few shared ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.errors import BadProgram
from setpoint.lp.program import LinearProgram, Operator, listed, matrices, scaled


class Arrow:
    """Rows with one variable of their own and a few shared ones (hubs), and a few wide rows: O(n) per step.

    The rows of variable j lie in column j of a (slots, n) grid, empty places being rows of zeros, so that no step needs
    an index. With z the own variables, h the hubs and l = U (z, h) the wide rows, the system is the bordered diagonal
    [D C U_z'; C' B U_h'; U_z U_h -1], solved by eliminating z: the rest has the size of the border.

    Args:
        program: The program whose rows these are.

    Raises:
        BadProgram: If the program has no arrow.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.forms.f_score(torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0]))
        >>> lp.solve(program, lp.Newton(structure=lp.Arrow)).status.name
        'SOLVED'
    """

    exact = True

    def __init__(self, program: LinearProgram) -> None:
        plan = plan_for(program)
        if plan is None:
            raise BadProgram("the program has no arrow; leave the structure of lp.Newton out, or take lp.Dense")
        norms, rows = scaled(program)
        variables, value = program.variables, rows.value
        self.hubs, self.place, self.grid = plan.hubs, plan.place, plan.slots * variables
        hubs, wide = len(plan.hubs), plan.wide
        self.norms = value.new_ones(self.grid + wide).index_copy(0, plan.place, norms)
        sizes = [self.grid, hubs * self.grid, wide * variables]
        entries = value.new_zeros(sum(sizes)).index_copy(0, plan.destination, value)
        weight, shared, across = torch.split_with_sizes(entries, sizes)
        self.weight, self.shared = weight.view(plan.slots, variables), shared.view(hubs, self.grid)
        self.across = across.view(wide, variables)
        self.across_transposed, self.edge = self.across.T, self.across[:, plan.hubs].tolist()
        self.across_own = list(self.across.index_fill(1, plan.hubs, 0.0))
        self.hub_list = plan.hubs.tolist()
        self.sizes = [variables] * plan.slots + [wide]
        # Kept as lists of rows: making a view costs as much as a small product.
        self.weights, self.shares = list(self.weight), list(self.shared)
        self.weights_squared = list(self.weight * self.weight)
        self.weights_shared = [list(self.weight * part.view_as(self.weight)) for part in self.shared]
        self.shared_shared = (self.shared.unsqueeze(1) * self.shared).view(hubs * hubs, self.grid)

    def spread(self, rows: Tensor) -> Tensor:
        return rows.new_zeros(len(self.norms)).index_copy(0, self.place, rows)

    def gather(self, rows: Tensor) -> Tensor:
        return rows[self.place]

    def apply(self, x: Tensor) -> Tensor:
        result = torch.empty_like(self.norms)
        own = result[: self.grid]
        torch.mul(self.weight, x, out=own.view(self.weight.shape))
        for share, hub in zip(self.shares, self.hub_list):
            own.add_(share, alpha=float(x[hub]))
        torch.mv(self.across, x, out=result[self.grid :])
        return result

    def transpose(self, rows: Tensor) -> Tensor:
        *parts, wide = torch.split_with_sizes(rows, self.sizes)
        result = torch.mv(self.across_transposed, wide)
        for weight, part in zip(self.weights, parts):
            result.addcmul_(weight, part)
        return result.index_add_(0, self.hubs, self.shared @ rows[: self.grid])

    def solve(self, active: Tensor, diagonal: Tensor, target: Tensor) -> Tensor:
        size = len(self.hub_list) + len(self.across)
        *parts, wide = torch.split_with_sizes(active, self.sizes)
        own = diagonal
        for squared, part in zip(self.weights_squared, parts):
            own = torch.addcmul(own, squared, part)
        if size == 0:
            return target / own
        # The border, with the right-hand side as its last row: one product then gives all that is needed.
        border = target.new_empty(size + 1, len(target))
        *rows, last = border.unbind(0)
        for row, (first, *others) in zip(rows, self.weights_shared):
            torch.mul(first, parts[0], out=row)
            for weight_share, part in zip(others, parts[1:]):
                row.addcmul_(weight_share, part)
        on_wide = wide.tolist()
        for row, across, pushing in zip(rows[len(self.hub_list) :], self.across_own, on_wide):
            torch.mul(across, pushing, out=row)
        last.copy_(target)
        scaled = border / own
        *rows, result = scaled.unbind(0)
        gram = (scaled @ border.T).tolist()[:size]
        small = self._corner(active[: self.grid], on_wide, diagonal, target, gram)
        for row, amount in zip(rows, small):
            result.add_(row, alpha=-amount)
        for hub, amount in zip(self.hub_list, small):
            result[hub] = amount
        return result

    def _corner(
        self, on: Tensor, on_wide: list[float], diagonal: Tensor, target: Tensor, gram: list[list[float]]
    ) -> list[float]:
        """Hubs and wide rows once the own variables are eliminated: a system so small that floats solve it fastest."""
        hubs, size = len(self.hub_list), len(gram)
        shared = (self.shared_shared @ on).tolist() if hubs else []
        corner = [[-one for one in row[:size]] for row in gram]
        right = [-row[size] for row in gram]
        for i, hub in enumerate(self.hub_list):
            right[i] += float(target[hub])
            corner[i][i] += float(diagonal[hub])
            for j in range(hubs):
                corner[i][j] += shared[i * hubs + j]
            for j, (pushing, edge) in enumerate(zip(on_wide, self.edge)):
                corner[i][hubs + j] += pushing * edge[i]
                corner[hubs + j][i] += pushing * edge[i]
        for j in range(hubs, size):
            corner[j][j] -= 1.0
        return solve_small(corner, right)


def solve_small(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with pivots, on lists of floats."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            share = rows[k][i] / rows[i][i]
            if share:
                rows[k] = [one - share * other for one, other in zip(rows[k], rows[i])]
    solution = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][k] * solution[k] for k in range(i + 1, size))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution


@dataclass(frozen=True)
class ArrowPlan:
    """Where the rows of an arrow go (`place`), and where each entry goes among own, hub and wide ones."""

    hubs: Tensor
    wide: int
    slots: int
    place: Tensor
    destination: Tensor


#: The last pattern and its plan: in training the same pattern comes back with every batch.
_last: list[tuple[tuple[int, int], Tensor, ArrowPlan | None]] = []


def plan_for(program: LinearProgram) -> ArrowPlan | None:
    """The plan of a program's arrow, or None if it has none with at most 8 hubs and 16 wide rows.

    The plan is looked up if the pattern is the last one, compared in full.
    """
    if program.batch or any(isinstance(matrix, Operator) for matrix in matrices(program)):
        return None
    shape, index, _ = listed(program)
    for known_shape, known_index, plan in _last:
        if known_shape == shape and known_index.device == index.device and torch.equal(known_index, index):
            return plan
    plan = find_plan(shape, index)
    _last[:] = [(shape, index.clone(), plan)]
    return plan


def find_plan(shape: tuple[int, int], index: Tensor) -> ArrowPlan | None:
    """Take away long rows, then the most crowded variables, until each row left has one variable at most."""
    count, variables = shape
    device = index.device
    lengths = torch.bincount(index[0], minlength=count)
    long = lengths > 8
    if int(long.sum()) > 16:
        return None
    row, column = index[:, ~long[index[0]]]
    lengths = lengths.masked_fill_(long, 0)
    hub_of = torch.full((variables,), -1, device=device)
    hubs: list[int] = []
    while int(lengths.max()) > 1:
        if len(hubs) == 8:
            return None
        crowd = torch.bincount(column, weights=lengths[row] > 1, minlength=variables)
        hub_of[int(crowd.argmax())] = len(hubs)
        hubs.append(int(crowd.argmax()))
        kept = column != hubs[-1]
        row, column = row[kept], column[kept]
        lengths = torch.bincount(row, minlength=count)
    # Rows left with no variable of their own name hubs alone: they go with the wide ones.
    wide = (lengths == 0).nonzero().squeeze(-1)
    filled = torch.bincount(column, minlength=variables)
    slots = max(1, int(filled.max()))
    if len(wide) > 16 or slots * variables > 4 * (count + variables):
        return None
    column, order = column.sort(stable=True)
    row = row[order]
    grid = slots * variables
    place = torch.empty(count, dtype=torch.long, device=device)
    slot = torch.arange(len(row), device=device) - (filled.cumsum(0) - filled)[column]
    place[row] = slot * variables + column
    place[wide] = grid + torch.arange(len(wide), device=device)
    at, hub = place[index[0]], hub_of[index[1]]
    in_wide = (1 + len(hubs)) * grid + (at - grid) * variables + index[1]
    destination = torch.where(at >= grid, in_wide, at + (1 + hub) * grid)
    return ArrowPlan(torch.tensor(hubs, dtype=torch.long, device=device), len(wide), slots, place, destination)
