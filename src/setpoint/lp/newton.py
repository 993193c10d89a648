"""The engine: Newton's method on a proximal augmented Lagrangian of the program.

With rows r(y) = R y - h (scaled to unit length), prices u and a sharpness e that falls from 1,

    minimise over y   e c.y + 1/2 |(r(y) + e u)+|^2 + 1/2 |(e w - y)+|^2 + 1/2 rho e |y - centre|^2,

where equality rows are squared whole; then u <- (r(y) + e u)+ / e, w <- (e w - y)+ / e, centre <- y. The function
is a quadratic in each cell of a finite partition, so Newton's method lands on its minimum exactly; full steps can
cycle between cells, hence the exact line search. The prices make the answer exact at a moderate e, where the bare
penalty would need e -> 0, and the proximal term keeps every system solvable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.lp.control import (
    Array,
    Flag,
    Number,
    above,
    as_array,
    at_least,
    dot,
    every,
    everywhere,
    greater,
    largest,
    negate,
    pick,
    put,
    some,
    stretch,
    unit,
)
from setpoint.lp.program import LinearProgram, in_parts
from setpoint.lp.solution import RawSolution, Solution, Status, certify, proves_infeasible, proves_unbounded
from setpoint.lp.structure import Structure, choose

#: Rows and variables of the programs that are solved at once: as many as stay in the cache of a core.
TOGETHER = 32_768
_STARTS = ("x", "dual", "equality_dual")


@dataclass(frozen=True)
class Newton:
    """Newton's method on a proximal augmented Lagrangian: the default engine.

    Every setting is in units of the scaled program. The sharpness starts at `start`, is multiplied by `factor` at each
    update of the prices and stops at `sharpest` (at 1e-3 when the systems are solved by conjugate gradients, which a
    sharper penalty would starve).

    Args:
        tolerance: Largest violation of the proof that counts as solved.
        steps: Most Newton steps before the status is `STALLED` (or, after as many on the rows alone, `INFEASIBLE`).
        start: The first sharpness.
        factor: Factor of the sharpness per update of the prices, between 0 and 1.
        sharpest: The last sharpness.
        proximal: Weight of the term that holds the point near the one before.
        structure: Solves the systems: `lp.Dense`, `lp.Arrow`, `lp.Iterative`, or by default what suits the program.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> program = lp.LinearProgram(torch.tensor([-1.0]), torch.tensor([[1.0]]), torch.tensor([2.0]))
        >>> lp.solve(program, lp.Newton(tolerance=1e-10)).status.name
        'SOLVED'
    """

    tolerance: float = 1e-8
    steps: int = 100
    start: float = 1.0
    factor: float = 0.3
    sharpest: float = 1e-6
    proximal: float = 1e-2
    structure: Callable[[LinearProgram], Structure] = choose

    def __post_init__(self) -> None:
        whole = isinstance(self.steps, int) and not isinstance(self.steps, bool)
        if not 0 < self.tolerance < 1 or not whole or self.steps < 1:
            raise BadSetting(
                f"tolerance {self.tolerance} must lie in (0, 1) and steps {self.steps} be a whole number from 1"
            )
        if not (0 < self.factor < 1 and 0 < self.sharpest <= self.start and self.proximal > 0):
            raise BadSetting("factor must lie in (0, 1), 0 < sharpest <= start, and proximal be positive")
        for name in ("sharpest", "start", "proximal"):
            # True is a number to Python, but not to torch.
            object.__setattr__(self, name, float(getattr(self, name)))

    @torch.no_grad()
    def run(self, program: LinearProgram, warm: Solution | None = None) -> RawSolution:
        size = max(1, TOGETHER // (program.bound.shape[-1] + program.variables))
        if program.batch.numel() <= size:
            return self._run(program, warm)
        parts, batch = in_parts(program, size), program.batch
        fields = None if warm is None else [getattr(warm, name).flatten(0, len(batch) - 1) for name in _STARTS]
        found = []
        for place, part in enumerate(parts):
            rows = slice(place * size, (place + 1) * size)
            own = None if warm is None else replace(warm, **{n: f[rows] for n, f in zip(_STARTS, fields or ())})
            found.append(self._run(part, own))
        x, dual, equality_dual, taken = (
            torch.cat([getattr(one, name) for one in found]).unflatten(0, batch) for name in (*_STARTS, "iterations")
        )
        return RawSolution(x, dual, equality_dual, taken, tuple(s for one in found for s in one.statuses))

    def _run(self, program: LinearProgram, warm: Solution | None) -> RawSolution:
        with np.errstate(all="ignore"):
            found = _Run(self, program, warm).until_done()
            return self._tell_infeasible(program, found) if Status.STALLED in found.statuses else found

    def _tell_infeasible(self, program: LinearProgram, found: RawSolution) -> RawSolution:
        """Without its cost a program cannot fall without end, and the proof that no point exists comes out clean."""
        bare = _Run(self, replace(program, cost=torch.zeros_like(program.cost)), None).until_done()
        proved = [
            status is Status.STALLED and other is Status.INFEASIBLE
            for status, other in zip(found.statuses, bare.statuses)
        ]
        where = torch.tensor(proved, device=program.cost.device).reshape(program.batch)
        mask = where.unsqueeze(-1)
        return RawSolution(
            found.x,
            torch.where(mask, bare.dual, found.dual),
            torch.where(mask, bare.equality_dual, found.equality_dual),
            found.iterations + torch.where(where, bare.iterations, 0),
            tuple(Status.INFEASIBLE if one else status for one, status in zip(proved, found.statuses)),
        )


class _Run:
    """One solve: the scaled program and the state of the iteration. Leading dimensions are a batch throughout.

    The bounds y >= 0 are rows too: `s` holds the rows of the program and then -y, `prices` belongs to both.
    """

    def __init__(self, engine: Newton, program: LinearProgram, warm: Solution | None) -> None:
        self.engine, self.program = engine, program
        self.rows = engine.structure(program)
        cost, bounds = as_array(program.cost), as_array(program.bound)
        self.inequalities = bounds.shape[-1]
        # Rows are cut off below at the floor: inequalities at 0, equalities never.
        floor = np.zeros_like(bounds)
        if program.equality_bound is not None:
            equal = as_array(program.equality_bound)
            bounds = np.concatenate([bounds, equal], -1)
            floor = np.concatenate([floor, np.full_like(equal, -np.inf)], -1)
        bounds = self.rows.spread(bounds)
        self.count = bounds.shape[-1]
        self.floor = np.concatenate([self.rows.spread(floor), np.zeros_like(cost)], -1)
        self.cost_size, self.bound_size = largest(cost), largest(bounds)
        bounds = bounds / self.rows.norms
        self.cost_unit, self.unit = unit(dot(cost, cost) ** 0.5), unit(largest(bounds))
        self.cost, self.bounds = cost / stretch(self.cost_unit), bounds / stretch(self.unit)
        #: A broken row and a negative y, in the units of the program as it was given.
        self.given = np.concatenate([self.rows.norms, np.ones_like(cost)], -1) * stretch(self.unit)
        self.sharpest = engine.sharpest if self.rows.exact else max(engine.sharpest, 1e-3)
        self.y, self.prices = np.zeros_like(cost), np.zeros_like(self.floor)
        self.sharp: Number = everywhere(engine.start, cost)
        self.proximal: Number = everywhere(engine.proximal, cost)
        if warm is not None:
            self._start_from(warm)
        self.centre = self.y
        self.done: Flag = everywhere(False, cost)
        self.taken: Number = everywhere(0, cost)
        self.codes: Number = everywhere(_CODES[Status.STALLED], cost)
        self.best: Number = everywhere(np.inf, cost)
        self.steepness = self.best
        self.kept: tuple[Array, ...] = (self.y, self.prices)
        self._refresh(self._raw(self.y))

    def _start_from(self, warm: Solution) -> None:
        self.y = as_array(warm.x) / stretch(self.unit)
        given = self.rows.spread(as_array(torch.cat([warm.dual, warm.equality_dual], -1)))
        own = given * self.rows.norms / stretch(self.cost_unit)
        self.prices = np.concatenate([own, at_least(self.cost + self.rows.transpose(own), 0.0)], -1)
        self.sharp = everywhere(max(self.sharpest, 1e-2), self.cost)

    def until_done(self) -> RawSolution:
        for _ in range(self.engine.steps):
            self._renew_prices()
            if every(self.done):
                break
            self._step()
        else:
            self._renew_prices()
        names = {code: status for status, code in _CODES.items()}
        statuses = tuple(names[code] for code in np.asarray(self.codes).ravel().tolist())
        return RawSolution(*self._in_given_units(*self.kept), torch.as_tensor(self.taken), statuses)

    def _raw(self, y: Array) -> Array:
        """Rows and bounds at a point, positive where broken."""
        return np.concatenate([self.rows.apply(y) - self.bounds, -y], -1)

    def _refresh(self, raw: Array) -> None:
        """Rows and bounds, `raw`, as the penalty sees them at the present prices and sharpness."""
        self.s = raw + stretch(self.sharp) * self.prices
        self.s_plus = at_least(self.s, self.floor)
        self._slope()

    def _slope(self) -> None:
        self.pull = self.cost + stretch(self.proximal) * (self.y - self.centre)
        self.pull *= stretch(self.sharp)
        self.gradient = self.rows.transpose(self.s_plus[..., : self.count]) + self.pull
        self.gradient -= self.s_plus[..., self.count :]

    def _renew_prices(self) -> None:
        """Where the inner minimum is reached closely enough: new prices, a check of the proof, more sharpness."""
        steepness = largest(self.gradient)
        # A tiny gradient that no longer falls is rounding: no further step can lower it.
        rounding = (steepness <= 1e-10) & (steepness > 0.5 * self.steepness)
        self.steepness = steepness
        near = (steepness <= self.sharp) & negate(self.done)
        if not some(near):
            return
        y_move = self.y - self.centre
        ready = near & ((steepness <= 0.03 * self.engine.tolerance * self.sharp) | rounding)
        if some(near & negate(ready)):
            ready = near & (ready | (steepness <= 0.1 * self._moved(y_move) * self.sharp))
        if not some(ready):
            return
        new, raw = self.s_plus / stretch(self.sharp), self.s - stretch(self.sharp) * self.prices
        slow = self._check(ready, new, raw, y_move)
        where = ready & negate(self.done)
        if not some(where):
            return
        self.prices, self.centre = put(where, (new, self.y), (self.prices, self.centre))
        self._tighten(where & slow)
        self.steepness = pick(where, np.inf, steepness)
        self._refresh(raw)

    def _moved(self, y_move: Array) -> Number:
        """By how much rows, bounds and point have moved since the prices were set."""
        rows = largest(self.s_plus - stretch(self.sharp) * self.prices)
        return greater(rows, self.proximal * largest(y_move))

    def _tighten(self, where: Flag) -> None:
        """Sharpen the penalty where the rows lag behind; loosen the hold on the point where the prices do."""
        held = where & (self.primal < self.dual) & (self.proximal > 1e-6)
        sharper = greater(self.sharp * self.engine.factor, self.sharpest)
        self.sharp = pick(where & negate(held), sharper, self.sharp)
        self.proximal = pick(held, greater(0.1 * self.proximal, 1e-6), self.proximal)

    def _check(self, ready: Flag, new: Array, raw: Array, y_move: Array) -> Flag:
        """Keep the best pair so far, name what can be named, and say where progress asks for more sharpness."""
        worst = self._violation(self.y, raw, new, y_move)
        if some(ready & (worst <= self.engine.tolerance)):
            x = at_least(self.y, 0.0)
            worst = self._violation(x, self._raw(x), new, y_move)
            self._finish(ready & (worst <= self.engine.tolerance), Status.SOLVED)
        slow, stuck = worst > 0.03 * self.best, worst > 0.3 * self.best
        better = ready & (worst < self.best)
        self.best = pick(better, worst, self.best)
        self.kept = put(better, (self.y, new), self.kept)
        stuck = stuck & ready & negate(self.done)
        if some(stuck):
            self._look_for_proofs(stuck, new, y_move)
        return slow

    def _violation(self, x: Array, raw: Array, new: Array, y_move: Array) -> Number:
        """The proof of a point with rows `raw` and the new prices, in given units, from vectors at hand."""
        primal = largest(at_least(raw, self.floor) * self.given) / (1 + self.bound_size)
        reduced = self.gradient / stretch(self.sharp) + new[..., self.count :]
        reduced -= stretch(self.proximal) * y_move
        dual = largest(np.minimum(reduced, 0)) * self.cost_unit / (1 + self.cost_size)
        units = self.cost_unit * self.unit
        value = dot(self.cost, x) * units
        gap = abs(value + dot(self.bounds, new[..., : self.count]) * units) / (1 + abs(value))
        self.primal, self.dual = primal, dual
        return greater(greater(primal, dual), gap)

    def _look_for_proofs(self, stuck: Flag, new: Array, y_move: Array) -> None:
        """The last moves of point and prices tend to a proof if the program has no solution."""
        rise, ray = at_least(new - self.prices, self.floor)[..., : self.count], at_least(y_move, 0.0)
        total, fall = dot(self.bounds, rise), -dot(self.cost, ray)
        pushed = largest(np.minimum(self.rows.transpose(rise), 0))
        infeasible = stuck & (total < 0) & (pushed <= 1e-6 * abs(total))
        if some(infeasible):
            _, dual, equality_dual = self._in_given_units(ray, rise)
            infeasible = infeasible & _plain(proves_infeasible(self.program, dual, equality_dual, 1e-9))
            self.kept = put(infeasible, (self.y, np.concatenate([rise, 0 * ray], -1)), self.kept)
            self._finish(infeasible, Status.INFEASIBLE)
        broken = largest(at_least(self.rows.apply(ray), self.floor[..., : self.count]))
        unbounded = stuck & (fall > 0) & (broken <= 1e-6 * abs(fall)) & negate(self.done)
        if some(unbounded):
            x, dual, equality_dual = self._in_given_units(self.y, new)
            feasible = certify(self.program, x, dual, equality_dual).primal <= 1e-6
            direction = self._in_given_units(ray, new)[0]
            proved = unbounded & _plain(proves_unbounded(self.program, direction, 1e-9) & feasible)
            self.kept = put(proved, (ray, new), self.kept)
            self._finish(proved, Status.UNBOUNDED)

    def _finish(self, where: Flag, status: Status) -> None:
        self.codes = pick(where, _CODES[status], self.codes)
        self.done = self.done | where

    def _in_given_units(self, y: Array, prices: Array) -> tuple[Tensor, Tensor, Tensor]:
        own = self.rows.gather(prices[..., : self.count] * stretch(self.cost_unit) / self.rows.norms)
        dual, equality_dual = at_least(own[..., : self.inequalities], 0.0), own[..., self.inequalities :]
        point, device = at_least(y * stretch(self.unit), 0.0), self.program.cost.device
        x, u, v = (torch.from_numpy(part).to(device) for part in (point, dual, equality_dual))
        return x, u, v

    def _step(self) -> None:
        pushing = above(self.s, self.floor)
        diagonal = pushing[..., self.count :] + stretch(self.sharp * self.proximal)
        down = -self.rows.solve(pushing[..., : self.count], diagonal, self.gradient)
        self._line_search(down, np.concatenate([self.rows.apply(down), -down], -1))
        self.taken = self.taken + pick(self.done, 0, 1)
        self._slope()

    def _line_search(self, down: Array, along: Array) -> None:
        """Go to the minimum along `down`: root of a rising, piecewise linear slope, by Newton within brackets."""
        bend = self.sharp * self.proximal * dot(down, down)
        flat, first = dot(self.pull, down), dot(self.gradient, down)
        low, high, length = (everywhere(start, down) for start in (0.0, np.inf, 1.0))
        for _ in range(30):
            s = self.s + stretch(length) * along
            s_plus = at_least(s, self.floor)
            slope = flat + length * bend + dot(s_plus, along)
            found = (abs(slope) <= 1e-2 * abs(first)) | self.done
            if every(found):
                break
            low, high = pick(slope < 0, length, low), pick(slope > 0, length, high)
            curve = bend + dot(along * (s > self.floor), along)
            ahead = length - slope / curve
            middle = pick(high == np.inf, 2 * length, (low + high) / 2)
            length = pick(found, length, pick((ahead > low) & (ahead < high), ahead, middle))
        new = (self.y + stretch(length) * down, s, s_plus)
        self.y, self.s, self.s_plus = put(negate(self.done), new, (self.y, self.s, self.s_plus))


_CODES = {status: code for code, status in enumerate(Status)}


def _plain(flags: Tensor) -> Flag:
    return flags.cpu().numpy() if flags.dim() else bool(flags)
