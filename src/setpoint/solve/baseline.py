"""Cross-entropy, plain and weighted: the baseline that stands beside everything else."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.errors import BadSetting
from setpoint.measure.classes import check_classes
from setpoint.measure.labels import check_labels
from setpoint.measure.sample import Sample, refuse_huge_scores
from setpoint.solve.solver import Solver


class CrossEntropy(Solver):
    """Cross-entropy of logits: of two classes, with positives weighed by `pos_weight`, of K classes or of L labels.

    Scores of K classes are `(n, K)`, and their labels are class numbers. Scores and labels of L labels per row are
    `(n, L)`; the loss is the mean over all labels that are known (not NaN).

    Weights are scaled to a mean of 1 over the data seen so far, so that the loss, and with it the fit of the learning
    rate and of any penalty, does not grow with the weight.

    Args:
        pos_weight: How many negatives one positive counts for (below 1 lowers the positives), "balanced" for both
            classes weighing the same, or None for 1.

    Raises:
        BadSetting: If `pos_weight` is neither a number above 0 nor "balanced" nor None.

    Example:
        >>> import torch, setpoint as sp
        >>> loss = sp.CrossEntropy("balanced")(torch.zeros(4), torch.tensor([1.0, 0.0, 0.0, 0.0]))
        >>> round(float(loss), 4)
        0.6931
    """

    starts_cold = True

    takes_parts = True
    seen: Tensor

    def __init__(self, pos_weight: float | Literal["balanced"] | None = None) -> None:
        super().__init__()
        if isinstance(pos_weight, str):
            if pos_weight != "balanced":
                raise BadSetting(f"pos_weight must be a number, 'balanced' or None, got {pos_weight!r}")
        elif pos_weight is not None and not 0 < pos_weight < float("inf"):
            raise BadSetting(f"pos_weight must be a number above 0, got {pos_weight!r}")
        self.pos_weight = pos_weight
        self.register_buffer("seen", torch.zeros(2, dtype=torch.float64))

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n,)` with labels 0 and 1, `(n, K)` with class numbers, or `(n, L)` with labels 0, 1 and NaN."""
        if not isinstance(scores, Tensor) or scores.dim() != 2 or scores.shape[1] == 1:
            return super().check(scores, labels, weights, groups)
        if self.pos_weight is not None:
            raise BadSetting("pos_weight weighs the positives of two classes; leave it out for more")
        if labels.dim() == 2:
            sample = check_labels(scores, labels, weights)
            refuse_huge_scores(sample.scores)
            return sample
        return check_classes(scores, labels, weights)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        if batch.labels.dim() == 2:
            return self._of_labels(batch)
        if batch.scores.dim() == 2:
            losses = F.cross_entropy(batch.scores.to(batch.dtype), batch.labels, reduction="none")
            assert batch.weights is not None
            mass = batch.processes.sum(batch.weights.to(batch.dtype).sum())
            return batch.processes.sum((batch.weights.to(batch.dtype) * losses).sum()) / torch.where(mass > 0, mass, 1)
        if self.pos_weight is None and batch.weights is None and len(batch.scores) and batch.processes.alone:
            # Every weight is 1, whatever has been seen.
            scores, labels = batch.scores, batch.labels
            if scores.dtype != labels.dtype or scores.dtype not in (torch.float32, torch.float64):
                scores, labels = scores.to(batch.dtype), labels.to(batch.dtype)
            return F.binary_cross_entropy_with_logits(scores, labels)
        # Half precision cannot count, and its reciprocals overflow.
        scores, labels = batch.scores.to(batch.dtype), batch.labels.to(batch.dtype)
        weights = torch.ones_like(scores) if batch.weights is None else batch.weights.to(batch.dtype)
        positive, total = batch.processes.sum(torch.stack([(weights * labels).sum(), weights.sum()]).double())
        seen = torch.stack([positive, total - positive])
        if self.training and self.pos_weight is not None:
            self.seen += seen
        # Decided on the device: nothing here waits for it.
        seen = torch.where(self.seen.sum() > 0, self.seen, seen)
        on_positive, on_negative = self._class_weights(seen)
        class_weights = torch.where(labels > 0, on_positive, on_negative).to(batch.dtype)
        losses = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
        loss = batch.processes.sum((class_weights * weights * losses).sum())
        return loss / torch.where(total > 0, total, 1).to(losses.dtype)

    def _of_labels(self, batch: Sample) -> Tensor:
        known = ~batch.labels.isnan()
        mass = known.to(batch.dtype) * (1 if batch.weights is None else batch.weights.to(batch.dtype).unsqueeze(-1))
        labels = batch.labels.to(batch.dtype).nan_to_num(0.0)
        losses = F.binary_cross_entropy_with_logits(batch.scores.to(batch.dtype), labels, reduction="none")
        total = batch.processes.sum(mass.sum())
        return batch.processes.sum((mass * losses).sum()) / torch.where(total > 0, total, 1)

    def _class_weights(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of positives and negatives, in the asked ratio, of mean 1 over `seen`."""
        positives, negatives = seen
        if self.pos_weight == "balanced":
            ratio = torch.where((seen > 0).all(), negatives / torch.where(positives > 0, positives, 1), 1)
        else:
            ratio = torch.full_like(positives, 1.0 if self.pos_weight is None else float(self.pos_weight))
        mean = (ratio * positives + negatives) / seen.sum()
        mean = torch.where(seen.sum() > 0, mean, 1)
        return ratio / mean, 1 / mean
