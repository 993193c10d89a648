"""Implicit thresholds: found exactly at every step, with the prices that the bounds then cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep, SmoothStep
from setpoint.problem.problem import Problem
from setpoint.solve.memory import Memory, memory_size
from setpoint.solve.price import count_pace, expand, soft_count, solve_prices
from setpoint.solve.solver import Solver
from setpoint.solve.threshold import find

#: The price of a bound that no threshold meets: heavy beside an objective of at most 1.
BROKEN_PRICE = 10.0
#: Temperature times the standard deviation of the scores, when nothing else is known of their scale.
SPREADS = 4.0


class ImplicitThreshold(Solver):
    """Trains the objective *as re-optimised over the thresholds* of the problem.

    Each step finds the best feasible thresholds on the remembered scores by the true rates, solves for the
    prices at which no small move of them pays, and returns objective + prices . excesses in soft counts. No
    bound: the best threshold is held. An area: one threshold a point. A bound that does not bind costs nothing;
    one that no threshold meets costs a flat 10. Until both classes have been seen the loss is zero.

    `temperature` is the steepness of the step; None sets it once, from the spread of the first scores, and
    keeps it (a buffer). `memory` is the number of scores remembered; None chooses it from the bounds, 0 makes
    every batch stand for itself. `every` is the number of steps between two searches for the thresholds.
    """

    thresholds: Tensor
    prices: Tensor
    temperature: Tensor
    active: Tensor
    broken: Tensor
    steps: Tensor

    def __init__(
        self,
        problem: Problem,
        *,
        step: Callable[[Tensor], SmoothStep] = SigmoidStep,
        temperature: float | None = None,
        memory: int | None = None,
        every: int = 1,
        price_limit: float = 1e3,
        slope_floor: float = 1e-6,
    ) -> None:
        super().__init__()
        if not isinstance(problem, Problem):
            raise BadProblem(f"expected a problem, got {problem!r}; turn a text into one with sp.ask")
        if problem.group is not None:
            raise BadProblem(f"ImplicitThreshold does not compare groups yet: {problem}")
        if temperature is not None and not 0 < temperature < float("inf"):
            raise BadSetting(f"temperature must be above 0, got {temperature!r}")
        if every < 1:
            raise BadSetting(f"every must be at least 1, got {every!r}")
        self.problem = problem
        self.step = step
        self.every = every
        self.price_limit = price_limit
        self.slope_floor = slope_floor
        self.memory = Memory(memory_size(problem.tightest) if memory is None else memory)
        self.register_buffer("thresholds", torch.zeros(problem.n_thresholds))
        self.register_buffer("prices", torch.zeros(len(problem.bounds)))
        self.register_buffer("active", torch.zeros(len(problem.bounds), dtype=torch.bool))
        self.register_buffer("broken", torch.zeros(len(problem.bounds), dtype=torch.bool))
        self.register_buffer("temperature", torch.tensor(temperature or 0.0))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        reference = self.memory.joined(batch)
        if self.training:
            self.memory.push(batch)
        if len(batch.scores) == 0 or not reference.has_both_classes:
            return batch.scores.sum() * 0
        thresholds, active, broken = self._search(reference)
        temperature = self._settle_temperature(reference)
        step = self.step(temperature)
        here = expand(self.problem, soft_count(reference, thresholds, step))
        # Slopes are taken per unit of temperature x score, so that the floor does not depend on the scale.
        slopes = here.by_threshold(count_pace(reference, thresholds, step) / temperature)
        prices = solve_prices(*slopes, active, floor=self.slope_floor, limit=self.price_limit)
        prices = torch.where(broken, BROKEN_PRICE, prices)
        if self.training:
            self.prices.copy_(prices)
        return here.loss(prices, soft_count(batch, thresholds, step), batch.mass / reference.mass)

    def _search(self, reference: Sample) -> tuple[Tensor, Tensor, Tensor]:
        """Thresholds, which bounds hold them, and which are broken; searched anew every `every` steps."""
        if self.training and int(self.steps) % self.every:
            self.steps += 1
            return self.thresholds.to(reference.scores.dtype), self.active, self.broken
        found = find(self.problem, reference.scores, reference.labels, reference.weights)
        excess = self.problem.excesses(found.counts)
        broken = torch.zeros_like(found.active) if found.feasible else excess > 0
        if self.training:
            self.thresholds.copy_(found.thresholds)
            self.active.copy_(found.active)
            self.broken.copy_(broken)
            self.steps += 1
        return found.thresholds, found.active, broken

    @torch.no_grad()
    def _settle_temperature(self, reference: Sample) -> Tensor:
        """The given temperature, or one over the spread of the scores when they first have any."""
        if float(self.temperature) > 0:
            return self.temperature.to(reference.scores.dtype)
        spread = reference.spread
        if float(spread) <= 0:
            return torch.ones_like(reference.scores[0])
        temperature = (SPREADS / spread).to(reference.scores.dtype)
        if self.training:
            self.temperature.copy_(temperature)
        return temperature

    def status(self) -> dict[str, Any]:
        return {
            "thresholds": self.thresholds.tolist(),
            "prices": self.prices.tolist(),
            "temperature": float(self.temperature),
        }
