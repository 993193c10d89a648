"""Losses whose thresholds and prices are a linear program's own: areas, F-scores, precision at recall.

Each is the value of a program of `setpoint.lp.forms`. Training uses the closed form of that value, not the solver:
the two are equal, and the closed form is O(n) or O(n log n). The operating threshold of all but the areas is zero.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadProblem, BadSetting
from setpoint.lp import closed
from setpoint.lp.checks import check_beta, check_price, check_share, check_squash_margin
from setpoint.measure.classes import check_classes
from setpoint.measure.rate import Rate, f_score, fpr, jaccard, precision, recall
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.refuse import above_zero
from setpoint.solve.solver import Solver


class ProgramLoss(Solver):
    """A loss without state; a batch that lacks a class the metric needs costs zero, with a gradient of zeros."""

    needs_negatives = False

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        mass = torch.ones_like(batch.labels) if batch.weights is None else batch.weights
        positives, negatives = float((mass * batch.labels).sum()), float((mass * (1 - batch.labels)).sum())
        if positives <= 0 or (self.needs_negatives and negatives <= 0):
            return (0.0 * batch.scores).sum()
        return self.value(batch)

    @abstractmethod
    def value(self, batch: Sample) -> Tensor:
        """The loss of a batch with the classes it needs."""


class AUCLoss(ProgramLoss):
    """Mean over pairs of max(0, margin - (s_j - s_k)) / margin: an upper bound on 1 - AUC.

    Every pair that misses the margin carries the same gradient, so the loss learns from the first step.

    Args:
        margin: By how much a positive must be above a negative to cost nothing.
        ramp: A pair costs at most 1, as published: closer to 1 - AUC, but only pairs ordered by less than the margin
            then carry a gradient, at margin 0.01 almost none.

    Raises:
        BadSetting: If `margin` is not above 0.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.AUCLoss()(torch.tensor([0.5, 0.0]), torch.tensor([1.0, 0.0])))
        0.5
    """

    needs_negatives = True

    def __init__(self, margin: float = 1.0, *, ramp: bool = False) -> None:
        super().__init__()
        above_zero(margin=margin)
        self.margin, self.ramp = margin, ramp

    def value(self, batch: Sample) -> Tensor:
        if self.ramp:
            return closed.auc_ramp(batch.scores, batch.labels, margin=self.margin, weights=batch.weights)
        return closed.auc(batch.scores, batch.labels, margin=self.margin, weights=batch.weights) / self.margin


class MulticlassAUCLoss(Solver):
    """AUC of scores `(n, K)`: the mean over pairs of classes (AUC-mu), or over classes against all others.

    Classes missing from a batch are left out of the mean; a batch of one class costs zero. By default every pair of
    classes (or every class) counts alike, as it does in the metrics `auc_mu` and `auc_one_vs_rest`. Pooled, classes
    count by their pairs: with classes of 40, 15 and 5 samples the two rare ones share 9 % of the loss, but a third of
    the metric.

    Args:
        margin: By how much a pair must be in order to cost nothing.
        partition: `partition[k, l]` is the cost of answering k when l is true; None is 0 on the diagonal and 1
            elsewhere.
        one_vs_all: Each class against all others by its own score, in place of pairs of classes.
        pooled: One mean over all pairs of samples, each ranked with the size of its orientation and not the sign alone
            (`setpoint.lp.closed.auc_mu`), as published.
        ramp: A pair costs at most 1, as published; see `AUCLoss`.

    Raises:
        BadSetting: If the margin is not above 0, the partition is not finite, or it came with `one_vs_all`.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.MulticlassAUCLoss()(torch.eye(3), torch.tensor([0, 1, 2])))
        0.0
    """

    def __init__(
        self,
        margin: float = 1.0,
        *,
        partition: Tensor | None = None,
        one_vs_all: bool = False,
        pooled: bool = False,
        ramp: bool = False,
    ) -> None:
        super().__init__()
        above_zero(margin=margin)
        if partition is not None and one_vs_all:
            raise BadSetting("a partition matrix belongs to class pairs: leave it out or set one_vs_all=False")
        if partition is not None and not bool((partition.abs() <= 1e12).all()):
            raise BadSetting("partition must hold finite costs of at most 1e12; scale the matrix")
        self.margin, self.one_vs_all, self.pooled, self.ramp = margin, one_vs_all, pooled, ramp
        self.register_buffer("partition", partition)

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n, K)` with class numbers `(n,)`."""
        return check_classes(scores, labels, weights)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        assert batch.weights is not None
        if len(batch.labels[batch.weights > 0].unique()) < 2:
            return (0.0 * batch.scores).sum()
        value = self._short_of(batch, self.margin)
        if self.ramp:
            value = value - self._short_of(batch, 0.0)
        return value / self.margin

    def _short_of(self, batch: Sample, margin: float) -> Tensor:
        """By how much pairs miss a margin."""
        scores, labels, weights, pooled = batch.scores, batch.labels, batch.weights, self.pooled
        if self.one_vs_all:
            return closed.auc_one_vs_all(scores, labels, margin=margin, weights=weights, pooled=pooled)
        partition = self.partition if isinstance(self.partition, Tensor) else None
        return closed.auc_mu(scores, labels, partition=partition, margin=margin, weights=weights, pooled=pooled)


class _SquashedLoss(ProgramLoss):
    """Losses in shares flagged: `scale` multiplies the scores, `margin` says how clear a score must be.

    A positive counts in full once (1 - margin) tanh(scale * score) >= margin, a negative not at all once it is
    below -margin. Margin 0 is the published program, whose loss is nearly zero for any scores just below zero;
    margin 1/2 is the smooth step (1 + tanh) / 2. The default was among the best of five on three small worlds.
    """

    def __init__(self, scale: float = 1.0, margin: float = 0.4) -> None:
        super().__init__()
        above_zero(scale=scale)
        check_squash_margin(margin)
        self.scale, self.margin = scale, margin

    def squash(self, scores: Tensor) -> Tensor:
        return torch.tanh(self.scale * scores)

    def flags(self, batch: Sample) -> dict[str, Any]:
        """The arguments of the closed forms besides scores and labels."""
        return {"weights": batch.weights, "squash": self.squash, "margin": self.margin}


class FScoreLoss(_SquashedLoss):
    """One minus the F-score of the best admissible flags: 1 - (1 + beta^2) TP / (TP + FP + beta^2 P).

    A positive counts in full once (1 - margin) tanh(scale * score) >= margin, a negative not at all once it is below
    -margin. The operating threshold is zero.

    Args:
        beta: How much more recall counts than precision.
        scale: Factor of the scores.
        margin: How clear a score must be, from 0 (the published program) to 0.5 (the smooth step (1 + tanh) / 2).

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.FScoreLoss()(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0])))
        0.0
    """

    def __init__(self, beta: float = 1.0, *, scale: float = 1.0, margin: float = 0.4) -> None:
        super().__init__(scale, margin)
        self.beta = check_beta(beta)

    def value(self, batch: Sample) -> Tensor:
        return 1 - closed.f_score(batch.scores, batch.labels, beta=self.beta, **self.flags(batch))


class JaccardLoss(_SquashedLoss):
    """One minus the Jaccard index (intersection over union) of the best admissible flags: 1 - TP / (FP + P).

    Args:
        scale: Factor of the scores.
        margin: How clear a score must be, from 0 to 0.5, as in `FScoreLoss`.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.JaccardLoss()(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0])))
        0.0
    """

    def value(self, batch: Sample) -> Tensor:
        return 1 - closed.jaccard(batch.scores, batch.labels, **self.flags(batch))


class PrecisionAtRecallLoss(_SquashedLoss):
    """One minus precision where recall is at least `recall`.

    Each positive missing from the recall counts as `shortfall` false alarms. Too small a `shortfall` is paid rather
    than avoided: from about 5 up the bound was met, at 1 it was not.

    Args:
        recall: The recall to reach, between 0 and 1.
        shortfall: False alarms that one missing positive counts for.
        scale: Factor of the scores.
        margin: How clear a score must be, from 0 to 0.5, as in `FScoreLoss`.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.PrecisionAtRecallLoss(0.9)(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0])))
        0.0
    """

    def __init__(self, recall: float, *, shortfall: float = 5.0, scale: float = 1.0, margin: float = 0.4) -> None:
        super().__init__(scale, margin)
        self.recall = check_share("recall", recall)
        self.shortfall = check_price(shortfall)

    def value(self, batch: Sample) -> Tensor:
        settings = {"shortfall": self.shortfall, **self.flags(batch)}
        return 1 - closed.precision_at_recall(batch.scores, batch.labels, self.recall, **settings)


class RecallAtPrecisionLoss(_SquashedLoss):
    """One minus recall where precision is at least `precision`; the loss exceeds 1 while the precision is missed.

    Args:
        precision: The precision to reach, between 0 and 1.
        shortfall: Price per flag by which the precision is missed.
        scale: Factor of the scores.
        margin: How clear a score must be, from 0 to 0.5, as in `FScoreLoss`.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.RecallAtPrecisionLoss(0.9)(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0])))
        0.0
    """

    def __init__(self, precision: float, *, shortfall: float = 5.0, scale: float = 1.0, margin: float = 0.4) -> None:
        super().__init__(scale, margin)
        self.precision = check_share("precision", precision)
        self.shortfall = check_price(shortfall)

    def value(self, batch: Sample) -> Tensor:
        settings = {"shortfall": self.shortfall, **self.flags(batch)}
        return 1 - closed.recall_at_precision(batch.scores, batch.labels, self.precision, **settings)


def program_for(problem: Problem) -> ProgramLoss:
    """The loss whose program is what a problem asks; refused by name where there is none."""
    objective, over = problem.objective, problem.over
    asked = (objective, *((c.quantity, c.relation) for c in problem.constraints))
    if problem.maximize and over is None:
        if asked == (jaccard,):
            return JaccardLoss()
        if asked == (precision, (recall, ">=")):
            return PrecisionAtRecallLoss(problem.constraints[0].bound)
        if asked == (recall, (precision, ">=")):
            return RecallAtPrecisionLoss(problem.constraints[0].bound)
        if isinstance(objective, Rate) and objective.whole[2] > 0 and len(asked) == 1:
            beta = objective.whole[2] ** 0.5
            if objective == f_score(beta):
                return FScoreLoss(beta)
    if problem.maximize and over is not None and objective == recall and over == fpr.between(0, 1, over.points):
        return AUCLoss()
    raise BadProblem(
        f"no linear program for '{problem}': there is one for f_score, jaccard, precision at recall, recall at "
        "precision, and recall over fpr in [0%, 100%]"
    )
