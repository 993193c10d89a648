"""The Lagrangian: thresholds learned beside the model, prices learned from the true violations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from setpoint.decide.cut import find
from setpoint.measure.looks import in_arrays, may_look
from setpoint.measure.sample import Sample
from setpoint.measure.step import HardStep, SigmoidStep, SmoothStep, Step, adds_up, hard_step
from setpoint.problem.problem import Problem
from setpoint.solve.ascent import Ascent, Climb, Numbers
from setpoint.solve.at_one import RowsAtOne
from setpoint.solve.counted import overflows
from setpoint.solve.memory import Memory, memory_size
from setpoint.solve.plan import StepPlan, counted, plan_of
from setpoint.solve.price import Damping, Expansion, count_at, count_pace, expand_around, solve_prices
from setpoint.solve.refuse import check_problem, finite_start, with_groups
from setpoint.solve.solver import Solver, settle_temperature, temperature_buffer


class Prices(Protocol):
    """A source of learned prices, its state in buffers."""

    @property
    def prices(self) -> Tensor: ...

    def start(self, prices: Tensor) -> None: ...

    def felt(self, excesses: Numbers) -> tuple[float, Any]: ...

    def climb(self, excesses: Numbers) -> None: ...

    def look(self) -> None: ...


class Lagrangian(Solver):
    """Minimise objective + prices . excesses over model and thresholds, while each price climbs by its true excess.

    The model and the thresholds learn by soft counts. The thresholds are a parameter: hand `solver.parameters()` to
    your optimizer. The prices move once per training batch, by the true rates of the remembered scores:

        price += lr * excess / room,    never below zero unless the bound is an equality,

    where room is the share that the bound allows (1 % for `fpr <= 1%`). An area has one threshold and one equality per
    point, a gap between groups one threshold per group. Thresholds start at the best feasible cut of the first scores
    that hold both classes, prices where no small move of those thresholds pays. `threshold=0.0, climb=Climb(start=0.0)`
    starts both where a model trained by cross-entropy stands.

    Args:
        problem: The objective and its bounds.
        n_groups: Number of groups, if the problem compares groups.
        climb: How the prices start and climb.
        threshold: The first threshold. None starts at the best feasible cut.
        step: Makes the smooth step that the model learns by, given a temperature.
        truth: The step that moves the prices. With a smooth one the bound is met by soft rates, not by the true ones.
        temperature: Steepness of the smooth step. None sets it once, from the spread of the first scores.
        memory: Number of scores remembered. None chooses it from the bounds; 0 makes every batch stand for itself.

    Raises:
        BadProblem: If `problem` is not a problem, or `n_groups` does not fit it.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.Lagrangian(sp.ask("minimize fnr where fpr <= 50%"))
        >>> scores = torch.tensor([2.0, 0.5, -0.3, 1.0, -1.0, -2.0], requires_grad=True)
        >>> solver(scores, torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])).backward()
        >>> [name for name, _ in solver.named_parameters()]
        ['thresholds']
        >>> sorted(solver.status())
        ['prices', 'temperature', 'thresholds']
    """

    thresholds: nn.Parameter
    temperature: Tensor
    started: Tensor
    ascent: Prices
    _has_started = False

    def __init__(
        self,
        problem: Problem,
        *,
        n_groups: int | None = None,
        climb: Climb | None = None,
        threshold: float | None = None,
        step: Callable[[Tensor], SmoothStep] = SigmoidStep,
        truth: Step = hard_step,
        temperature: float | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__()
        check_problem(problem, n_groups)
        finite_start("threshold", threshold)
        self.problem, self.n_groups, self.step, self.truth = problem, n_groups, step, truth
        self.threshold = threshold
        self.plan = plan_of(problem, step, learned=True) if isinstance(truth, HardStep) else None
        self.memory = Memory(memory_size(problem.tightest) if memory is None else memory)
        shape = (problem.n_thresholds,) if n_groups is None else (1, n_groups)
        self.thresholds = nn.Parameter(torch.zeros(shape))
        self.register_buffer("temperature", temperature_buffer(temperature))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))
        self.ascent = self._climbing(climb)

    def _climbing(self, climb: Climb | None) -> Prices:
        """The source of the prices."""
        return Ascent(self.problem.bounds, climb or Climb())

    @property
    def prices(self) -> Tensor:
        """The present price of each bound."""
        return self.ascent.prices

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        batch = with_groups(batch, self.problem, self.n_groups)
        reference = self.memory.taking(batch, keep=self.training)
        if self.plan is not None and may_look(batch.scores) and in_arrays(self.temperature):
            return self._planned_loss(self.plan, batch, reference)
        # A device is waited for: without both classes no price moves.
        if len(reference.scores) == 0 or not bool((batch.mass > 0) & reference.holds_both_classes):
            return (0.0 * batch.scores).sum()
        temperature = settle_temperature(
            self.temperature, lambda: reference.spread, reference.dtype, keep=self.training
        )
        step = self.step(temperature)
        thresholds = self._start(reference, step, temperature)
        here = expand_around(self.problem, count_at(reference, thresholds.detach(), step), reference, step)
        true = self.problem.excesses(count_at(reference, thresholds.detach(), self.truth))
        weight, prices = self.ascent.felt(true.to(here.excesses.dtype))
        weighed: Expansion = replace(here, cost=weight * here.cost, cost_slope=weight * here.cost_slope)
        loss = weighed.loss(prices, count_at(batch, thresholds, step), batch.mass / reference.mass)
        if self.training:
            self.ascent.climb(true)
        return loss

    @overflows
    def _planned_loss(self, plan: StepPlan, batch: Sample, reference: Sample) -> Tensor:
        """The same loss on the processor, of problems that have a plan."""
        own, rows = counted(plan, batch, reference)
        if not (own.mass > 0 and rows.has_both_classes):
            return (0.0 * batch.scores).sum()
        temperature = settle_temperature(
            self.temperature, lambda: reference.spread, reference.dtype, keep=self.training
        )
        heat, step = temperature.item(), self.step(temperature)
        thresholds = self._start(reference, step, temperature)
        levels, convex = thresholds.detach().numpy(), not adds_up(step)
        true = plan.excesses(rows.true_counts(levels))
        counts = cast(RowsAtOne, rows).counts_by(step, levels) if convex else rows.soft_counts(levels, heat)
        weight, prices = self.ascent.felt(true)
        sizes = (rows.positives, rows.negatives) if convex else None
        value, slope = plan.weighed(counts, weight, prices, sizes)
        if self.training:
            self.ascent.climb(true)
        share = own.mass / rows.mass
        if convex:
            return cast(RowsAtOne, own).convex_loss(batch.scores, thresholds, step, value, slope, counts, share)
        own.take_from(rows, self.memory.place_of(batch, reference))
        return own.loss(batch.scores, thresholds, heat, value, slope, counts, share)

    def _start(self, reference: Sample, step: SmoothStep, temperature: Tensor) -> Tensor:
        """The thresholds; the first time, the best feasible cut, with the prices that hold it in place."""
        if not self._has_started and bool(self.started):
            # From now on nobody needs to ask.
            self._has_started = True
        return self.thresholds if self._has_started else self._first_thresholds(reference, step, temperature)

    @torch.no_grad()
    def _first_thresholds(self, reference: Sample, step: SmoothStep, temperature: Tensor) -> Tensor:
        found = find(self.problem, reference)
        thresholds = found.thresholds.to(reference.scores.dtype)
        if self.threshold is not None:
            thresholds = torch.full_like(thresholds, self.threshold)
        if self.training:
            here = expand_around(self.problem, count_at(reference, thresholds, step), reference, step)
            slopes = here.by_threshold(count_pace(reference, thresholds, step) / temperature)
            solved = solve_prices(*slopes, torch.ones_like(found.active), Damping(1e-3, 1e2))
            self.ascent.start(solved)
            self.thresholds.copy_(thresholds)
            self.started.fill_(True)
            return self.thresholds
        return thresholds

    def look(self) -> None:
        super().look()
        self.ascent.look()

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._has_started = False

    def status(self) -> dict[str, Any]:
        return {
            "thresholds": self.thresholds.detach().flatten().tolist(),
            "prices": self.prices.tolist(),
            "temperature": float(self.temperature),
        }
