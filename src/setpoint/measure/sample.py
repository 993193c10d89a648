"""Samples: scores, labels, weights and groups as tensors, checked once where they come in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadGroups, BadLabels, BadScores, BadWeights, SetpointError, ShapeMismatch
from setpoint.on_use import is_tensor, torch
from setpoint.processes import ALONE, Processes

if TYPE_CHECKING:
    from torch import Tensor

#: Hints for scores of one or two columns.
_HINTS = {1: "; use scores.squeeze(-1)", 2: "; of two classes' logits pass the difference, scores[:, 1] - scores[:, 0]"}
#: Hints for words in the place of numbers.
_WORDS = {
    "labels": "; compare them with the positive class first, as in np.asarray(labels) == 'yes'",
    "groups": "; number the groups from 0 up first",
}
#: The advice on missing values.
_DROP = "drop those samples"
_COMPLEX = "{name} must be real numbers, but are complex; pass {name}.real or {name}.abs()"
#: A larger score comes from a model that has diverged, and sums of such scores overflow float32.
LARGEST_SCORE = 1e35
#: A sum of squares up to which every score is far below that.
_MODERATE = 1e30
#: Weights other than 0 lie between these; only their ratios matter, so any others can be scaled.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e12


@dataclass(frozen=True)
class Sample:
    """Scores, labels (0 or 1, in the dtype of the scores), and, where given, weights and groups.

    For K classes scores are `(n, K)` and labels are class numbers, int64.

    With several `processes` each holds a part of the sample, and the properties below are those of that part.
    """

    scores: Tensor
    labels: Tensor
    weights: Tensor | None = None
    groups: Tensor | None = None
    n_groups: int | None = None
    processes: Processes = field(default_factory=lambda: ALONE)
    #: The values of the columns that an ask names, `(n, C)` in float64: amounts, costs.
    values: Tensor | None = None
    #: The number of the list of each row, where rows are ordered within lists.
    lists: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The precision to count in: that of the scores, float32 at least."""
        own = self.scores.dtype
        return own if own in (torch.float32, torch.float64) else torch.promote_types(own, torch.float32)

    @property
    def mass(self) -> Tensor:
        """The total weight (the number of samples, without weights), in float32 at least: half cannot count."""
        if self.weights is None:
            return torch.full((), float(len(self.scores)), dtype=self.dtype, device=self.scores.device)
        return self.weights.sum(dtype=self.dtype)

    @property
    def totals(self) -> Tensor:
        """The counts when everything passes, `(4,)`: the weight of each class."""
        labels = self.labels.to(self.dtype)
        weights = torch.ones_like(labels) if self.weights is None else self.weights.to(self.dtype)
        positive = (weights * labels).sum()
        return torch.stack([positive, weights.sum() - positive, positive.new_zeros(()), positive.new_zeros(())])

    @property
    def spread(self) -> Tensor:
        """The weighted standard deviation of the scores, in float64."""
        scores = self.scores.detach().double()
        weights = torch.ones_like(scores) if self.weights is None else self.weights.double()
        mean = (weights * scores).sum() / weights.sum()
        return ((weights * (scores - mean) ** 2).sum() / weights.sum()).sqrt()

    @property
    def has_both_classes(self) -> bool:
        return bool(self.holds_both_classes)

    @property
    def holds_both_classes(self) -> Tensor:
        """The same as a boolean tensor on the device of the labels, which is not waited for."""
        sides = torch.stack([self.labels > 0, self.labels == 0])
        there = sides if self.weights is None else sides & (self.weights > 0)
        return there.any(1).all()

    def detach(self) -> Sample:
        return replace(self, scores=self.scores.detach(), processes=ALONE)

    def take(self, rows: Tensor) -> Sample:
        """Some of the rows, by their numbers or by a boolean mask."""
        weights, groups, values, lists = (
            None if part is None else part[rows] for part in (self.weights, self.groups, self.values, self.lists)
        )
        own = replace(self, scores=self.scores[rows], labels=self.labels[rows], weights=weights, groups=groups)
        return own if values is None and lists is None else replace(own, values=values, lists=lists)

    def widened(self) -> Sample:
        """The sample in the precision to count in; the gradient flows back in that of the scores."""
        if self.scores.dtype in (torch.float32, torch.float64):
            return self
        labels = self.labels.to(self.dtype) if self.labels.is_floating_point() else self.labels
        weights = None if self.weights is None else self.weights.to(self.dtype)
        return replace(self, scores=self.scores.to(self.dtype), labels=labels, weights=weights)

    def double(self) -> Sample:
        """The sample detached and in float64, in which everything is judged; class numbers stay whole numbers."""
        weights = None if self.weights is None else self.weights.double()
        scores = self.scores.detach().double()
        # Class numbers stand beside K scores per row.
        labels = self.labels.long() if self.labels.dim() < scores.dim() else self.labels.double()
        return replace(self, scores=scores, labels=labels, weights=weights, processes=ALONE)


def check_sample(
    scores: Any,
    labels: Any,
    weights: Any = None,
    groups: Any = None,
    *,
    look: bool = True,
    to_train: bool = False,
) -> Sample:
    """Check scores, labels, weights and groups, given as tensors, arrays or lists, and make a `Sample` of them.

    Without `look` only types and shapes are checked; the numbers are left to `doubts_of`. Scores `to_train` on must not
    be so large that their squares or differences overflow.
    """
    if look and to_train and weights is None and _is_plain(scores, labels, groups):
        return Sample(scores, labels, None, groups)
    scores = check_scores(scores, look=look, to_train=to_train)
    if scores.dim() != 1:
        hint = _HINTS.get(scores.shape[1], "") if scores.dim() == 2 else ""
        raise ShapeMismatch(f"scores {tuple(scores.shape)} must hold one number per sample, shape (n,){hint}")
    labels = _labels(labels, scores, look)
    if weights is not None:
        weights = check_weights(weights, scores, look=look)
    if groups is not None:
        groups = read_numbers(groups, "groups", BadGroups).to(scores.device)
        if groups.shape != scores.shape:
            raise ShapeMismatch(f"groups {tuple(groups.shape)} and scores {tuple(scores.shape)} must match")
        if groups.is_floating_point() or groups.dtype == torch.bool or (look and bool((groups < 0).any())):
            raise BadGroups("groups must be whole numbers from 0 up, one per sample; encode names as numbers first")
        groups = groups.long()
    return Sample(scores, labels, weights, groups)


def _is_plain(scores: Any, labels: Any, groups: Any) -> bool:
    """Whether these are scores of moderate size, labels of 0 and 1 and numbers of groups, if any: a quick look.

    A yes is certain; a no says that the checks below have to tell what is wrong, if anything is.
    """
    if not (is_tensor(scores) and is_tensor(labels) and scores.is_cpu):
        return False
    if groups is not None and not (is_tensor(groups) and groups.is_cpu and groups.dtype is torch.int64):
        return False
    try:
        numbers, classes, codes = scores.detach().numpy(), labels.numpy(), None if groups is None else groups.numpy()
    except (RuntimeError, TypeError):
        return False
    if numbers.dtype.char not in "fd" or classes.dtype != numbers.dtype:
        return False
    if numbers.ndim != 1 or classes.shape != numbers.shape or not len(numbers):
        return False
    if codes is not None and (codes.shape != numbers.shape or codes.min() < 0):
        return False
    # One score that is NaN or too large makes the sum of squares so; 0 and 1 are their own truth values.
    with np.errstate(over="ignore"):
        moderate = bool(numbers.dot(numbers) <= _MODERATE)
    return moderate and not np.count_nonzero(classes.astype(bool) != classes)


def check_scores(given: Any, *, look: bool = True, to_train: bool = False) -> Tensor:
    """Finite floating-point scores of any shape, or one clear error; scores `to_train` on have a limit."""
    scores = read_numbers(given, "scores", BadScores)
    if not scores.is_floating_point():
        scores = scores.double()
    # The usual case first: this is asked of every batch.
    if not look or within(scores, _largest(scores.dtype) if to_train else LARGEST_SCORE):
        return scores
    odd = ~torch.isfinite(scores)
    # No float64 lies below the lowest one, so that it could never pass a threshold.
    if scores.dtype == torch.float64:
        odd |= scores.abs() >= torch.finfo(torch.float64).max
    if bool(odd.any()):
        nans = int(torch.isnan(scores).sum())
        raise BadScores(
            f"{int(odd.sum())} of {scores.numel()} scores are not finite ({nans} NaN); "
            "the model has diverged or its input holds such values: lower the learning rate or clean the input"
        )
    if to_train:
        refuse_huge_scores(scores)
    return scores


def within(numbers: Tensor, most: float) -> bool:
    """Whether there are numbers, all of them from -most to most, and none is NaN."""
    if not numbers.numel():
        return False
    low, high = torch.aminmax(numbers.detach())
    return -most <= float(low) and float(high) <= most


def name_groups(groups: Any) -> tuple[Tensor, list[str]]:
    """Groups given by any values (names, numbers) as codes from 0 up, and the name of each code."""
    names, codes = numbered(groups)
    return torch.from_numpy(codes), names


def numbered(
    groups: Any, what: str = "groups", remedy: str = "drop those, or give them a group of their own"
) -> tuple[list[str], NDArray[np.int64]]:
    """The name of each group, in order, and the number of the group of each row."""
    values = present_values(groups, what, remedy)
    names, codes = np.unique(values.astype(str), return_inverse=True)
    return [str(name) for name in names], codes.reshape(values.shape).astype(np.int64)


def present_values(
    given: Any, what: str, remedy: str, error: type[SetpointError] = BadGroups, name: str = ""
) -> NDArray[Any]:
    """Any values (names, numbers) as an array, or one clear error if some of the argument `name` are missing."""
    values = given.detach().cpu().numpy() if is_tensor(given) else np.asarray(given)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    else:
        # NumPy turns a NaN among names into the name 'nan', so a list is looked at as it came.
        each = given if isinstance(given, list | tuple) else values.ravel() if values.dtype.kind in "OU" else ()
        missing = np.array([is_missing(value) for value in each], dtype=bool)
    if missing.any():
        raise error(f"{what} are missing {_where(missing, name or what)}; {remedy}")
    return values


def is_missing(value: Any) -> bool:
    """Whether a value stands for one that is missing: None, NaN, or what pandas has in their place."""
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _where(missing: NDArray[np.bool_], name: str) -> str:
    first = int(missing.ravel().argmax())
    return f"for {int(missing.sum())} of {len(missing)} samples, first in {name}[{first}]"


#: Errors that the numbers of an unchecked batch may hold, in the order of `doubts_of`.
DOUBTS: tuple[tuple[type[SetpointError], str], ...] = (
    (BadScores, "scores were not finite, or too large to train on: lower the learning rate or standardise the input"),
    (BadLabels, "labels were other than 0 and 1: map your classes to 0 and 1 first"),
    (BadWeights, f"weights were not finite, negative, or not between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: "
                 "divide them by their mean, and set those of samples to leave out to 0"),
    (BadGroups, "groups were below 0: number them from 0 up"),
)  # fmt: skip


def doubts_of(sample: Sample) -> Tensor:
    """Which of the `DOUBTS` apply, `(4,)`, as a boolean tensor on the device of the sample."""
    scores, labels, weights = sample.scores.detach(), sample.labels, sample.weights
    right = torch.ones((), dtype=torch.bool, device=scores.device)
    return ~torch.stack(
        [
            (scores.abs() <= _largest(scores.dtype)).all(),
            ((labels == 0) | (labels == 1)).all(),
            right
            if weights is None
            else ((weights == 0) | ((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT))).all(),
            right if sample.groups is None else (sample.groups >= 0).all(),
        ]
    )


def _labels(values: Any, scores: Tensor, look: bool = True) -> Tensor:
    labels = _like(values, scores, "labels", BadLabels)
    # Numbers that equal their own truth value are 0 and 1; NaN equals nothing.
    if not look or torch.equal(labels.bool().to(labels.dtype), labels):
        return labels
    odd = (labels != 0) & (labels != 1)
    if bool(labels.isnan().any()):
        raise BadLabels(f"labels are missing {_where(labels.isnan().cpu().numpy(), 'labels')}; {_DROP}")
    found = labels[odd][0].item()
    hint = "; for labels of -1 and 1 pass (labels > 0)" if found == -1 else "; map your classes to 0 and 1 first"
    raise BadLabels(f"labels must be 0 or 1, but hold {found:g}{hint}")


def check_weights(given: Any, scores: Tensor, *, look: bool = True) -> Tensor:
    """Weights in the dtype of the scores `(n,)`, one per sample, or one clear error."""
    if look:
        refuse_odd_weights(read_numbers(given, "weights", BadWeights))
    weights = _like(given, scores, "weights", BadWeights)
    if look and weights.dtype == torch.float16 and not bool(torch.isfinite(weights).all()):
        raise BadWeights("weights beyond 65504 do not fit float16 scores; divide the weights by their mean")
    return weights


def refuse_odd_weights(weights: Tensor, whose: str = "weights") -> None:
    """Refuse weights that are negative, not finite, or so large or small that sums and quotients fail."""
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        raise BadWeights(f"{whose} must be finite and not negative; drop such samples or set their weight to 0")
    present = weights.detach()[weights > 0]
    if not len(present):
        return
    least, most = float(present.min()), float(present.max())
    if least < SMALLEST_WEIGHT or most > LARGEST_WEIGHT:
        raise BadWeights(
            f"{whose} other than 0 must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, but run from "
            f"{least:g} to {most:g}; divide them by their mean"
        )
    if most > LARGEST_WEIGHT * least:
        raise BadWeights(
            f"{whose} run from {least:g} to {most:g}, but none may be more than {LARGEST_WEIGHT:g} times another; "
            "set the smallest to 0"
        )


def refuse_huge_scores(scores: Tensor) -> None:
    """Refuse scores so large that their squares or differences overflow."""
    largest = float(scores.detach().abs().max()) if scores.numel() else 0.0
    most = _largest(scores.dtype)
    if largest > most:
        raise BadScores(
            f"scores of up to {largest:g} are too large to train on (at most {most:g}); the model has "
            "diverged or its input is not scaled: lower the learning rate or standardise the input"
        )


def _largest(dtype: torch.dtype) -> float:
    """The largest score to train on; half precision ends at 65504, and slopes of squares must fit too."""
    return min(LARGEST_SCORE, torch.finfo(dtype).max / 16)


def read_numbers(values: Any, name: str, error: type[SetpointError], hint: str | None = None) -> Tensor:
    """A tensor as it is, an array or a list as a tensor of real numbers, or one clear error."""
    if is_tensor(values):
        if values.is_complex():
            raise error(_COMPLEX.format(name=name))
        return values
    if values is None:
        raise error(f"{name} are missing; pass one number per sample")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise error(_COMPLEX.format(name=name))
        if array.dtype.kind == "V":
            raise error(f"{name} must be numbers, one per sample, but are records of several fields")
        words = array.flat if array.dtype.kind in "OUS" else ()
        for word in (str(value) for value in words if isinstance(value, str | bytes)):
            present_values(values, name, _DROP, error)
            raise error(f"{name} must be numbers, but hold words such as {word!r}{hint or _WORDS.get(name, '')}")
        if array.dtype.kind in "Mm":
            raise error(f"{name} must be numbers, but hold dates or times; turn them into numbers first")
        if array.dtype == object:
            # Booleans and numbers that a table has mixed with None, which becomes NaN and is named as missing later.
            missing = np.array([*map(is_missing, array.flat)], dtype=bool).reshape(array.shape)
            array = np.where(missing, math.nan, array).astype(np.float64)
        return torch.from_numpy(np.array(array, order="C"))
    except (TypeError, ValueError, OverflowError) as cause:
        if isinstance(cause, SetpointError):
            raise
        kind = type(values).__name__
        raise error(f"{name} must be numbers, one per sample, but this {kind} could not be read as such") from cause


def _like(values: Any, scores: Tensor, name: str, error: type[SetpointError]) -> Tensor:
    tensor = read_numbers(values, name, error)
    if tensor.shape != scores.shape:
        hint = f"; use {name}.squeeze(-1)" if tensor.shape == (*scores.shape, 1) else ""
        raise ShapeMismatch(f"scores {tuple(scores.shape)} and {name} {tuple(tensor.shape)} must match{hint}")
    return tensor.detach().to(device=scores.device, dtype=scores.dtype)
