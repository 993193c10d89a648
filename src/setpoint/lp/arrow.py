"""Programs in the shape of an arrow: every row but a few names one variable of its own, and a few shared ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from setpoint.errors import BadProgram
from setpoint.lp.control import Array
from setpoint.lp.program import LinearProgram, Listed, Operator, listed, matrices, scaled


class Arrow:
    """Rows with one variable of their own and a few shared ones (hubs), and a few wide rows: O(n) per step.

    The rows of variable j lie in column j of a (slots, n) grid, empty places being rows of zeros, so that no step needs
    an index. With z the own variables, h the hubs and l = U (z, h) the wide rows, the system is the bordered diagonal
    [D C U_z'; C' B U_h'; U_z U_h -1], solved by eliminating z: the rest has the size of the border.

    Args:
        program: The program whose rows these are.
        rows: Its rows as entries, where they are at hand.

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

    def __init__(self, program: LinearProgram, rows: Listed | None = None) -> None:
        if rows is None and any(isinstance(matrix, Operator) for matrix in matrices(program)):
            raise BadProgram("an Operator has no arrow; leave the structure of lp.Newton out")
        rows = listed(program) if rows is None else rows
        plan = plan_for(rows)
        if plan is None:
            raise BadProgram("the program has no arrow; leave the structure of lp.Newton out, or take lp.Dense")
        norms, value = scaled(rows)
        batch, variables, slots, wide = norms.shape[:-1], program.variables, plan.slots, plan.wide
        self.hubs, self.place, self.grid = plan.hubs, plan.place, slots * variables
        hubs = len(plan.hubs)
        self.norms = np.ones((*batch, self.grid + wide))
        self.norms[..., plan.place] = norms
        sizes = [self.grid, hubs * self.grid, wide * variables]
        entries = np.zeros((*batch, sum(sizes)))
        entries[..., plan.destination] = value
        weight, rest = entries[..., : sizes[0]], entries[..., sizes[0] :]
        shared, across = rest[..., : sizes[1]], rest[..., sizes[1] :]
        #: By slot and variable, by hub and place in the grid, and by wide row and variable.
        self.weight = weight.reshape(*batch, slots, variables)
        self.shared, self.across = shared.reshape(*batch, hubs, self.grid), across.reshape(*batch, wide, variables)
        self.across_own = self.across.copy()
        self.across_own[..., plan.hubs] = 0.0
        self.edge = self.across[..., plan.hubs].swapaxes(-1, -2)
        #: The weights times each share of a hub, and then times themselves: one pass gives border and diagonal.
        by_slot = np.concatenate(
            [self.shared.reshape(*batch, hubs, slots, variables), self.weight[..., None, :, :]], -3
        )
        self.weight_times = self.weight[..., None, :, :] * by_slot
        both = self.shared[..., None, :] * self.shared[..., None, :, :]
        self.shared_shared = both.reshape(*batch, hubs * hubs, self.grid)
        self.ends = -np.ones((*batch, hubs + wide))

    def spread(self, rows: Array) -> Array:
        found = np.zeros(self.norms.shape)
        found[..., self.place] = rows
        return found

    def gather(self, rows: Array) -> Array:
        return rows[..., self.place]

    def apply(self, x: Array) -> Array:
        found = np.empty(self.norms.shape)
        own = found[..., : self.grid]
        np.multiply(self.weight, x[..., None, :], out=own.reshape(self.weight.shape))
        own += product_with(x[..., self.hubs], self.shared)
        found[..., self.grid :] = product_of(self.across, x)
        return found

    def transpose(self, rows: Array) -> Array:
        own, wide = rows[..., : self.grid], rows[..., self.grid :]
        found: Array = np.einsum("...sv,...sv->...v", self.weight, own.reshape(self.weight.shape))
        found += product_with(wide, self.across)
        found[..., self.hubs] += product_of(self.shared, own)
        return found

    def solve(self, active: Array, diagonal: Array, target: Array) -> Array:
        hubs, size = len(self.hubs), self.ends.shape[-1]
        on, wide = active[..., : self.grid], active[..., self.grid :]
        sums = np.einsum("...hsv,...sv->...hv", self.weight_times, on.reshape(self.weight.shape))
        own: Array = sums[..., hubs, :] + diagonal
        if size == 0:
            return target / own
        # The border, with the right-hand side as its last row: one product then gives all that is needed.
        across = self.across_own * wide[..., None]
        border = np.concatenate([sums[..., :hubs, :], across, target[..., None, :]], -2)
        scaled_border = border / own[..., None, :]
        gram = scaled_border @ border.swapaxes(-1, -2)
        # Hubs and wide rows, once the own variables are eliminated.
        corner, right, ends = -gram[..., :size, :size], -gram[..., :size, size], self.ends.copy()
        right[..., :hubs] += target[..., self.hubs]
        ends[..., :hubs] = diagonal[..., self.hubs]
        corner.reshape(*ends.shape[:-1], -1)[..., :: size + 1] += ends
        corner[..., :hubs, :hubs] += product_of(self.shared_shared, on).reshape(*ends.shape[:-1], hubs, hubs)
        pushing = self.edge * wide[..., None, :]
        corner[..., :hubs, hubs:] += pushing
        corner[..., hubs:, :hubs] += pushing.swapaxes(-1, -2)
        small = _solution(corner, right)
        found: Array = scaled_border[..., size, :] - product_with(small, scaled_border[..., :size, :])
        found[..., self.hubs] = small[..., :hubs]
        return found


def _solution(matrix: Array, right: Array) -> Array:
    """The solution of a small system, or of each of a batch."""
    if right.ndim == 1:
        # Straight from LAPACK: the checks around it cost five times as much as a system of two unknowns.
        found: Array = scipy.linalg.lapack.dgesv(matrix, right)[2]
        return found
    return np.linalg.solve(matrix, right[..., None])[..., 0]


def product_of(matrix: Array, vector: Array) -> Array:
    """Matrix times vector, of one program or of each of a batch."""
    found: Array = matrix @ vector if vector.ndim == 1 else (matrix @ vector[..., None])[..., 0]
    return found


def product_with(vector: Array, matrix: Array) -> Array:
    """Vector times matrix, of one program or of each of a batch."""
    found: Array = vector @ matrix if vector.ndim == 1 else np.einsum("...r,...rc->...c", vector, matrix)
    return found


@dataclass(frozen=True)
class ArrowPlan:
    """Where the rows of an arrow go (`place`), and where each entry goes among own, hub and wide ones."""

    hubs: Array
    wide: int
    slots: int
    place: Array
    destination: Array


#: The last pattern and its plan: in training the same pattern comes back with every batch.
_last: list[tuple[tuple[int, int], Array, ArrowPlan | None]] = []


def plan_for(rows: Listed) -> ArrowPlan | None:
    """The plan of a program's arrow, or None if it has none with at most 8 hubs and 16 wide rows.

    The plan is looked up if the pattern is the last one, compared in full.
    """
    shape, index, _ = rows
    for known_shape, known_index, plan in _last:
        if known_shape == shape and np.array_equal(known_index, index):
            return plan
    plan = find_plan(shape, index)
    _last[:] = [(shape, index.copy(), plan)]
    return plan


def find_plan(shape: tuple[int, int], index: Array) -> ArrowPlan | None:
    """Take away long rows, then the most crowded variables, until each row left has one variable at most."""
    count, variables = shape
    lengths = np.bincount(index[0], minlength=count)
    long = lengths > 8
    if int(long.sum()) > 16:
        return None
    row, column = index[:, ~long[index[0]]]
    lengths[long] = 0
    hub_of = np.full(variables, -1)
    hubs: list[int] = []
    while int(lengths.max()) > 1:
        if len(hubs) == 8:
            return None
        crowd = np.bincount(column, weights=lengths[row] > 1, minlength=variables)
        hub_of[int(crowd.argmax())] = len(hubs)
        hubs.append(int(crowd.argmax()))
        kept = column != hubs[-1]
        row, column = row[kept], column[kept]
        lengths = np.bincount(row, minlength=count)
    # Rows left with no variable of their own name hubs alone: they go with the wide ones.
    wide = (lengths == 0).nonzero()[0]
    filled = np.bincount(column, minlength=variables)
    slots = max(1, int(filled.max()))
    if len(wide) > 16 or slots * variables > 4 * (count + variables):
        return None
    order = column.argsort(kind="stable")
    row, column = row[order], column[order]
    grid = slots * variables
    place = np.empty(count, dtype=np.int64)
    slot = np.arange(len(row)) - (filled.cumsum() - filled)[column]
    place[row] = slot * variables + column
    place[wide] = grid + np.arange(len(wide))
    at, hub = place[index[0]], hub_of[index[1]]
    in_wide = (1 + len(hubs)) * grid + (at - grid) * variables + index[1]
    destination = np.where(at >= grid, in_wide, at + (1 + hub) * grid)
    return ArrowPlan(np.array(hubs, dtype=np.int64), len(wide), slots, place, destination)
