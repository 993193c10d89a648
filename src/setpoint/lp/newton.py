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

import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.lp.control import (
    Flag,
    Number,
    above,
    add_scaled,
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
from setpoint.lp.program import LinearProgram
from setpoint.lp.solution import RawSolution, Solution, Status, certify, proves_infeasible, proves_unbounded
from setpoint.lp.structure import Structure, choose


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
    """One solve: the scaled program and the state of the iteration. Leading dimensions are a batch throughout."""

    def __init__(self, engine: Newton, program: LinearProgram, warm: Solution | None) -> None:
        self.engine, self.program = engine, program
        self.rows = engine.structure(program)
        cost, bounds = program.cost.detach().double(), program.bound.detach().double()
        self.inequalities = bounds.shape[-1]
        # Rows are cut off below at the floor: inequalities at 0, equalities never.
        floor = torch.zeros_like(bounds)
        if program.equality_bound is not None:
            equal = program.equality_bound.detach().double()
            bounds, floor = (torch.cat([bounds, equal], -1), torch.cat([floor, torch.full_like(equal, -torch.inf)], -1))
        self.floor, bounds = self.rows.spread(floor), self.rows.spread(bounds)
        self.cost_size, self.bound_size = largest(cost), largest(bounds)
        bounds = bounds / self.rows.norms
        self.cost_unit, self.unit = unit(dot(cost, cost) ** 0.5), unit(largest(bounds))
        self.cost, self.bounds = cost / stretch(self.cost_unit), bounds / stretch(self.unit)
        self.given_rows = self.rows.norms * stretch(self.unit)
        self.sharpest = engine.sharpest if self.rows.exact else max(engine.sharpest, 1e-3)
        self.y, self.u, self.w = torch.zeros_like(cost), torch.zeros_like(bounds), torch.zeros_like(cost)
        self.sharp: Number = everywhere(engine.start, cost)
        self.proximal: Number = everywhere(engine.proximal, cost)
        if warm is not None:
            self._start_from(warm)
        self.centre = self.y
        self.done: Flag = everywhere(False, cost)
        self.taken: Number = everywhere(0, cost)
        self.codes: Number = everywhere(_CODES[Status.STALLED], cost)
        self.best: Number = everywhere(torch.inf, cost)
        self.steepness = self.best
        self.kept: tuple[Tensor, ...] = (self.y, self.u)
        self._refresh()

    def _start_from(self, warm: Solution) -> None:
        self.y = warm.x.detach().double() / stretch(self.unit)
        prices = self.rows.spread(torch.cat([warm.dual, warm.equality_dual], -1).detach().double())
        self.u = prices * self.rows.norms / stretch(self.cost_unit)
        self.w = (self.cost + self.rows.transpose(self.u)).clamp(min=0)
        self.sharp = everywhere(max(self.sharpest, 1e-3), self.cost)

    def until_done(self) -> RawSolution:
        for _ in range(self.engine.steps):
            self._renew_prices()
            if every(self.done):
                break
            self._step()
        else:
            self._renew_prices()
        x, dual, equality_dual = self._in_given_units(*self.kept)
        names = {code: status for status, code in _CODES.items()}
        statuses = tuple(names[code] for code in torch.as_tensor(self.codes).flatten().tolist())
        return RawSolution(x, dual, equality_dual, torch.as_tensor(self.taken), statuses)

    def _refresh(self) -> None:
        """Rows and bounds as the penalty sees them, at the present point, prices and sharpness."""
        self.r = add_scaled(self.rows.apply(self.y).sub_(self.bounds), self.sharp, self.u)
        self.q = add_scaled(-self.y, self.sharp, self.w)
        self.r_plus, self.q_plus = torch.maximum(self.r, self.floor), self.q.clamp(min=0)
        self._slope()

    def _slope(self) -> None:
        self.pull = add_scaled(self.cost, self.proximal, self.y - self.centre).mul_(stretch(self.sharp))
        self.gradient = self.rows.transpose(self.r_plus).add_(self.pull).sub_(self.q_plus)

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
        new_u, new_w = self.r_plus / stretch(self.sharp), self.q_plus / stretch(self.sharp)
        slow = self._check(ready, new_u, new_w, y_move)
        where = ready & negate(self.done)
        if not some(where):
            return
        self.u, self.w, self.centre = put(where, (new_u, new_w, self.y), (self.u, self.w, self.centre))
        self._tighten(where & slow)
        self.steepness = pick(where, torch.inf, steepness)
        self._refresh()

    def _moved(self, y_move: Tensor) -> Number:
        """By how much rows, bounds and point have moved since the prices were set."""
        rows = largest(add_scaled(self.r_plus, -self.sharp, self.u))
        bounds = largest(add_scaled(self.q_plus, -self.sharp, self.w))
        return greater(greater(rows, bounds), self.proximal * largest(y_move))

    def _tighten(self, where: Flag) -> None:
        """Sharpen the penalty where the rows lag behind; loosen the hold on the point where the prices do."""
        held = where & (self.primal < self.dual) & (self.proximal > 1e-6)
        sharper = greater(self.sharp * self.engine.factor, self.sharpest)
        self.sharp = pick(where & negate(held), sharper, self.sharp)
        self.proximal = pick(held, greater(0.1 * self.proximal, 1e-6), self.proximal)

    def _check(self, ready: Flag, new_u: Tensor, new_w: Tensor, y_move: Tensor) -> Flag:
        """Keep the best pair so far, name what can be named, and say where progress asks for more sharpness."""
        raw = add_scaled(self.r, -self.sharp, self.u)
        worst = self._violation(self.y, raw, new_u, new_w, y_move)
        if some(ready & (worst <= self.engine.tolerance)):
            x = self.y.clamp(min=0)
            worst = self._violation(x, self.rows.apply(x).sub_(self.bounds), new_u, new_w, y_move)
            self._finish(ready & (worst <= self.engine.tolerance), Status.SOLVED)
        slow, stuck = worst > 0.03 * self.best, worst > 0.3 * self.best
        better = ready & (worst < self.best)
        self.best = pick(better, worst, self.best)
        self.kept = put(better, (self.y, new_u), self.kept)
        stuck = stuck & ready & negate(self.done)
        if some(stuck):
            self._look_for_proofs(stuck, new_u, y_move)
        return slow

    def _violation(self, x: Tensor, raw: Tensor, new_u: Tensor, new_w: Tensor, y_move: Tensor) -> Number:
        """The proof of a point with rows `raw` and the new prices, in given units, from vectors at hand."""
        broken = largest(torch.maximum(raw, self.floor).mul_(self.given_rows))
        primal = greater(broken, largest(x.clamp(max=0)) * self.unit) / (1 + self.bound_size)
        reduced = add_scaled(new_w, -self.proximal, y_move).add_(self.gradient / stretch(self.sharp))
        dual = largest(reduced.clamp_(max=0)) * self.cost_unit / (1 + self.cost_size)
        units = self.cost_unit * self.unit
        value = dot(self.cost, x) * units
        gap = abs(value + dot(self.bounds, new_u) * units) / (1 + abs(value))
        self.primal, self.dual = primal, dual
        return greater(greater(primal, dual), gap)

    def _look_for_proofs(self, stuck: Flag, new_u: Tensor, y_move: Tensor) -> None:
        """The last moves of point and prices tend to a proof if the program has no solution."""
        rise, ray = torch.maximum(new_u - self.u, self.floor), y_move.clamp(min=0)
        total, fall = dot(self.bounds, rise), -dot(self.cost, ray)
        pushed = largest(self.rows.transpose(rise).clamp_(max=0))
        infeasible = stuck & (total < 0) & (pushed <= 1e-6 * abs(total))
        if some(infeasible):
            _, dual, equality_dual = self._in_given_units(ray, rise)
            infeasible = infeasible & _plain(proves_infeasible(self.program, dual, equality_dual, 1e-9))
            self.kept = put(infeasible, (self.y, rise), self.kept)
            self._finish(infeasible, Status.INFEASIBLE)
        broken = largest(torch.maximum(self.rows.apply(ray), self.floor))
        unbounded = stuck & (fall > 0) & (broken <= 1e-6 * abs(fall)) & negate(self.done)
        if some(unbounded):
            x, dual, equality_dual = self._in_given_units(self.y, new_u)
            feasible = certify(self.program, x, dual, equality_dual).primal <= 1e-6
            proved = proves_unbounded(self.program, ray * stretch(self.unit), 1e-9) & feasible
            self.kept = put(unbounded & _plain(proved), (ray, new_u), self.kept)
            self._finish(unbounded & _plain(proved), Status.UNBOUNDED)

    def _finish(self, where: Flag, status: Status) -> None:
        self.codes = pick(where, _CODES[status], self.codes)
        self.done = self.done | where

    def _in_given_units(self, y: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        prices = self.rows.gather(u * stretch(self.cost_unit) / self.rows.norms)
        dual, equality_dual = prices[..., : self.inequalities], prices[..., self.inequalities :]
        return (y * stretch(self.unit)).clamp(min=0), dual.clamp(min=0), equality_dual

    def _step(self) -> None:
        ridge = stretch(self.sharp * self.proximal)
        diagonal = above(self.q, 0.0).add_(ridge)
        down = self.rows.solve(above(self.r, self.floor), diagonal, self.gradient).neg_()
        self._line_search(down, self.rows.apply(down))
        self.taken = self.taken + pick(self.done, 0, 1)
        self._slope()

    def _line_search(self, down: Tensor, along: Tensor) -> None:
        """Go to the minimum along `down`: root of a rising, piecewise linear slope, by Newton within brackets."""
        bend = self.sharp * self.proximal * dot(down, down)
        flat, first = dot(self.pull, down), dot(self.gradient, down)
        low, high, length = (everywhere(start, down) for start in (0.0, torch.inf, 1.0))
        for _ in range(30):
            r, q = add_scaled(self.r, length, along), add_scaled(self.q, -length, down)
            r_plus, q_plus = torch.maximum(r, self.floor), q.clamp(min=0)
            slope = flat + length * bend + dot(r_plus, along) - dot(q_plus, down)
            found = (abs(slope) <= 1e-2 * abs(first)) | self.done
            if every(found):
                break
            low, high = pick(slope < 0, length, low), pick(slope > 0, length, high)
            pushing, holding = above(r, self.floor).mul_(along), above(q, 0.0).mul_(down)
            curve = bend + dot(pushing, along) + dot(holding, down)
            ahead = length - slope / curve
            middle = pick(high == torch.inf, 2 * length, (low + high) / 2)
            length = pick(found, length, pick((ahead > low) & (ahead < high), ahead, middle))
        new = (add_scaled(self.y, length, down), r, q, r_plus, q_plus)
        old = (self.y, self.r, self.q, self.r_plus, self.q_plus)
        self.y, self.r, self.q, self.r_plus, self.q_plus = put(negate(self.done), new, old)


_CODES = {status: code for code, status in enumerate(Status)}


def _plain(flags: Tensor) -> Flag:
    return flags if flags.dim() else bool(flags)
