"""Losses for rare classes, each a solver on its own and a base for the augmented Lagrangian.

All are written for K logits a sample. A binary score s stands for the two logits (0, s), of which the softmax is
(1 - sigmoid(s), sigmoid(s)); class 1 is then the positive one. q is the probability of the sample's own class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.measure.classes import check_classes
from setpoint.measure.sample import Sample
from setpoint.solve.refuse import above_zero
from setpoint.solve.solver import Solver


class BaseLoss(Solver):
    """The weighted mean over samples of a cost each: scores `(n,)` with labels 0 and 1, or `(n, K)` with class numbers.

    An empty batch, or one of weight zero, costs nothing.
    """

    takes_parts = True
    starts_cold = True

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n,)` with 0 and 1, or `(n, K)` with class numbers."""
        if isinstance(scores, Tensor) and scores.dim() == 2 and scores.shape[1] > 1:
            return check_classes(scores, labels, weights)
        return super().check(scores, labels, weights, groups)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        scores = batch.scores.to(torch.promote_types(batch.scores.dtype, torch.float32))
        logits = scores if scores.dim() == 2 else torch.stack([torch.zeros_like(scores), scores], dim=-1)
        costs = self.costs(logits, batch.labels.long())
        if batch.weights is not None:
            costs = batch.weights.to(costs.dtype) * costs
        mass = batch.processes.sum(self.mass(batch))
        return batch.processes.sum(costs.sum()) / torch.where(mass > 0, mass, 1.0).to(costs.dtype)

    def mass(self, batch: Sample) -> Tensor:
        """What the costs of a batch are divided by: its total weight."""
        return batch.mass

    @abstractmethod
    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        """What each sample costs, `(n, K) -> (n,)`."""


class ClassCrossEntropy(BaseLoss):
    """-log q: plain cross-entropy of K classes (for two, `CrossEntropy`, which can also weigh the positives)."""

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        return -log_share(logits, labels)


class Margin(BaseLoss):
    """-log q after `margin` is taken from the logit of the sample's own class: cross-entropy that asks for more.

    Symmetric, for every class, unless `critical` names those that it is kept to. Binary: softplus(margin - s) of a
    positive, softplus(s + margin), or softplus(s) if only the positives are critical, of a negative.
    """

    def __init__(self, margin: float = 1.0, *, critical: int | Sequence[int] | None = None) -> None:
        super().__init__()
        if not 0 <= margin < float("inf"):
            raise BadSetting(f"margin must be 0 or more, got {margin!r}")
        self.margin, self.critical = margin, class_numbers(critical)

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        asked = torch.full_like(logits[:, 0], self.margin)
        if self.critical is not None:
            asked = asked * is_one_of(labels, self.critical)
        return -log_share(less_own(logits, labels, asked), labels)


class Focal(BaseLoss):
    """-(1 - q)^gamma log q: samples that are already right weigh little.

    Symmetric, for every class, unless `critical` names classes that keep the full -log q, which is the asymmetric form.
    """

    def __init__(self, gamma: float = 2.0, *, critical: int | Sequence[int] | None = None) -> None:
        super().__init__()
        if not 0 <= gamma < float("inf"):
            raise BadSetting(f"gamma must be 0 or more, got {gamma!r}")
        self.gamma, self.critical = gamma, class_numbers(critical)

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        own = log_share(logits, labels)
        # 1 - q as a sum of the other shares, in logarithms: near q = 1 the difference itself has no digits left.
        others = logits.scatter(1, labels.unsqueeze(1), -torch.inf).logsumexp(1) - logits.logsumexp(1)
        fading = (self.gamma * others).exp()
        if self.critical is not None:
            fading = torch.where(is_one_of(labels, self.critical), 1.0, fading)
        return -fading * own


class ClassBalanced(BaseLoss):
    """Cross-entropy with class c weighed by (1 - beta) / (1 - beta^n_c), scaled to a mean of 1 over classes.

    `class_counts` are the training samples of each class, in the order of the class numbers: (negatives, positives).
    beta = 0 is no weighing, beta towards 1 weighs by 1 / n_c.
    """

    class_weights: Tensor

    def __init__(self, class_counts: Sequence[int], *, beta: float = 0.999) -> None:
        super().__init__()
        self.register_buffer("class_weights", effective_weights(class_counts, beta), persistent=False)

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        refuse_other_classes(logits, self.class_weights)
        return -self.class_weights.to(logits.dtype)[labels] * log_share(logits, labels)


class LDAM(BaseLoss):
    """Cross-entropy of scale * (logits - own margin), the margin of class c being max_margin (n_min / n_c)^(1/4).

    `class_counts` as in `ClassBalanced`. The published scale of 30 belongs to logits that are cosines; for plain
    logits leave it at 1. After `reweight_after` training steps, if given, the classes are also weighed by their
    effective numbers with `beta` (deferred re-weighting); the steps are counted in a buffer.

    With class weights w the loss of n samples is sum w c / n, the mean over batches of which is that of all samples.
    With `normalised` it is sum w c / sum w, as the weights of torch's cross-entropy make it, and so the usual form: the
    loss keeps its size when the weights come, but a batch of one class is not weighed at all.
    """

    margins: Tensor
    class_weights: Tensor
    steps: Tensor

    def __init__(
        self,
        class_counts: Sequence[int],
        *,
        max_margin: float = 0.5,
        scale: float = 1.0,
        reweight_after: int | None = None,
        beta: float = 0.9999,
        normalised: bool = False,
    ) -> None:
        super().__init__()
        above_zero(max_margin=max_margin, scale=scale)
        if reweight_after is not None and reweight_after < 0:
            raise BadSetting(f"reweight_after is a number of steps from 0 up, got {reweight_after!r}")
        if normalised and reweight_after is None:
            raise BadSetting(
                "normalised is about class weights: say with reweight_after= when they come, 0 for at once"
            )
        self.scale, self.reweight_after, self.normalised = scale, reweight_after, normalised
        weights = effective_weights(class_counts, beta)
        counts = torch.tensor(class_counts, dtype=torch.float64)
        self.register_buffer("class_weights", weights, persistent=False)
        self.register_buffer("margins", max_margin * (counts.min() / counts) ** 0.25, persistent=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        loss = super().loss(batch, index)
        if self.training:
            self.steps += 1
        return loss

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        refuse_other_classes(logits, self.margins)
        asked = self.margins.to(logits.dtype)[labels]
        costs = -log_share(self.scale * less_own(logits, labels, asked), labels)
        return costs * self.class_weights.to(logits.dtype)[labels] if self._weighs else costs

    def mass(self, batch: Sample) -> Tensor:
        if not (self.normalised and self._weighs):
            return super().mass(batch)
        each = self.class_weights[batch.labels.long()]
        return (each if batch.weights is None else each * batch.weights).sum()

    @property
    def _weighs(self) -> bool:
        """Whether the class weights have come."""
        return self.reweight_after is not None and int(self.steps) >= self.reweight_after


class MiniBatchAUC(Solver):
    """Mean over the batch's pairs of (1 - (s_j - s_k))^2, in O(n) by means and variances.

        (1 - (m_+ - m_-))^2 + var_+ + var_-

    The direct way to the area, as a baseline. Pairs that are ordered by more than 1 cost again, which no hinge does.
    A batch that lacks a class costs nothing.
    """

    starts_cold = True

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        if len(batch.scores) == 0 or not batch.has_both_classes:
            return (0.0 * batch.scores).sum()
        scores = batch.scores.to(torch.promote_types(batch.scores.dtype, torch.float32))
        weights = torch.ones_like(scores) if batch.weights is None else batch.weights.to(scores.dtype)
        sides = torch.stack([weights * batch.labels, weights * (1 - batch.labels)])
        sides = sides / sides.sum(1, keepdim=True)
        high, low = (sides @ scores).unbind()
        spread = (sides[0] * (scores - high).square()).sum() + (sides[1] * (scores - low).square()).sum()
        distance: Tensor = 1 - high + low
        return distance.square() + spread


def log_share(logits: Tensor, labels: Tensor) -> Tensor:
    """log q, the logarithm of the softmax at each sample's own class."""
    return logits.log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1)


def less_own(logits: Tensor, labels: Tensor, margin: Tensor) -> Tensor:
    """The logits with each sample's margin taken from that of its own class."""
    return logits.scatter_add(1, labels.unsqueeze(1), -margin.unsqueeze(1))


def is_one_of(labels: Tensor, classes: tuple[int, ...]) -> Tensor:
    return torch.isin(labels, torch.tensor(classes, device=labels.device))


def class_numbers(critical: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """One class or several as a tuple."""
    if critical is None:
        return None
    classes = (critical,) if isinstance(critical, int) else tuple(critical)
    if not classes or any(isinstance(c, bool) or not isinstance(c, int) or c < 0 for c in classes):
        raise BadSetting(f"critical classes are whole numbers from 0 up, at least one, got {critical!r}")
    return classes


def effective_weights(class_counts: Sequence[int], beta: float) -> Tensor:
    """(1 - beta) / (1 - beta^n) for each class, scaled to a mean of 1, in float64."""
    counts = torch.as_tensor(class_counts, dtype=torch.float64)
    if counts.dim() != 1 or len(counts) < 2 or bool((counts < 1).any()):
        raise BadSetting(f"class_counts must hold at least one sample of each of two or more classes, {class_counts!r}")
    if not 0 <= beta < 1:
        raise BadSetting(f"beta must lie from 0 up to below 1, got {beta!r}")
    weights = (1 - beta) / (1 - beta**counts)
    return weights / weights.mean()


def refuse_other_classes(logits: Tensor, per_class: Tensor) -> None:
    if logits.shape[1] != len(per_class):
        raise ShapeMismatch(f"scores of {logits.shape[1]} classes came for class_counts of {len(per_class)}")
