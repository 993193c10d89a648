"""Many labels per sample, each with its own threshold: one implicit problem per label, trained together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.refuse import whole_number
from setpoint.solve.solver import Solver


class OneVsRest(Solver):
    """The mean over L labels of one `ImplicitThreshold` per label: each label has its own threshold.

    Scores and labels are `(n, L)`, labels 0 or 1, and NaN where they are not known. Weights are one per sample or one
    per entry. A label of which only one kind has been seen adds nothing yet.

    Args:
        problem: One problem for every label, a sequence of L problems, or a problem about L labels.
        n_labels: Number of labels L.
        settings: Settings of `ImplicitThreshold`.

    Raises:
        BadSetting: If `n_labels` is not a whole number from 1 up, or the problems are not L.
        ShapeMismatch: If scores, labels or weights have another shape.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.classes.OneVsRest(sp.ask("minimize fnr where fpr <= 50%"), n_labels=2)
        >>> scores, labels = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> loss = solver(scores, labels)
        >>> len(solver.thresholds)
        2
    """

    takes_labels = True
    solvers: nn.ModuleList

    def __init__(self, problem: Problem | Sequence[Problem], n_labels: int, **settings: Any) -> None:
        super().__init__()
        whole_number("n_labels", n_labels)
        if isinstance(problem, LabelProblem):
            problem = list(problem.each.values())
        problems = list(problem) if isinstance(problem, Sequence) else [problem] * n_labels
        if len(problems) != n_labels:
            raise BadSetting(f"{len(problems)} problems came for {n_labels} labels; give one, or one per label")
        self.solvers = nn.ModuleList(ImplicitThreshold(each, **settings) for each in problems)

    @property
    def thresholds(self) -> list[Tensor]:
        """The thresholds of each label."""
        return [solver.thresholds for solver in self._each()]

    @property
    def prices(self) -> list[Tensor]:
        """The prices of each label's bounds."""
        return [solver.prices for solver in self._each()]

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Everything is checked here, before the first label changes any state."""
        n_labels = len(self.solvers)
        if scores.dim() != 2 or scores.shape[1] != n_labels:
            raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give (samples, labels), (n, {n_labels})")
        if labels.shape != scores.shape:
            raise ShapeMismatch(f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must match")
        if weights is not None:
            if weights.shape == scores.shape[:1]:
                weights = weights.unsqueeze(-1).expand(scores.shape)
            if weights.shape != scores.shape:
                raise ShapeMismatch(f"weights {tuple(weights.shape)} must be one per sample or match the scores")
        missing = labels.isnan() if labels.is_floating_point() else torch.zeros_like(labels, dtype=torch.bool)
        if bool(missing.any()):
            weights = (torch.ones_like(scores) if weights is None else weights).masked_fill(missing, 0.0)
            labels = labels.masked_fill(missing, 0.0)
        flat = check_sample(
            scores.flatten(), labels.flatten(), None if weights is None else weights.flatten(), to_train=True
        )
        known = None if flat.weights is None else flat.weights.view(scores.shape)
        return Sample(flat.scores.view(scores.shape), flat.labels.view(scores.shape), known)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        losses = [solver.loss(own, index) for solver, own in self._columns(batch)]
        return torch.stack(losses).mean()

    def keep(self, batch: Sample) -> None:
        for solver, own in self._columns(batch):
            solver.keep(own)

    def _columns(self, batch: Sample) -> Iterator[tuple[ImplicitThreshold, Sample]]:
        """Each label's solver, with the column of the batch that is its own."""
        for column, solver in enumerate(self._each()):
            weights = None if batch.weights is None else batch.weights[:, column]
            yield solver, Sample(batch.scores[:, column], batch.labels[:, column], weights)

    def _each(self) -> list[ImplicitThreshold]:
        return [solver for solver in self.solvers if isinstance(solver, ImplicitThreshold)]

    def status(self) -> dict[str, Any]:
        """Thresholds, prices and temperature of every label: one list per quantity."""
        each = [solver.status() for solver in self._each()]
        return {name: [status[name] for status in each] for name in ("thresholds", "prices", "temperature")}
