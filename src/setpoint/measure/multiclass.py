"""Areas for more than two classes: the mean over class pairs (AUC-mu), and over one class against the rest."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from setpoint.errors import BadLabels, BadSetting, MissingClass, ShapeMismatch
from setpoint.measure.pairs import concordance
from setpoint.measure.sample import refuse_odd_weights


def auc_mu(scores: Tensor, labels: Tensor, weights: Tensor | None = None, partition: Tensor | None = None) -> Tensor:
    """AUC-mu: the mean over class pairs of how well each pair is ranked across its decision boundary.

    2 / (K (K - 1)) sum_{i<j} P(v.s_j > v.s_i), ties counted half, with v = A_i - A_j the difference of two rows of the
    partition matrix A. Class sizes have no influence, and K = 2 gives the AUC.

    Args:
        scores: One score per sample and class, `(n, K)`.
        labels: The class of each sample, a whole number below K.
        weights: One weight per sample; all 1 if None.
        partition: The matrix A `(K, K)`, whose entry (i, c) is the cost of answering i when c is true. None is 1 off
            the diagonal and 0 on it, the partition of the argmax, which ranks a pair by s_j - s_i.

    Returns:
        A 0-dimensional float64 tensor without gradient.

    Raises:
        ShapeMismatch: If the shapes do not match.
        BadLabels: If labels are no whole numbers below K.
        MissingClass: If a class has no samples.
        BadSetting: If the partition is not finite.

    Example:
        >>> import torch
        >>> from setpoint.measure.multiclass import auc_mu
        >>> scores = torch.tensor([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [0.0, 2.0, 1.0]])
        >>> auc_mu(scores, torch.tensor([0, 1, 2, 2]))
        tensor(0.9167, dtype=torch.float64)
    """
    _check(scores, labels, weights)
    costs = _costs(scores.detach().double(), partition)
    members = [labels == c for c in range(scores.shape[1])]
    areas = []
    for i, j in combinations(range(len(members)), 2):
        ranked = costs[:, i] - costs[:, j]
        areas.append(_area(ranked, members[j], members[i], weights))
    return torch.stack(areas).mean()


def auc_one_vs_rest(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean over classes of the ROC area of the class's own score against all other samples.

    1 / K sum_c P(s_c of class c > s_c of the rest), ties counted half. Every class counts alike, but the rest is a
    mixture that changes with the class sizes.

    Args:
        scores: One score per sample and class, `(n, K)`.
        labels: The class of each sample, a whole number below K.
        weights: One weight per sample; all 1 if None.

    Returns:
        A 0-dimensional float64 tensor without gradient.

    Raises:
        ShapeMismatch: If the shapes do not match.
        BadLabels: If labels are no whole numbers below K.
        MissingClass: If a class has no samples.

    Example:
        >>> import torch
        >>> from setpoint.measure.multiclass import auc_one_vs_rest
        >>> scores = torch.tensor([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [0.0, 2.0, 1.0]])
        >>> auc_one_vs_rest(scores, torch.tensor([0, 1, 2, 2]))
        tensor(0.9028, dtype=torch.float64)
    """
    _check(scores, labels, weights)
    members = [labels == c for c in range(scores.shape[1])]
    areas = [_area(scores[:, c], member, ~member, weights) for c, member in enumerate(members)]
    return torch.stack(areas).mean()


def _area(ranked: Tensor, above: Tensor, below: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return concordance(ranked[above], ranked[below])
    return concordance(ranked[above], ranked[below], weights[above], weights[below])


def _costs(scores: Tensor, partition: Tensor | None) -> Tensor:
    """The cost of each answer for each sample, A s, up to a number common to all answers of a sample."""
    n_classes = scores.shape[1]
    if partition is None:
        return -scores
    if partition.shape != (n_classes, n_classes):
        raise ShapeMismatch(
            f"partition {tuple(partition.shape)} must be ({n_classes}, {n_classes}), one row and one column per class"
        )
    matrix = partition.detach().double()
    if not bool(matrix.isfinite().all()):
        raise BadSetting("partition holds nan or inf; give the finite cost of answering i (row) when c is true")
    # A number added to a column of A moves all answers alike; the zeros that this leaves keep equal scores equal.
    matrix = matrix - matrix.amax(dim=0)
    # Column by column, not by a matrix product, which may round two equal rows differently and undo their tie.
    costs = torch.zeros_like(scores)
    for c in range(n_classes):
        costs += scores[:, c : c + 1] * matrix[:, c]
    return costs


def _check(scores: Tensor, labels: Tensor, weights: Tensor | None) -> None:
    if scores.dim() != 2 or scores.shape[1] < 2:
        raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give (samples, classes), two classes or more")
    n, n_classes = scores.shape
    for name, other in (("labels", labels), ("weights", weights)):
        if other is not None and other.shape != (n,):
            raise ShapeMismatch(f"{n} samples came with {name} of shape {tuple(other.shape)}; give one per sample")
    if not bool(((labels >= 0) & (labels < n_classes) & (labels == labels.long())).all()):
        raise BadLabels(f"labels must be whole numbers from 0 to {n_classes - 1}, one for each column of the scores")
    if weights is not None:
        refuse_odd_weights(weights)
    present = labels if weights is None else labels[weights > 0]
    missing = sorted(set(range(n_classes)) - set(present.unique().long().tolist()))
    if missing:
        raise MissingClass(f"no sample of class {missing[0]}; drop its column of the scores, or add samples of it")
