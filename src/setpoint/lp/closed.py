"""The programs of the metrics, solved on paper: training uses these, and the solver is tested against them.

The programs give every sample a share flagged, y, between max(0, f + margin) and min(1, 1 + f - margin), where
f = (1 - margin) * squash(score) lies in [-1, 1]: high scores may not be left out, low ones not let in. The optimum
flags as much of each positive and as little of each negative as it may. So, with sums over weights,

    TP = sum over positives of min(1, 1 + f - margin),  FP = sum over negatives of max(0, f + margin),

and P is all positives. Margin 0 is the published program; scores all just below zero are then worth as much as
perfect ones, and training goes there. At margin 1/2 nothing is left to choose: y is the soft
step (1 + squash) / 2. All are O(n), or O(n log n) for pairs, and differentiable in the scores; at a kink the slope
is one of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from setpoint.errors import BadSetting, MissingClass, ShapeMismatch
from setpoint.lp.checks import (
    check_beta,
    check_binary,
    check_classes,
    check_margin,
    check_price,
    check_share,
    check_squash_margin,
)
from setpoint.measure.pairs import Hinge, pair_sum

__all__ = [
    "auc", "auc_mu", "auc_one_vs_all", "auc_ramp", "f_score",
    "jaccard", "precision_at_recall", "recall_at_precision",
]  # fmt: skip

Squash = Callable[[Tensor], Tensor]
#: (TP, FP, P) to the value and its slopes in TP and FP.
Rule = Callable[[float, float, float], tuple[float, float, float]]


def f_score(
    scores: Tensor,
    labels: Tensor,
    *,
    beta: float = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> Tensor:
    """The F-score of the best admissible flags: (1 + beta^2) TP / (TP + FP + beta^2 P).

    One minus it is a loss.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        beta: How much more recall counts than precision.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The F-score, differentiable in the scores.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.closed.f_score(scores, labels)), 4)
        0.8123
    """
    square = check_beta(beta) ** 2

    def rule(tp: float, fp: float, total: float) -> tuple[float, float, float]:
        whole = tp + fp + square * total
        return (1 + square) * tp / whole, (1 + square) * (whole - tp) / whole**2, -(1 + square) * tp / whole**2

    return _value(scores, labels, weights, squash, margin, rule)


def jaccard(
    scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, squash: Squash = torch.tanh, margin: float = 0.0
) -> Tensor:
    """The Jaccard index (intersection over union) of the best admissible flags: TP / (FP + P).

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The Jaccard index, differentiable in the scores.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.closed.jaccard(scores, labels)), 4)
        0.6839
    """

    def rule(tp: float, fp: float, total: float) -> tuple[float, float, float]:
        whole = fp + total
        return tp / whole, 1 / whole, -tp / whole**2

    return _value(scores, labels, weights, squash, margin, rule)


def precision_at_recall(
    scores: Tensor,
    labels: Tensor,
    recall: float,
    *,
    shortfall: float = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> Tensor:
    """Precision once the recall is reached: TP / (TP + FP + shortfall * max(0, recall * P - TP)).

    With a hard bound a model of too low a recall would have no admissible flags at all, and no gradient to mend it.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        recall: The recall to reach, between 0 and 1.
        shortfall: False alarms that one positive missing from the recall counts for.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The precision, differentiable in the scores.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.closed.precision_at_recall(scores, labels, recall=0.5)), 4)
        0.6839
    """
    check_share("recall", recall)
    check_price(shortfall)

    def rule(tp: float, fp: float, total: float) -> tuple[float, float, float]:
        missing = max(0.0, recall * total - tp)
        whole = tp + fp + shortfall * missing
        if whole == 0:
            return 0.0, 0.0, 0.0
        rise = 1.0 - shortfall if missing > 0 else 1.0
        return tp / whole, (whole - tp * rise) / whole**2, -tp / whole**2

    return _value(scores, labels, weights, squash, margin, rule)


def recall_at_precision(
    scores: Tensor,
    labels: Tensor,
    precision: float,
    *,
    shortfall: float = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> Tensor:
    """Recall once the precision is reached.

        (TP - shortfall * max(0, precision * FP - (1 - precision) * TP)) / P

    It may fall below 0 while the precision is missed.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        precision: The precision to reach, between 0 and 1.
        shortfall: Price per flag by which the precision is missed.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The recall, differentiable in the scores.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.closed.recall_at_precision(scores, labels, precision=0.5)), 4)
        1.0
    """
    check_share("precision", precision)
    check_price(shortfall)

    def rule(tp: float, fp: float, total: float) -> tuple[float, float, float]:
        broken = max(0.0, precision * fp - (1 - precision) * tp)
        price = shortfall if broken > 0 else 0.0
        return ((tp - shortfall * broken) / total, (1 + price * (1 - precision)) / total, -price * precision / total)

    return _value(scores, labels, weights, squash, margin, rule)


def auc(scores: Tensor, labels: Tensor, *, margin: float = 1.0, weights: Tensor | None = None) -> Tensor:
    """Mean over positive-negative pairs of max(0, margin - (s_j - s_k)): by how much pairs miss their margin.

    Divided by the margin it bounds 1 - AUC from above. The program has one variable per pair; this is O(n log n).

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        margin: By how much a positive must be above a negative to cost nothing.
        weights: Weight of each sample; None is 1 each.

    Returns:
        The mean, differentiable in the scores.

    Raises:
        MissingClass: If a class has no weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> float(lp.closed.auc(scores, labels))
        0.25
    """
    positive, weights = check_binary(scores, labels, weights)
    return _pair_mean(scores[positive], scores[~positive], weights[positive], weights[~positive], margin)


def auc_ramp(scores: Tensor, labels: Tensor, *, margin: float = 1.0, weights: Tensor | None = None) -> Tensor:
    """Mean over pairs of min(1, max(0, margin - (s_j - s_k)) / margin): the paper's count of misordered pairs.

    Only pairs ordered by less than the margin carry a gradient; at margin 0.01 that is almost none.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        margin: By how much a positive must be above a negative to cost nothing.
        weights: Weight of each sample; None is 1 each.

    Returns:
        The mean, differentiable in the scores.

    Raises:
        MissingClass: If a class has no weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> float(lp.closed.auc_ramp(scores, labels))
        0.25
    """
    at_zero = auc(scores, labels, margin=0.0, weights=weights)
    return (auc(scores, labels, margin=margin, weights=weights) - at_zero) / check_margin(margin)


def auc_one_vs_all(
    scores: Tensor, labels: Tensor, *, margin: float = 1.0, weights: Tensor | None = None, pooled: bool = False
) -> Tensor:
    """The mean of `auc` over classes, each against all others by its own column of the scores.

    Pooled, a class counts by its number of pairs, and a rare one for little.

    Args:
        scores: Scores, `(n, K)`.
        labels: Class number of each sample.
        margin: By how much a pair must be in order to cost nothing.
        weights: Weight of each sample; None is 1 each.
        pooled: One mean over all pairs of samples of different classes, as published.

    Returns:
        The mean, differentiable in the scores.

    Raises:
        MissingClass: If fewer than two classes have weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.eye(3), torch.tensor([0, 1, 1])
        >>> round(float(lp.closed.auc_one_vs_all(scores, labels)), 4)
        0.25
    """
    return _mean_of_duels(one_vs_all(scores, labels, weights), margin, pooled)


def auc_mu(
    scores: Tensor,
    labels: Tensor,
    *,
    partition: Tensor | None = None,
    margin: float = 1.0,
    weights: Tensor | None = None,
    pooled: bool = False,
) -> Tensor:
    """The mean of `auc` over pairs of classes, each pair ranked by its cost difference in `partition`.

    Classes k < l are told apart by v . scores with v = P_k - P_l, turned by the sign of d = v_k - v_l so that k is the
    higher. The default partition ranks by score_k - score_l. Pooled, pairs of samples are ranked by d v . scores: a
    pair of classes then counts by its pairs of samples and by the size of d (2 for the default partition).

    Args:
        scores: Scores, `(n, K)`.
        labels: Class number of each sample.
        partition: `partition[k, l]` is the cost of calling k what is l; None is 0 on the diagonal and 1 elsewhere.
        margin: By how much a pair must be in order to cost nothing.
        weights: Weight of each sample; None is 1 each.
        pooled: One mean over all pairs of samples of different classes, as published.

    Returns:
        The mean, differentiable in the scores.

    Raises:
        MissingClass: If fewer than two classes have weight.
        BadSetting: If the partition costs two classes alike.
        ShapeMismatch: If the partition is not a finite `(K, K)` matrix.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.eye(3), torch.tensor([0, 1, 1])
        >>> round(float(lp.closed.auc_mu(scores, labels)), 4)
        0.0
    """
    return _mean_of_duels(class_pairs(scores, labels, partition, weights, pooled), margin, pooled)


def one_vs_all(
    scores: Tensor, labels: Tensor, weights: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each class present: its scores, those of the others in its column, and both their weights."""
    labels, weights = check_classes(scores, labels, weights)
    for k in labels.unique().tolist():
        here = labels == k
        column = scores[:, k]
        yield column[here], column[~here], weights[here], weights[~here]


def class_pairs(
    scores: Tensor, labels: Tensor, partition: Tensor | None, weights: Tensor | None, pooled: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each pair of classes present: both their rankings by the pair's direction, and their weights."""
    labels, weights = check_classes(scores, labels, weights)
    count = scores.shape[1]
    costs = 1 - torch.eye(count) if partition is None else torch.as_tensor(partition)
    if costs.shape != (count, count) or not bool(costs.isfinite().all()):
        raise ShapeMismatch(f"partition {tuple(costs.shape)} must be a finite ({count}, {count}) matrix of costs")
    costs = costs.to(scores)
    present = labels.unique().tolist()
    for k in present:
        for other in [q for q in present if q > k]:
            direction = costs[k] - costs[other]
            turn = direction[k] - direction[other]
            if float(turn) == 0:
                raise BadSetting(f"partition costs classes {k} and {other} alike: nothing tells them apart")
            ranking = scores @ ((turn if pooled else turn.sign()) * direction)
            here, there = labels == k, labels == other
            yield ranking[here], ranking[there], weights[here], weights[there]


def _mean_of_duels(duels: Iterator[tuple[Tensor, Tensor, Tensor, Tensor]], margin: float, pooled: bool) -> Tensor:
    """The mean over duels of their mean over pairs; `pooled`, the mean over the pairs of all duels."""
    fought = [duel for duel in duels if min(float(duel[2].sum()), float(duel[3].sum())) > 0]
    if not fought:
        raise MissingClass("an area needs samples of at least two classes")
    means = torch.stack([_pair_mean(*duel, margin) for duel in fought])
    if not pooled:
        return means.mean()
    pairs = torch.stack([above.sum() * below.sum() for _, _, above, below in fought])
    return means @ (pairs / pairs.sum()).to(means)


def _pair_mean(higher: Tensor, lower: Tensor, above_weights: Tensor, below_weights: Tensor, margin: float) -> Tensor:
    margin = check_margin(margin, least=0.0)
    pairs = above_weights.sum() * below_weights.sum()
    if not float(pairs) > 0:
        raise MissingClass("an area needs weight on both classes; add samples of the missing one")
    total = pair_sum(higher, lower, Hinge(margin), positive_weights=above_weights, negative_weights=below_weights)
    return total / pairs.to(total)


def _value(scores: Tensor, labels: Tensor, weights: Tensor | None, squash: Squash, margin: float, rule: Rule) -> Tensor:
    positive, weights = check_binary(scores, labels, weights)
    check_squash_margin(margin)
    up = weights * positive
    total = float(up.sum())
    if not total > 0:
        raise MissingClass("a share of the positives needs at least one of them with weight")
    squashed = squash(scores).double()
    value: Tensor = _Shares.apply(squashed, positive, up, weights, total, margin, rule)  # type: ignore[no-untyped-call]
    return value.to(scores.dtype)


class _Shares(torch.autograd.Function):
    """A rule in TP and FP as one node of the graph: on small batches the bookkeeping is most of the time."""

    @staticmethod
    def forward(
        ctx: Any,
        squashed: Tensor,
        positive: Tensor,
        up: Tensor,
        weights: Tensor,
        total: float,
        margin: float,
        rule: Rule,
    ) -> Tensor:
        # 1 - min(1, most) of a positive and max(0, least) of a negative are one function of the signed score.
        lost = torch.where(positive, -squashed, squashed)
        if margin:
            lost.mul_(1 - margin).add_(margin)
        lost.relu_()
        missed, either = float(up @ lost), float(weights @ lost)
        value, by_tp, by_fp = rule(total - missed, either - missed, total)
        # Only what is lost moves with its score; TP rises with the positives', FP with the negatives'.
        slope = torch.mul(weights, by_fp * (1 - margin)).add_(up, alpha=(by_tp - by_fp) * (1 - margin))
        ctx.save_for_backward(slope.mul_(lost.sign_()))
        return squashed.new_tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return gradient * slope, None, None, None, None, None, None


def limits(scores: Tensor, squash: Squash, margin: float) -> tuple[Tensor, Tensor]:
    """The least and the most that may be flagged of each sample, in float64: f + margin and 1 + f - margin."""
    check_squash_margin(margin)
    squashed = squash(scores).double()
    return (1 - margin) * squashed + margin, (1 - margin) * (1 + squashed)
