"""Losses for rare classes, each a solver on its own and a base for the augmented Lagrangian.

All are written for K logits per sample. A binary score s stands for the two logits (0, s), of which the softmax is
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
    """The weighted mean of the costs of the samples: scores `(n,)` with labels 0 and 1, or `(n, K)` with class numbers.

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
        """The divisor of the costs of a batch: its total weight."""
        return batch.mass

    @abstractmethod
    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The cost of each sample, `(n, K) -> (n,)`."""


class ClassCrossEntropy(BaseLoss):
    """Plain cross-entropy of K classes: -log q, where q is the probability of the sample's own class.

    Scores are `(n, K)` with class numbers, or `(n,)` with labels 0 and 1. For two classes `sp.CrossEntropy` can also
    weigh the positives.

    Example:
        >>> import torch, setpoint as sp
        >>> loss = sp.losses.ClassCrossEntropy()(torch.zeros(2, 4), torch.tensor([0, 3]))
        >>> round(float(loss), 4)
        1.3863
    """

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        return -log_share(logits, labels)


class Margin(BaseLoss):
    """Cross-entropy that asks for more: `margin` is taken from the logit of the sample's own class.

    Binary: softplus(margin - s) for a positive and softplus(s + margin) for a negative, or softplus(s) if only the
    positives are critical.

    Args:
        margin: The amount taken from the logit, 0 or more.
        critical: Number of the class that the margin is kept to, or several; None is every class.

    Raises:
        BadSetting: If `margin` is negative, or `critical` does not hold class numbers.

    Example:
        >>> import torch, setpoint as sp
        >>> loss = sp.losses.Margin(1.0)(torch.tensor([1.0, -1.0]), torch.tensor([1.0, 0.0]))
        >>> round(float(loss), 4)
        0.6931
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
    """Focal loss, -(1 - q)^gamma log q: samples that are already right weigh little.

    Args:
        gamma: How fast a sample that is right fades, 0 or more; 0 is cross-entropy.
        critical: Number of the class that keeps the full -log q, or several (the asymmetric form); None is no class.

    Raises:
        BadSetting: If `gamma` is negative, or `critical` does not hold class numbers.

    Example:
        >>> import torch, setpoint as sp
        >>> loss = sp.losses.Focal(gamma=2.0)(torch.zeros(2), torch.tensor([1.0, 0.0]))
        >>> round(float(loss), 4)
        0.1733
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

    Args:
        class_counts: Number of training samples n_c of each class, in the order of the class numbers: (negatives,
            positives).
        beta: From 0 (no weighing) up to below 1 (towards weights of 1 / n_c).

    Raises:
        BadSetting: If a class has no sample, or `beta` is not from 0 up to below 1.
        ShapeMismatch: If scores come with another number of classes.

    Example:
        >>> import setpoint as sp
        >>> sp.losses.ClassBalanced((990, 10)).class_weights
        tensor([0.0312, 1.9688], dtype=torch.float64)
    """

    class_weights: Tensor

    def __init__(self, class_counts: Sequence[int], *, beta: float = 0.999) -> None:
        super().__init__()
        self.register_buffer("class_weights", effective_weights(class_counts, beta), persistent=False)

    def costs(self, logits: Tensor, labels: Tensor) -> Tensor:
        refuse_other_classes(logits, self.class_weights)
        return -self.class_weights.to(logits.dtype)[labels] * log_share(logits, labels)


class LDAM(BaseLoss):
    """Cross-entropy of scale * (logits - own margin), with larger margins for rarer classes.

    The margin of class c is max_margin (n_min / n_c)^(1/4). With class weights w the loss of n samples is sum w c / n,
    the mean over batches of which is that of all samples. With `normalised` it is sum w c / sum w, as the weights of
    torch's cross-entropy make it: the loss keeps its size when the weights come, but a batch of one class is not
    weighed at all.

    Args:
        class_counts: Number of training samples n_c of each class, in the order of the class numbers.
        max_margin: Margin of the rarest class.
        scale: Factor of the logits. The published 30 belongs to logits that are cosines; for plain logits leave it at
            1.
        reweight_after: Training steps after which classes are also weighed by their effective numbers; None is never.
        beta: The beta of those weights, as in `ClassBalanced`.
        normalised: Divide by the sum of the class weights in place of the number of samples.

    Raises:
        BadSetting: If a setting is out of its range, or `normalised` comes without `reweight_after`.
        ShapeMismatch: If scores come with another number of classes.

    Example:
        >>> import setpoint as sp
        >>> sp.losses.LDAM((1600, 100)).margins
        tensor([0.2500, 0.5000], dtype=torch.float64)
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
        """Whether the class weights are in force by now."""
        return self.reweight_after is not None and int(self.steps) >= self.reweight_after


class MiniBatchAUC(Solver):
    """Mean over the pairs of a batch of (1 - (s_j - s_k))^2, in O(n) by means and variances.

        (1 - (m_+ - m_-))^2 + var_+ + var_-

    The direct way to the area, as a baseline. Pairs that are ordered by more than 1 cost again, which no hinge does. A
    batch that lacks a class costs nothing.

    Example:
        >>> import torch, setpoint as sp
        >>> float(sp.losses.MiniBatchAUC()(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.0])))
        0.0
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
