"""The solver: a drop-in criterion. It checks its input once and leaves the method to its children."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from setpoint.errors import BadGroups, BadProblem, BadScores
from setpoint.measure.sample import Sample, check_sample, refuse_huge_scores
from setpoint.problem.problem import Problem


class Solver(nn.Module, ABC):
    """`loss = solver(scores, labels)`, with your own loop, optimizer and sampler.

    All state (thresholds, prices, memory) is in buffers; in `eval()` mode none of it changes. A batch that
    lacks a class is ordinary. Scores that are not finite, labels other than 0 and 1, and shapes that do not
    match are refused by name.
    """

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar. `index` numbers the samples for solvers that price each of them."""
        return self.refuse_odd_loss(self.loss(self.check(scores, labels, weights, groups), index))

    def refuse_odd_loss(self, loss: Tensor) -> Tensor:
        """The loss, if it is a number that can be learned from."""
        value = float(loss.detach())
        if not math.isfinite(value):
            raise BadScores(
                f"the loss of {type(self).__name__} is {value}: numbers too large to count with; lower the learning "
                "rate, or scale the scores or the settings"
            )
        return loss

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """The border: a batch as this solver takes it, or one clear error. Changes no state."""
        sample = check_sample(scores, labels, weights, groups)
        refuse_huge_scores(sample.scores)
        return sample

    @abstractmethod
    def loss(self, batch: Sample, index: Tensor | None) -> Tensor:
        """The loss of a checked batch."""

    def step_metric(self, value: float) -> None:
        """Told once an epoch how the model does on held-out data, larger being better; most solvers need not know."""

    def status(self) -> dict[str, Any]:
        """What is worth logging: thresholds, prices, temperature."""
        return {}


def check_problem(problem: Problem, n_groups: int | None) -> None:
    """A problem, and the number of groups if it compares any."""
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected a problem, got {problem!r}; turn a text into one with sp.ask")
    if problem.group is not None and n_groups is None:
        raise BadProblem(f"'{problem}' compares groups of {problem.group}: say how many there are with n_groups=")
    if problem.group is None and n_groups is not None:
        raise BadProblem(f"'{problem}' compares no groups, so it takes no n_groups")


def with_groups(batch: Sample, problem: Problem, n_groups: int | None) -> Sample:
    """The batch as a problem that may compare groups needs it; any of them may be absent."""
    if n_groups is None:
        return batch
    if batch.groups is None:
        raise BadGroups(f"'{problem}' compares groups of {problem.group}; pass groups= with each batch")
    if len(batch.groups) and int(batch.groups.max()) >= n_groups:
        raise BadGroups(f"group {int(batch.groups.max())} in a batch, but n_groups is {n_groups}")
    return replace(batch, n_groups=n_groups)
