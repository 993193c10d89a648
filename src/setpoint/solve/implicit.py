"""Implicit thresholds: found exactly, with the prices that the bounds then cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from setpoint.decide.cut import Finder, Found
from setpoint.errors import BadSetting
from setpoint.measure.joined import joined
from setpoint.measure.looks import constant, constant_like, in_arrays, may_look
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep, SmoothStep
from setpoint.problem.problem import Problem
from setpoint.solve.correction import Correction, Follower, find_soft, find_with_slack, most_slack, refuse_slack
from setpoint.solve.counted import overflows
from setpoint.solve.memory import Memory, memory_size
from setpoint.solve.plan import StepPlan, counted, plan_of
from setpoint.solve.price import (
    BROKEN_PRICE,
    Damping,
    Expansion,
    count_and_pace,
    count_at,
    count_pace,
    expand_around,
    hold_passing,
    solve_prices,
)
from setpoint.solve.refuse import check_problem, with_groups
from setpoint.solve.solver import Solver, full_precision, settle_temperature, temperature_buffer

_USABLE = torch.tensor(True)


class ImplicitThreshold(Solver):
    """Train the objective as re-optimised over the thresholds of the problem.

    Each step finds the best feasible thresholds on the remembered scores by the true rates, solves for the prices at
    which no small move of the thresholds pays, and returns objective + prices . excesses in soft counts. Without a
    bound the best threshold is held, and moves with the scores around it. An area has one threshold per point, a gap
    between groups one threshold per group. A bound that does not bind costs nothing; a bound that no threshold meets
    costs a flat 10. Until both classes have been seen the loss is zero.

    Args:
        problem: The objective and its bounds.
        n_groups: Number of groups, if the problem compares groups.
        step: Makes the smooth step that the model learns by, given a temperature.
        temperature: Steepness of the step. None sets it once, from the spread of the first scores, and keeps it.
        memory: Number of scores remembered. None chooses it from the bounds; 0 makes every batch stand for itself.
        correction: When and by what the thresholds are searched.
        slope_penalty: Weight of the sum of (d excess / d threshold)^2, in units of the scores.
        damping: Floor of the slopes and limit of the prices.

    Raises:
        BadProblem: If `problem` is not a problem, or `n_groups` does not fit it.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 40%"))
        >>> scores = torch.tensor([2.0, 0.5, -0.3, 1.0, -1.0, -2.0], requires_grad=True)
        >>> solver(scores, torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])).backward()
        >>> solver.thresholds
        tensor([-0.6500])
    """

    #: Whether prices are solved, so that a plan of the problem gives them.
    solves_prices: ClassVar[bool] = True
    thresholds: Tensor
    prices: Tensor
    active: Tensor
    broken: Tensor
    temperature: Tensor
    slacks: Tensor
    steps: Tensor
    corrected_at: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        n_groups: int | None = None,
        step: Callable[[Tensor], SmoothStep] = SigmoidStep,
        temperature: float | None = None,
        memory: int | None = None,
        correction: Correction | None = None,
        slope_penalty: float = 0.0,
        damping: Damping | None = None,
    ) -> None:
        super().__init__()
        check_problem(problem, n_groups)
        if not 0 <= slope_penalty < math.inf:
            raise BadSetting(f"slope_penalty must be finite and not negative, got {slope_penalty!r}")
        self.problem, self.n_groups, self.step, self.slope_penalty = problem, n_groups, step, slope_penalty
        self.correction, self.damping = correction or Correction(), damping or Damping()
        self.finder = Finder(problem)
        self.plan = plan_of(problem, step) if self.solves_prices and not slope_penalty else None
        if self.correction.slack is not None:
            refuse_slack(problem)
        self.follower: Follower | None = None
        self.memory = Memory(memory_size(problem.tightest) if memory is None else memory)
        self._refuse_small_memory(1)
        bounds = len(problem.bounds)
        shape = (problem.n_thresholds,) if n_groups is None else (1, n_groups)
        self.register_buffer("thresholds", torch.zeros(shape))
        for name, dtype in (("prices", None), ("active", torch.bool), ("broken", torch.bool), ("slacks", None)):
            self.register_buffer(name, torch.zeros(bounds, dtype=dtype))
        self.register_buffer("temperature", temperature_buffer(temperature))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("corrected_at", torch.full((), -1))

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Between corrections, let the thresholds follow the optimizer's steps to first order.

        Call it once, after making the optimizer; it costs one more backward pass per threshold.
        """
        if self.correction.every == 1 or self.n_groups is not None or len(self.problem.bounds) != len(self.thresholds):
            raise BadSetting(
                "thresholds can follow the model between corrections, so correction.every must be above 1, "
                "and there must be one bound a threshold"
            )
        self.follower = Follower(optimizer, self.thresholds)

    @property
    def needs_correction(self) -> bool:
        """Whether `correct` should be called before the next step: only ever with `Correction(batches=k)`."""
        steps, last = int(self.steps), int(self.corrected_at)
        return self.correction.batches > 0 and (last < 0 or steps - last >= self.correction.every)

    @torch.no_grad()
    def correct(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Tensor | None = None
    ) -> None:
        """Search the thresholds on these scores, which should all come from one set of parameters, and hold them.

        It is the correction step of `Correction(every, batches=k)`; `sp.methods.correct` scores k batches and calls it.
        Scores without both classes leave the thresholds as they are.

        Raises:
            BadSetting: If the solver searches by itself, or the first scores of all lack a class.
        """
        if not self.correction.batches:
            raise BadSetting(
                "this solver searches its thresholds by itself; make it with sp.losses.Correction(batches=k)"
            )
        with full_precision(scores):
            part = replace(self.check(scores, labels, weights, groups), processes=self.processes).widened()
            sample = with_groups(joined(part)[0], self.problem, self.n_groups)
            if sample.has_both_classes:
                heat = settle_temperature(self.temperature, lambda: sample.spread, sample.dtype, keep=True)
                found = self._found(sample, heat, sample.holds_both_classes)
                for own, new in zip((self.thresholds, self.active, self.broken), found):
                    own.copy_(new)
            elif self.corrected_at < 0:
                raise BadSetting("the batches of the first correction lack a class; use more batches, or larger ones")
            self.corrected_at.copy_(self.steps)

    def _refuse_small_memory(self, size: int) -> None:
        """The latest k batches, of `size` scores each, must still be remembered."""
        latest = self.correction.latest
        if latest > 1 and latest * size > self.memory.size:
            raise BadSetting(
                f"Correction(latest={latest}) with batches of {size} needs memory={latest * size} or more, "
                f"but memory holds {self.memory.size} scores"
            )

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        batch = with_groups(batch, self.problem, self.n_groups)
        newest = self.correction.latest
        if self.training:
            self._refuse_small_memory(len(batch.scores))
        corrected = self.memory.joined(batch, newest=newest) if newest else None
        reference = self.memory.taking(batch, keep=self.training)
        if self.plan is not None and self.follower is None and may_look(batch.scores) and in_arrays(self.thresholds):
            return self._planned_loss(self.plan, batch, reference, corrected)
        nothing = (0.0 * batch.scores).sum()
        if len(reference.scores) == 0:
            return nothing
        usable = (batch.mass > 0) & reference.holds_both_classes
        if may_look(usable) and not bool(usable):
            return nothing
        temperature = settle_temperature(
            self.temperature, lambda: torch.where(usable, reference.spread, 0.0), reference.dtype, keep=self.training
        )
        step = self.step(temperature)
        # With `latest` a device is waited for here, and with `every` in the search: the thresholds may stay.
        thresholds, active, broken = self._search(
            reference if corrected is None or not corrected.has_both_classes else corrected, temperature, usable
        )
        expected, pace = count_and_pace(reference, thresholds, step)
        here = expand_around(self.problem, expected, reference, step)
        # Slopes are taken per unit of temperature x score, so that the floor does not depend on the scale.
        slopes = here.by_threshold(pace / temperature)
        prices = torch.where(broken, BROKEN_PRICE, self.price(here, slopes, active))
        if self.training:
            self.prices.copy_(_where(usable, prices, self.prices))
            self._move_slack(prices)
        share = _where(usable, batch.mass / reference.mass, torch.ones_like(batch.mass))
        counts = count_at(batch, thresholds, step)
        loss = here.loss(prices, counts, share, self._hold(slopes, prices, active, broken, pace / temperature))
        if self.slope_penalty:
            pace = count_pace(batch, thresholds, step) / share
            loss = loss + self.slope_penalty * here.by_threshold(pace)[1].square().sum()
        if self.training and self.follower is not None:
            implicit = self._implicit_thresholds(here, counts / share, slopes[1] * temperature)
            self.follower.watch(implicit, self.processes)
        return _where(usable, loss, nothing.to(loss.dtype))

    @overflows
    def _planned_loss(self, plan: StepPlan, batch: Sample, reference: Sample, corrected: Sample | None) -> Tensor:
        """The same loss on the processor, of problems that have a plan."""
        own, rows = counted(plan, batch, reference)
        if not (own.mass > 0 and rows.has_both_classes):
            return (0.0 * batch.scores).sum()
        temperature = self.temperature
        heat = temperature.item()
        if not heat > 0:
            temperature = settle_temperature(temperature, lambda: reference.spread, reference.dtype, keep=self.training)
            heat = temperature.item()
        searched = reference if corrected is None or not corrected.has_both_classes else corrected
        thresholds, active, broken = self._search(searched, temperature, _USABLE)
        counts, pace = rows.counts_and_pace(thresholds.numpy(), heat)
        own.take_from(rows, self.memory.place_of(batch, reference))
        value, slope, prices = plan.solved(counts, pace, active.numpy(), broken.numpy(), self.damping)
        if self.training:
            self.prices.numpy()[:] = prices
            self._move_slack(self.prices)
        return own.loss(batch.scores, thresholds, heat, value, slope, counts, own.mass / rows.mass)

    def price(self, here: Expansion, slopes: tuple[Tensor, Tensor], active: Tensor) -> Tensor:
        """Where the prices come from: solved, so that no small move of the thresholds pays."""
        one_each = self.problem.over is not None
        return solve_prices(*slopes, active, self.damping, one_each=one_each)

    def _hold(
        self, slopes: tuple[Tensor, Tensor], prices: Tensor, active: Tensor, broken: Tensor, pace: Tensor
    ) -> Tensor | None:
        """Prices of passing scores, where fewer bounds are in force than thresholds; None for areas, else 0."""
        if self.problem.over is not None:
            return None
        left = slopes[0] + prices @ slopes[1]
        free = (active.sum() < len(left)) & ~broken.any()
        return hold_passing(left * free, pace, self.damping)

    def _search(self, sample: Sample, temperature: Tensor, usable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Thresholds, which bounds hold them, and which are broken; held between two corrections."""
        every, batches = self.correction.every, self.correction.batches
        due = not batches and (every == 1 or self.correction.is_due(int(self.steps)))
        if self.training:
            if batches and (self.corrected_at < 0 or self.steps - self.corrected_at >= every + batches):
                raise BadSetting(
                    f"a correction on {batches} batches at one set of parameters is due: call "
                    f"sp.methods.correct(model, solver, batches) every {every} steps, or use "
                    "sp.losses.Correction(latest=), which needs no model"
                )
            if may_look(usable):
                np.add(steps := self.steps.numpy(), 1, out=steps)
            else:
                self.steps.add_(usable)
            if not due:
                return self.thresholds.to(sample.scores.dtype), self.active, self.broken
        thresholds, active, broken = self._found(sample, temperature, usable)
        if self.training:
            for own, new in ((self.thresholds, thresholds), (self.active, active), (self.broken, broken)):
                _write(own, _where(usable, new, own))
        return thresholds, active, broken

    def _found(self, sample: Sample, temperature: Tensor, usable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Thresholds of a sample, which bounds hold them, and which are broken."""
        if self.correction.soft:
            thresholds = find_soft(self.problem, sample, self.step(temperature))
            return thresholds, torch.ones_like(self.active), torch.zeros_like(self.broken)
        if self.correction.slack is None:
            found = self.finder(sample)
        else:
            found, slacks = find_with_slack(self.problem, sample, self.slacks)
            if self.training:
                self.slacks.copy_(slacks)
        thresholds = found.thresholds
        if not may_look(usable):
            thresholds = torch.where(usable, thresholds, 0.0)
        return thresholds, found.active, broken_bounds(self.problem, found)

    def _move_slack(self, prices: Tensor) -> None:
        """One projected gradient step: the loss grows by its price with every unit of slack."""
        if self.correction.slack is not None:
            most = constant_like(tuple(most_slack(bound) for bound in self.problem.constraints), self.slacks)
            moved = (self.slacks - self.correction.slack.rate * prices).clamp(min=0.0).minimum(most)
            self.slacks.copy_(torch.where(self.active, moved, self.slacks))

    def _implicit_thresholds(self, here: Expansion, counts: Tensor, excess_slopes: Tensor) -> Tensor:
        """The thresholds as functions of the batch's scores, right in their first derivative: `(m,)`."""
        excess = torch.einsum("k...,...->k", here.excess_slopes, counts)
        slope = excess_slopes.diagonal()
        floor = self.damping.slope_floor * float(self.temperature)
        return -excess * slope / (slope.square() + floor**2)

    def status(self) -> dict[str, Any]:
        return {
            "thresholds": self.thresholds.flatten().tolist(),
            "prices": self.prices.tolist(),
            "temperature": float(self.temperature),
        }


def broken_bounds(problem: Problem, found: Found) -> Tensor:
    """Which bounds no threshold meets, `(k,)`; an equality never counts as such."""
    met = may_look(found.feasible) and bool(found.feasible)
    if met or not problem.constraints:
        return constant((False,) * len(found.active), torch.bool, found.active.device)
    bounded = constant(tuple(b.relation != "==" for b in problem.bounds), torch.bool, found.active.device)
    return (problem.excesses(found.counts) > 0) & bounded & ~found.feasible


def _write(own: Tensor, new: Tensor) -> None:
    """Write numbers into a buffer; as arrays, where that goes, in a fraction of the time that tensors take."""
    if in_arrays(own):
        np.copyto(own.numpy(), new.numpy(), "same_kind")
    else:
        own.copy_(new)


def _where(usable: Tensor, this: Tensor, other: Tensor) -> Tensor:
    """This if the batch is usable; who could look has done so."""
    return this if may_look(usable) else torch.where(usable, this, other)
