"""The exact metric of a problem as a torchmetrics metric, joined over batches and processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.decide.calibrate import evaluate
from setpoint.errors import BadGroups, MissingClass, missing
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem

try:
    from torchmetrics import Metric
    from torchmetrics.utilities.data import dim_zero_cat
except ImportError as cause:
    raise missing("torchmetrics", "torchmetrics", cause) from None


class OperatingPointMetric(Metric):
    """A torchmetrics metric: the objective at the best feasible cut of everything seen since the last reset.

    Scores are taken as they are, logits or not: only their order matters. `compute` gives the objective in its natural
    direction; where no cut meets the bounds, it gives infinity on the losing side. `point()` gives the operating point,
    which then says how near the bounds one can get. All scores are kept, in float64.

    Args:
        problem: The problem, or an ask.
        settings: The settings of every torchmetrics metric, such as `dist_sync_on_step`.

    Raises:
        BadProblem: If the ask cannot be read.

    Example:
        >>> import torch
        >>> from setpoint.integrations.torchmetrics import OperatingPointMetric
        >>> metric = OperatingPointMetric("minimize fnr where fpr <= 50%")
        >>> metric.update(torch.tensor([0.1, 0.4, 0.6, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> metric.compute()
        tensor(0., dtype=torch.float64)
    """

    is_differentiable = False
    full_state_update = False
    scores: list[Tensor]
    labels: list[Tensor]
    weights: list[Tensor]
    groups: list[Tensor]

    def __init__(self, problem: Problem | str, **settings: Any) -> None:
        super().__init__(**settings)
        self.problem = read_problem(problem, rows=True)
        # A process without data takes part with empty tensors of the metric's dtype: all states must share it.
        self.set_dtype(torch.float64)
        self._kept = ("scores", "labels", "weights", *(("groups",) if self.problem.group is not None else ()))
        for name in self._kept:
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def update(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None, groups: Any = None) -> None:
        """Remember a batch; `groups` are whole numbers, needed when the problem compares groups."""
        batch = check_sample(scores, labels, weights, groups if self.problem.group is not None else None)
        if self.problem.group is not None:
            if batch.groups is None:
                raise BadGroups(
                    f"'{self.problem}' compares groups of {self.problem.group}; pass groups=, one per sample"
                )
            self.groups.append(batch.groups.double())
        self.scores.append(batch.scores.detach().double())
        self.labels.append(batch.labels.double())
        self.weights.append(torch.ones_like(self.scores[-1]) if batch.weights is None else batch.weights.double())

    def compute(self) -> Tensor:
        """The objective at the best feasible cut."""
        return self._value(self._judge(self._seen()))

    def point(self) -> OperatingPoint:
        """The best cut with its threshold and true rates; in a distributed run every process must ask for it."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            seen = self._seen()
        return self._judge(seen)

    def forward(self, scores: Tensor, labels: Tensor, weights: Tensor | None = None, groups: Any = None) -> Tensor:
        """Remember a batch and judge it alone; a batch that lacks a class has the infinite value that loses."""
        self.update(scores, labels, weights, groups)
        try:
            value = self._value(self._judge(check_sample(scores, labels, weights, groups)))
        except MissingClass:
            value = self._worst()
        self._forward_cache = value
        return value

    @property
    def higher_is_better(self) -> bool:
        """Whether the problem maximises."""
        return self.problem.maximize

    def _seen(self) -> Sample:
        parts = {name: getattr(self, name) for name in self._kept}
        whole = {
            name: dim_zero_cat(part).cpu() if len(part) else torch.zeros(0, dtype=torch.float64)
            for name, part in parts.items()
        }
        groups = whole["groups"].long() if "groups" in whole else None
        return Sample(whole["scores"], whole["labels"], whole["weights"], groups)

    def _judge(self, seen: Sample) -> OperatingPoint:
        return evaluate(self.problem, seen.scores, seen.labels, weights=seen.weights, groups=seen.groups)

    def _value(self, point: OperatingPoint) -> Tensor:
        if not point.feasible:
            return self._worst()
        return torch.tensor(point.objective, dtype=torch.float64, device=self.device)

    def _worst(self) -> Tensor:
        worst = -torch.inf if self.problem.maximize else torch.inf
        return torch.tensor(worst, dtype=torch.float64, device=self.device)
