"""The choices around the thresholds: when they are corrected, on what, by which rates, and how slack is handled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.cut import Found, find
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import Metric, Rate
from setpoint.measure.sample import Sample
from setpoint.measure.step import Step
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.solve.price import count_at
from setpoint.solve.refuse import above_zero


@dataclass(frozen=True)
class Slack:
    """Treat every inequality as excess_i + slack_i = 0 with slacks that are never negative.

    The bound with the least slack holds the threshold, and its slack is learned: it falls by rate x price at every
    step. The other slacks are what their equations leave at that threshold, and their bounds cost nothing.

    Args:
        rate: Learning rate of the slack.

    Raises:
        BadSetting: If `rate` is not above 0.

    Example:
        >>> import setpoint as sp
        >>> correction = sp.losses.Correction(slack=sp.losses.Slack(rate=0.02))
        >>> solver = sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 5%"), correction=correction)
    """

    rate: float = 0.01

    def __post_init__(self) -> None:
        above_zero(rate=self.rate)


@dataclass(frozen=True)
class Correction:
    """How often the thresholds of `ImplicitThreshold` are searched anew, and on which scores.

    With neither `batches` nor `latest` the search uses all remembered scores.

    Args:
        every: Steps from one search to the next.
        batches: k: search on k batches that are all scored at one set of parameters. A criterion sees scores and not
            the model, so `sp.fit` scores them, and in a loop of your own `sp.methods.correct(model, solver, batches)`.
        latest: k: search on the k latest batches of training, each with the scores of its own step, between which the
            parameters moved. The search waits until k batches have come since it was due; `memory` must hold them.
        soft: Set the thresholds where the smooth rates meet the bounds instead of the true ones.
        slack: Treat inequalities by slack variables in place of a search for the best feasible cut.

    Raises:
        BadSetting: If `every` is below 1, `latest` above `every`, both `batches` and `latest` are given, or `slack`
            comes with `soft`.

    Example:
        >>> import setpoint as sp
        >>> correction = sp.losses.Correction(every=10)
        >>> [step for step in range(25) if correction.is_due(step)]
        [0, 10, 20]
    """

    every: int = 1
    batches: int = 0
    latest: int = 0
    soft: bool = False
    slack: Slack | None = None

    def __post_init__(self) -> None:
        if self.slack is not None and self.soft:
            raise BadSetting("slack variables go with corrections by the true rates, not with soft=True")
        if self.every < 1 or self.batches < 0 or not 0 <= self.latest <= self.every:
            raise BadSetting(
                f"a correction needs every >= 1, batches >= 0 and 0 <= latest <= every, got every={self.every}, "
                f"batches={self.batches}, latest={self.latest}"
            )
        if self.batches and self.latest:
            raise BadSetting("a correction is on batches= at one set of parameters or on the latest=, not on both")

    def is_due(self, step: int) -> bool:
        """Whether the thresholds are searched at this step, counted from 0; the first step always does."""
        return step == 0 or step % self.every == max(self.latest - 1, 0) % self.every


def refuse_slack(problem: Problem) -> None:
    """Slack variables are for inequalities on one threshold."""
    one_threshold = problem.over is None and problem.group is None
    if not one_threshold or not problem.constraints or any(c.relation == "==" for c in problem.constraints):
        raise BadProblem(f"slack variables need inequalities alone, on one threshold, but '{problem}' has other bounds")


def most_slack(bound: Constraint) -> float:
    """The most that the slack of an inequality can be."""
    return max(bound.bound if bound.relation == "<=" else 1 - bound.bound, 0.0)


def find_with_slack(problem: Problem, sample: Sample, slacks: Tensor) -> tuple[Found, Tensor]:
    """The cut at which every excess + slack is 0, with the one bound that holds it, and all slacks there `(k,)`.

    The bound with the least slack holds the cut; where another bound does not let it, that one does.
    """
    # Slacks are numbers of the search, so a device has to say them.
    place = int(slacks.argmin())
    bound, slack = problem.constraints[place], float(slacks[place])

    def distance(*counts: Tensor) -> Tensor:
        return (bound.excess(torch.stack(counts, -1)) + slack).abs()

    found = find(Problem(Metric(f"distance from {bound}", distance), False, problem.constraints), sample)
    left = (-problem.excesses(found.counts)).clamp(min=0).to(slacks.dtype)
    holds = torch.arange(len(slacks), device=slacks.device) == place
    others = found.active & ~holds
    if float(left[place]) > slack and bool(others.any()):
        holds = torch.arange(len(slacks), device=slacks.device) == left.masked_fill(~others, torch.inf).argmin()
        return replace(found, active=holds), left
    return replace(found, active=holds), torch.where(holds, slacks, left)


def find_soft(problem: Problem, sample: Sample, step: Step) -> Tensor:
    """Thresholds at which the smooth rates meet their bounds, by bisection to the last digit: `(m,)`."""
    bounds = problem.bounds
    if problem.n_thresholds != len(bounds) or any(
        not isinstance(b.quantity, Rate) or not b.quantity.direction for b in bounds
    ):
        raise BadProblem(
            f"soft correction needs one bound a threshold, on a rate that moves one way with it, not '{problem}'"
        )
    rate = bounds[0].quantity
    assert isinstance(rate, Rate)
    levels = sample.scores.new_tensor([b.bound for b in bounds])
    reach = (sample.scores.max() - sample.scores.min() + 1) * 40
    low = (sample.scores.min() - reach).expand(len(bounds))
    high = (sample.scores.max() + reach).expand(len(bounds))
    for _ in range(100):
        middle = low / 2 + high / 2
        too_much = (rate(count_at(sample, middle, step)) > levels) == (rate.direction > 0)
        low, high = torch.where(too_much, middle, low), torch.where(too_much, high, middle)
    return low / 2 + high / 2


class Follower:
    """Moves thresholds between two corrections with the model: t += <dt/dtheta, the optimizer's step just taken>.

    It listens to the optimizer, and costs one more backward pass per threshold.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, thresholds: Tensor) -> None:
        self.thresholds = thresholds
        self.parameters: list[Tensor] = [p for group in optimizer.param_groups for p in group["params"]]
        self.slopes: list[list[Tensor | None]] | None = None
        self.processes = ALONE
        self.before: list[Tensor] = []
        optimizer.register_step_pre_hook(self._remember)
        optimizer.register_step_post_hook(self._move)

    def watch(self, implicit: Tensor, processes: Processes) -> None:
        """Take the slopes of the thresholds, given as differentiable functions of the batch's scores `(m,)`."""
        self.processes = processes
        wanted = [p for p in self.parameters if p.requires_grad]
        self.slopes = [list(torch.autograd.grad(one, wanted, retain_graph=True, allow_unused=True)) for one in implicit]

    def _remember(self, *_: Any) -> None:
        if self.slopes is not None:
            self.before = [p.detach().clone() for p in self.parameters if p.requires_grad]

    @torch.no_grad()
    def _move(self, *_: Any) -> None:
        if self.slopes is None:
            return
        moves = [p - q for p, q in zip((p for p in self.parameters if p.requires_grad), self.before)]
        shifts = [
            sum(float((slope * move).sum()) for slope, move in zip(row, moves) if slope is not None)
            for row in self.slopes
        ]
        # Each process knows the slopes of its own part.
        whole = self.processes.sum(torch.tensor(shifts, dtype=torch.float64, device=self.thresholds.device))
        self.thresholds += whole / self.processes.gain
        self.slopes = None
