"""Counts per class: one of K classes is predicted, and each class is counted against the rest.

The prediction is the class of the largest `score - shift`. Counts are `(..., K, 4)`: one row per class, with its
(tp, fp, fn, tn) in the last dimension. Every rate of the catalogue then has one value per class, and `OfClass`,
`Macro` and `Micro` make one number of them; so do the quantities in `over_classes`.
"""

from __future__ import annotations

import difflib
import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from setpoint.errors import BadLabels, BadProblem, BadScores, BadWeights, ShapeMismatch
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Metric, Rate, accuracy, error, flagged, fnr, recall, spelled
from setpoint.measure.sample import Sample, check_weights, read_numbers, refuse_huge_scores
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


def predict_class(scores: Tensor, shifts: Tensor | float = 0.0) -> Tensor:
    """The predicted class, argmax_k(score_k - shift_k), `(n, K) -> (n,)`; among tied classes the lowest."""
    return (scores - shifts).argmax(-1)


def class_shares(scores: Tensor, shifts: Tensor | float = 0.0, temperature: Tensor | float | None = None) -> Tensor:
    """The share of each sample that counts as predicted as each class, `(n, K)`; each row sums to 1.

    softmax(temperature * (scores - shifts)); without a temperature 1 for the predicted class and 0 for the others.
    """
    if temperature is None:
        return torch.nn.functional.one_hot(predict_class(scores, shifts), scores.shape[-1]).double()
    margin = temperature * (scores - shifts)
    return torch.softmax(margin.to(torch.promote_types(margin.dtype, torch.float32)), dim=-1)


def count_classes(
    scores: Tensor,
    labels: Tensor,
    shifts: Tensor | float = 0.0,
    temperature: Tensor | float | None = None,
    *,
    weights: Tensor | None = None,
) -> Tensor:
    """Weighted one-against-the-rest counts of the K classes, `(K, 4)`: hard, or soft at a temperature.

    Hard counts are added up in float64, soft ones in the precision of the scores, float32 at least.
    """
    if temperature is None:
        return counts_of(confusion(predict_class(scores, shifts), labels, scores.shape[-1], weights))
    shares = class_shares(scores, shifts, temperature)
    members = torch.nn.functional.one_hot(labels, scores.shape[-1]).to(shares.dtype)
    others = 1 - members
    if weights is not None:
        mass = weights.to(shares.dtype).unsqueeze(-1)
        members, others = members * mass, others * mass
    four = [shares * members, shares * others, (1 - shares) * members, (1 - shares) * others]
    return torch.stack([part.sum(0) for part in four], dim=-1)


def confusion(predicted: Tensor, labels: Tensor, n_classes: int, weights: Tensor | None = None) -> Tensor:
    """The weight of the samples of each class (rows) that are predicted as each class (columns), `(K, K)`, float64."""
    own = None if weights is None else weights.detach().double()
    table = torch.bincount(labels * n_classes + predicted, own, minlength=n_classes**2)
    return table.double().view(n_classes, n_classes)


def counts_of(table: Tensor) -> Tensor:
    """The one-against-the-rest counts of a confusion matrix, `(..., K, K) -> (..., K, 4)`."""
    hits = table.diagonal(dim1=-2, dim2=-1)
    wrong = table - torch.diag_embed(hits)
    fp, fn = wrong.sum(-2), wrong.sum(-1)
    rest = table.sum((-2, -1)).unsqueeze(-1) - hits - fp - fn
    return torch.stack([hits, fp, fn, rest.clamp(min=0)], dim=-1)


#: The kind of question about one of several classes, which shifts per class answer.
CLASSES = "classes"


class ClassQuantity(Quantity, ABC):
    """A function of the counts of K classes, `(..., K, 4) -> (...)`, made of a rate of each class."""

    kind = CLASSES
    rate: Rate | Metric

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Rate | Metric):
            raise BadProblem(f"{type(self).__name__} is made of a rate such as sp.recall, but got {self.rate!r}")

    @property
    def is_share(self) -> bool:
        return self.rate.is_share

    def adopt(self, plain: Quantity) -> Quantity:
        return as_class_quantity(plain)

    def resolved(self, names: Sequence[str]) -> ClassQuantity:
        """The same quantity where the classes have these names; a named class then has its number among them."""
        return self

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


@dataclass(frozen=True, eq=False, repr=False)
class OfClass(ClassQuantity):
    """The rate of one class against the rest.

    `OfClass(sp.flagged, 2)` is the coverage of class 2: the share of samples predicted as class 2.

    Args:
        rate: A rate or metric such as `sp.recall`.
        label: The class: its number from 0 up, or its name. A named class has a value once its number is known, which
            `problem.resolved(names)` sets.
        number: The number of the class, where the names of all classes are known.

    Raises:
        BadProblem: If the class is neither a name nor a whole number from 0 up.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.minimize(sp.error, sp.classes.OfClass(sp.flagged, "fraud") <= 0.02)
        >>> print(problem.resolved(["fine", "fraud"]))
        minimize error where coverage of class fraud <= 2%
    """

    rate: Rate | Metric
    label: int | str
    number: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.label, str) and self.label
        if not named and (isinstance(self.label, bool) or not isinstance(self.label, int) or self.label < 0):
            raise BadProblem(f"classes are names or whole numbers from 0 up, but got class {self.label!r}")

    @property
    def k(self) -> int:
        """The number of the class; refused where only its name is known."""
        if self.number is not None:
            return self.number
        if isinstance(self.label, str):
            raise BadProblem(
                f"{self} names a class whose number is not known; give the names of all classes in order, as in "
                "problem.resolved(names)"
            )
        return self.label

    def resolved(self, names: Sequence[str]) -> OfClass:
        if str(self.label) in names:
            return replace(self, number=list(names).index(str(self.label)))
        # Where classes are named by numbers, a number is a name (2 is "2.0" too); elsewhere it is the place of a class.
        values = [_value(name) for name in names]
        if isinstance(self.label, int) and self.label in values:
            return replace(self, number=values.index(self.label))
        if isinstance(self.label, int) and self.label < len(names) and all(map(math.isnan, values)):
            return replace(self, number=self.label)
        near = difflib.get_close_matches(str(self.label), names, n=3, cutoff=0.5)
        known = f"did you mean {' or '.join(map(repr, near))}?" if near else f"the classes are {_some(names)}"
        raise BadProblem(f"{self} names a class that is not there; {known}")

    @property
    def name(self) -> str:  # type: ignore[override]
        rate = "coverage" if bool(self.rate == flagged) else self.rate
        return f"{rate} of class {spelled(self.label) if isinstance(self.label, str) else self.label}"

    def __call__(self, counts: Tensor) -> Tensor:
        return self.rate(counts[..., self.k, :])

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        return self.rate.resolution(counts[..., self.k, :], heaviest)

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(), self.label)


@dataclass(frozen=True, eq=False, repr=False)
class Macro(ClassQuantity):
    """The mean of a rate over the K classes; every class counts alike.

    A class without samples has a rate of 0.

    Args:
        rate: A rate or metric such as `sp.recall`.

    Example:
        >>> import setpoint as sp, torch
        >>> counts = torch.tensor([[8.0, 1.0, 2.0, 9.0], [4.0, 2.0, 4.0, 10.0]])
        >>> round(float(sp.classes.Macro(sp.recall)(counts)), 3)
        0.65
    """

    rate: Rate | Metric

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"macro {self.rate}"

    def __call__(self, counts: Tensor) -> Tensor:
        return self.rate(counts).mean(-1)

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        # A sample that moves leaves one class and enters another.
        return 2 * self.rate.resolution(counts, heaviest).amax(-1) / counts.shape[-2]


@dataclass(frozen=True, eq=False, repr=False)
class Micro(ClassQuantity):
    """A rate of the counts of all classes added up; every sample counts alike.

    Each sample is predicted as one class, so a false negative of one class is a false positive of another:
    `Micro(sp.fnr)` is the share of samples predicted wrongly, and micro precision, recall and F-score are the accuracy.

    Args:
        rate: A rate or metric such as `sp.fnr`.
        called: Another name, such as `error` where an ask about classes says `error`.

    Example:
        >>> import setpoint as sp, torch
        >>> counts = torch.tensor([[8.0, 4.0, 2.0, 6.0], [6.0, 2.0, 4.0, 8.0]])
        >>> round(float(sp.classes.Micro(sp.fnr)(counts)), 3)
        0.3
    """

    rate: Rate | Metric
    called: str = ""

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.called or f"micro {self.rate}"

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(), self.called)

    def __call__(self, counts: Tensor) -> Tensor:
        return self.rate(counts.sum(-2))

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        return self.rate.resolution(counts.sum(-2), heaviest)


def as_class_quantity(quantity: Quantity) -> ClassQuantity:
    """A quantity of an ask about several classes: there `error` is the share of rows predicted as a wrong class."""
    if isinstance(quantity, ClassQuantity):
        return quantity
    if bool(quantity == error):
        return Micro(fnr, error.name)
    if bool(quantity == accuracy):
        return Micro(recall, accuracy.name)
    if not isinstance(quantity, Rate | Metric):
        raise BadProblem(f"{quantity} is about two classes and does not go together with several; drop it")
    raise BadProblem(
        f"{quantity} is not known of several classes together; say of which class: {quantity} of class NAME, or macro "
        f"{quantity}"
    )


def _value(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.nan


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_classes(scores: Any, labels: Any, weights: Any = None, *, n_classes: int | None = None) -> Sample:
    """Check scores `(n, K)`, class numbers `(n,)` and weights `(n,)`, given as tensors, arrays or lists.

    Labels come out as int64; weights that are not given are 1.
    """
    scores = read_numbers(scores, "scores", BadScores)
    labels = read_numbers(labels, "labels", BadLabels, "; number the classes from 0 up first")
    if scores.dim() != 2 or scores.shape[1] < 2 or (n_classes is not None and scores.shape[1] != n_classes):
        expected = "two classes or more" if n_classes is None else f"here (n, {n_classes})"
        raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give (samples, classes), {expected}")
    if not scores.is_floating_point():
        scores = scores.to(torch.get_default_dtype())
    odd = int((~torch.isfinite(scores)).any(-1).sum())
    if odd:
        raise BadScores(f"{odd} of {len(scores)} rows of scores are not finite; lower the learning rate")
    refuse_huge_scores(scores)
    weights = torch.ones_like(scores[:, 0]) if weights is None else read_numbers(weights, "weights", BadWeights)
    for name, other in (("labels", labels), ("weights", weights)):
        if other.shape != scores.shape[:1]:
            raise ShapeMismatch(f"{len(scores)} rows of scores came with {name} of shape {tuple(other.shape)}")
    whole = labels.long()
    wrong = (whole != labels) | (whole < 0) | (whole >= scores.shape[1])
    if bool(wrong.any()):
        found = float(labels[wrong][0])
        raise BadLabels(f"labels must be class numbers from 0 to {scores.shape[1] - 1}, but hold {found:g}")
    return Sample(scores, whole.to(scores.device), check_weights(weights, scores[:, 0]))
