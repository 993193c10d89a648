"""The border: scores and what is known of them, checked once, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadGroups, BadLabels, BadScores, BadWeights, ShapeMismatch

#: Beyond this a score to train on is that of a model that has diverged, and sums of scores leave float32.
LARGEST_SCORE = 1e35
#: Weights that are not 0 lie between these; only their ratios matter, so that any others can be scaled to do so.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e12


@dataclass(frozen=True)
class Sample:
    """Scores, labels (0 or 1, in the dtype of the scores), and, where given, weights and groups."""

    scores: Tensor
    labels: Tensor
    weights: Tensor | None = None
    groups: Tensor | None = None
    n_groups: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The precision to count in: that of the scores, float32 at least."""
        return torch.promote_types(self.scores.dtype, torch.float32)

    @property
    def mass(self) -> Tensor:
        """The total weight (the number of samples, without weights), in float32 at least: half cannot count."""
        if self.weights is None:
            return torch.tensor(float(len(self.scores)), dtype=self.dtype, device=self.scores.device)
        return self.weights.sum(dtype=self.dtype)

    @property
    def spread(self) -> Tensor:
        """The weighted standard deviation of the scores, in float64."""
        scores = self.scores.detach().double()
        weights = torch.ones_like(scores) if self.weights is None else self.weights.double()
        mean = (weights * scores).sum() / weights.sum()
        return ((weights * (scores - mean) ** 2).sum() / weights.sum()).sqrt()

    @property
    def has_both_classes(self) -> bool:
        present = self.labels if self.weights is None else self.labels[self.weights > 0]
        return bool((present > 0).any()) and bool((present == 0).any())

    def detach(self) -> Sample:
        return Sample(self.scores.detach(), self.labels, self.weights, self.groups, self.n_groups)

    def double(self) -> Sample:
        """Detached and in float64, as everything that is judged."""
        weights = None if self.weights is None else self.weights.double()
        return Sample(self.scores.detach().double(), self.labels.double(), weights, self.groups, self.n_groups)


def check_sample(scores: Any, labels: Any, weights: Any = None, groups: Any = None) -> Sample:
    """Tensors, arrays or lists in; a `Sample` out, or one clear error."""
    scores = _tensor(scores, "scores")
    if scores.dim() != 1:
        hint = "; use scores.squeeze(-1)" if scores.dim() == 2 and scores.shape[1] == 1 else ""
        raise ShapeMismatch(f"scores {tuple(scores.shape)} must hold one number a sample, shape (n,){hint}")
    scores = check_scores(scores)
    labels = _labels(labels, scores)
    if weights is not None:
        refuse_odd_weights(_tensor(weights, "weights"))
        weights = _like(weights, scores, "weights")
        if scores.dtype == torch.float16 and not bool(torch.isfinite(weights).all()):
            raise BadWeights("weights beyond 65504 do not fit float16 scores; divide the weights by their mean")
    if groups is not None:
        groups = _tensor(groups, "groups").to(scores.device)
        if groups.shape != scores.shape:
            raise ShapeMismatch(f"groups {tuple(groups.shape)} and scores {tuple(scores.shape)} must match")
        if groups.is_floating_point() or groups.dtype == torch.bool or bool((groups < 0).any()):
            raise BadGroups("groups must be whole numbers from 0 up, one a sample; encode names as numbers first")
        groups = groups.long()
    return Sample(scores, labels, weights, groups)


def check_scores(given: Any) -> Tensor:
    """Finite floating-point scores of any shape, or one clear error."""
    scores = _tensor(given, "scores")
    if not scores.is_floating_point():
        scores = scores.double()
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
    return scores


def name_groups(groups: Any) -> tuple[Tensor, list[str]]:
    """Groups given by any values (names, numbers) as codes from 0 up, and the name of each code."""
    values = groups.detach().cpu().numpy() if isinstance(groups, Tensor) else np.asarray(groups)
    names, codes = np.unique(values.astype(str), return_inverse=True)
    return torch.from_numpy(codes.reshape(values.shape).astype(np.int64)), [str(name) for name in names]


def _labels(values: Any, scores: Tensor) -> Tensor:
    labels = _like(values, scores, "labels")
    odd = (labels != 0) & (labels != 1)
    if bool(odd.any()):
        found = labels[odd][0].item()
        hint = "; for labels of -1 and 1 pass (labels > 0)" if found == -1 else "; map your classes to 0 and 1 first"
        raise BadLabels(f"labels must be 0 or 1, but hold {found:g}{hint}")
    return labels


def refuse_odd_weights(weights: Tensor, whose: str = "weights") -> None:
    """Finite, not negative, and of a size that sums and quotients survive."""
    if not bool(((weights >= 0) & weights.isfinite()).all()):
        raise BadWeights(f"{whose} must be finite and not negative; drop such samples or set their weight to 0")
    present = weights.detach()[weights > 0]
    if len(present) and not (float(present.min()) >= SMALLEST_WEIGHT and float(present.max()) <= LARGEST_WEIGHT):
        raise BadWeights(
            f"{whose} other than 0 must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}, but run from "
            f"{float(present.min()):g} to {float(present.max()):g}; divide them by their mean"
        )


def refuse_huge_scores(scores: Tensor) -> None:
    """Scores whose squares and differences are numbers too."""
    largest = float(scores.detach().abs().max()) if scores.numel() else 0.0
    # Half precision ends at 65504, and slopes of squares must fit too.
    most = min(LARGEST_SCORE, torch.finfo(scores.dtype).max / 16)
    if largest > most:
        raise BadScores(
            f"scores of up to {largest:g} are too large to train on (at most {most:g}); the model has "
            "diverged or its input is not scaled: lower the learning rate or standardise the input"
        )


def _tensor(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        if values.is_complex():
            raise ShapeMismatch(f"{name} must be real numbers, but are of type {values.dtype}")
        return values
    try:
        array = np.asarray(values)
        if array.dtype == object or array.dtype.kind in "USMmcV":
            raise TypeError(f"values of type {array.dtype}")
        return torch.from_numpy(np.array(array, order="C"))
    except (TypeError, ValueError) as cause:
        raise ShapeMismatch(f"{name} must be numbers, one a sample, but could not be read: {cause}") from cause


def _like(values: Any, scores: Tensor, name: str) -> Tensor:
    tensor = _tensor(values, name)
    if tensor.shape != scores.shape:
        raise ShapeMismatch(f"scores {tuple(scores.shape)} and {name} {tuple(tensor.shape)} must match")
    return tensor.detach().to(device=scores.device, dtype=scores.dtype)
