"""Counts per label: each row has several labels, each of them 0, 1 or not known, and each is decided by itself.

Counts are `(..., L, 4)`: one row per label, with its (tp, fp, fn, tn) in the last dimension. An entry that is not known
(NaN) is counted nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setpoint.errors import BadLabels, BadWeights, ShapeMismatch
from setpoint.measure.classes import OfClass
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Metric, Rate, spelled
from setpoint.measure.sample import Sample, check_scores, check_weights, read_numbers
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: The kind of question about several labels per row, which a threshold per label answers.
LABELS = "labels"


@dataclass(frozen=True, eq=False, repr=False)
class OfLabel(OfClass):
    """The rate of one of several labels: positive means that the row has the label, flagged that it is given."""

    kind = LABELS

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.rate} of label {spelled(str(self.label))}"

    def adopt(self, plain: Quantity) -> Quantity:
        return plain


@dataclass(frozen=True, eq=False, repr=False)
class OverLabels(Quantity):
    """The mean over all labels of what is asked of each.

    Where some labels are to be minimised and others maximised it is the mean loss: the value of a rate to minimise, and
    1 less the value of a rate to maximise.

    Args:
        labels: The names of the labels.
        rates: The objective of each label.
        maximize: Whether larger values are better, for each label.
    """

    kind = LABELS
    labels: tuple[str, ...]
    rates: tuple[Rate | Metric, ...]
    maximize: tuple[bool, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether some labels are to be minimised and others maximised."""
        return len(set(self.maximize)) > 1

    @property
    def name(self) -> str:  # type: ignore[override]
        if self.is_mixed:
            return "mean loss"
        return f"mean {self.rates[0]}" if len(set(self.rates)) == 1 else "mean objective"

    @property
    def is_share(self) -> bool:
        return all(rate.is_share for rate in self.rates)

    def __call__(self, counts: Tensor) -> Tensor:
        values = [rate(counts[..., k, :]) for k, rate in enumerate(self.rates)]
        if self.is_mixed:
            values = [1 - value if up else value for value, up in zip(values, self.maximize)]
        return torch.stack(values, dim=-1).mean(-1)

    def adopt(self, plain: Quantity) -> Quantity:
        return plain

    def identity(self) -> tuple[object, ...]:
        return (self.labels, tuple(rate.identity() for rate in self.rates), self.maximize)

    def __repr__(self) -> str:
        return f"OverLabels({self.name})"


def kinds_of_rows(passed: Tensor, labels: Tensor) -> Tensor:
    """Whether each row is a tp, fp, fn or tn of each label, `(n, L, 4)`; an entry that is not known is none of them."""
    has, lacks = labels == 1, labels == 0
    return torch.stack([passed & has, passed & lacks, ~passed & has, ~passed & lacks], dim=-1)


def count_labels(shares: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Weighted counts of the L labels, `(L, 4)`, where `shares (n, L)` of each row count as flagged."""
    has, lacks = (labels == 1).to(shares.dtype), (labels == 0).to(shares.dtype)
    if weights is not None:
        has, lacks = (part * weights.to(shares.dtype).unsqueeze(-1) for part in (has, lacks))
    four = [shares * has, shares * lacks, (1 - shares) * has, (1 - shares) * lacks]
    return torch.stack([part.sum(0) for part in four], dim=-1)


def check_labels(scores: Any, labels: Any, weights: Any = None, *, n_labels: int | None = None) -> Sample:
    """Check scores `(n, L)`, labels `(n, L)` of 0, 1 and NaN, and weights `(n,)`, given as tensors, arrays or lists."""
    scores = check_scores(scores)
    if scores.dim() != 2 or (n_labels is not None and scores.shape[1] != n_labels):
        expected = "one column per label" if n_labels is None else f"one column for each of the {n_labels} labels"
        raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give {expected}, (n, {n_labels or 'L'})")
    known = read_numbers(labels, "labels", BadLabels)
    if known.shape != scores.shape:
        raise ShapeMismatch(
            f"scores {tuple(scores.shape)} and labels {tuple(known.shape)} must match: one column per label"
        )
    known = known.detach().to(device=scores.device, dtype=scores.dtype)
    odd = ~((known == 0) | (known == 1) | known.isnan())
    if bool(odd.any()):
        raise BadLabels(f"labels must be 0, 1 or NaN where they are not known, but hold {float(known[odd][0]):g}")
    if weights is not None:
        given = read_numbers(weights, "weights", BadWeights)
        if given.shape != scores.shape[:1]:
            raise ShapeMismatch(f"{len(scores)} rows of scores came with weights of shape {tuple(given.shape)}")
        weights = check_weights(given, scores[:, 0])
    return Sample(scores, known, weights)


def of_label(sample: Sample, place: int) -> Sample:
    """The rows of a sample of which one label is known, with that label alone."""
    known = ~sample.labels[:, place].isnan()
    weights = None if sample.weights is None else sample.weights[known]
    return Sample(sample.scores[known, place], sample.labels[known, place], weights)
