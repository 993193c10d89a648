"""Precision and recall among the k best of each query, over lists padded to one length.

Where the border between rank k and k + 1 runs through tied scores, the tied documents share the places left: the
result is the mean over all orders of the tie, so it does not depend on the order in which documents come.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.errors import BadLabels, BadScores, BadSetting, ShapeMismatch


def precision_at_k(scores: Tensor, labels: Tensor, k: int, mask: Tensor | None = None) -> Tensor:
    """The share of relevant documents among the k best of each query.

    It is hits / k, also if the list has fewer than k documents: a place left empty is a miss.

    Args:
        scores: One score per document, `(queries, documents)`.
        labels: 1 for a relevant document, 0 for any other.
        k: The number of documents taken per query.
        mask: True where there is a document, False for padding; None if there is no padding.

    Returns:
        One value per query, float64, without gradient.

    Raises:
        ShapeMismatch: If the shapes do not match.
        BadScores: If scores are not finite.
        BadLabels: If labels are other than 0 and 1.
        BadSetting: If `k` is no whole number from 1 up, or the mask is not boolean.

    Example:
        >>> import torch
        >>> from setpoint.measure.ranking import precision_at_k
        >>> precision_at_k(torch.tensor([[0.9, 0.5, 0.1]]), torch.tensor([[1, 0, 1]]), k=2)
        tensor([0.5000], dtype=torch.float64)
    """
    present = _check(scores, labels, k, mask)
    return _expected_hits(scores, _relevant(labels, present), k, present) / k


def recall_at_k(scores: Tensor, labels: Tensor, k: int, mask: Tensor | None = None) -> Tensor:
    """The share of each query's relevant documents that are among its k best.

    A query with no relevant document has recall 0.

    Args:
        scores: One score per document, `(queries, documents)`.
        labels: 1 for a relevant document, 0 for any other.
        k: The number of documents taken per query.
        mask: True where there is a document, False for padding; None if there is no padding.

    Returns:
        One value per query, float64, without gradient.

    Raises:
        ShapeMismatch: If the shapes do not match.
        BadScores: If scores are not finite.
        BadLabels: If labels are other than 0 and 1.
        BadSetting: If `k` is no whole number from 1 up, or the mask is not boolean.

    Example:
        >>> import torch
        >>> from setpoint.measure.ranking import recall_at_k
        >>> recall_at_k(torch.tensor([[0.9, 0.5, 0.1]]), torch.tensor([[1, 0, 1]]), k=1)
        tensor([0.5000], dtype=torch.float64)
    """
    present = _check(scores, labels, k, mask)
    relevant = _relevant(labels, present)
    return _expected_hits(scores, relevant, k, present) / relevant.sum(dim=1).clamp(min=1)


def _expected_hits(scores: Tensor, relevant: Tensor, k: int, present: Tensor) -> Tensor:
    """Relevant documents above the border, and of those tied at the border the share that finds a place."""
    ranked = F.pad(torch.where(present, scores.detach(), -torch.inf), (0, 1), value=-torch.inf)
    border = ranked.topk(min(k, ranked.shape[1]), dim=1).values[:, -1:]
    above, tied = present & (scores > border), present & (scores == border)
    places = (k - above.sum(dim=1)).double() / tied.sum(dim=1).clamp(min=1)
    return (relevant * above).sum(dim=1) + places * (relevant * tied).sum(dim=1)


def _relevant(labels: Tensor, present: Tensor) -> Tensor:
    return torch.where(present, labels, 0).double()


def _check(scores: Tensor, labels: Tensor, k: int, mask: Tensor | None) -> Tensor:
    """Which entries are documents; the rest is padding and may hold anything."""
    if scores.dim() != 2:
        raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give (queries, documents)")
    for name, other in (("labels", labels), ("mask", mask)):
        if other is not None and other.shape != scores.shape:
            raise ShapeMismatch(f"scores {tuple(scores.shape)} and {name} {tuple(other.shape)} must match")
    if mask is not None and mask.dtype != torch.bool:
        raise BadSetting(f"mask has dtype {mask.dtype}; give a boolean one, True where there is a document")
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadSetting(f"k is {k!r}; give a whole number from 1 up")
    present = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    if not scores.is_floating_point() or not bool(scores[present].isfinite().all()):
        raise BadScores("scores must be finite floating-point numbers; mask padding, and look for nan or inf")
    if not bool(((labels == 0) | (labels == 1))[present].all()):
        raise BadLabels("labels must be 1 for relevant and 0 for other documents; cut graded labels first")
    return present
