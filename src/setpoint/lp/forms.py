"""The metrics as linear programs. `closed` has the solution of each; these are for the solver, and for variations.

Areas: one variable z per pair, minimise their mean where z >= margin - (s_j - s_k). Ratios part(y) / whole(y): with
t = scale / whole(y) and z = t y the ratio is linear (Charnes and Cooper), and the limits on y become rows in z
and t; the value of the program is *minus* the ratio. The matrix is an arrow: one z per row, t in all of them, and
one wide row for the whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import torch
from torch import Tensor

from setpoint.capacity import refuse_beyond_memory
from setpoint.errors import MissingClass
from setpoint.lp.checks import check_beta, check_binary, check_margin, check_price, check_share
from setpoint.lp.closed import Squash, class_pairs, limits, one_vs_all
from setpoint.lp.program import Entries, LinearProgram

__all__ = [
    "auc", "auc_mu", "auc_one_vs_all", "f_score", "f_score_basis",
    "jaccard", "precision_at_recall", "recall_at_precision",
]  # fmt: skip


def auc(scores: Tensor, labels: Tensor, *, margin: float = 1.0, weights: Tensor | None = None) -> LinearProgram:
    """The program whose value is `closed.auc`: one variable per pair, a diagonal matrix.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        margin: By how much a positive must be above a negative to cost nothing.
        weights: Weight of each sample; None is 1 each.

    Returns:
        The program.

    Raises:
        MissingClass: If a class has no weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> lp.solve(lp.forms.auc(scores, labels)).status.name
        'SOLVED'
    """
    positive, weights = check_binary(scores, labels, weights)
    return _pairs(iter([(scores[positive], scores[~positive], weights[positive], weights[~positive])]), margin)


def auc_one_vs_all(
    scores: Tensor, labels: Tensor, *, margin: float = 1.0, weights: Tensor | None = None, pooled: bool = False
) -> LinearProgram:
    """The program whose value is `closed.auc_one_vs_all`.

    Args:
        scores: Scores, `(n, K)`.
        labels: Class number of each sample.
        margin: By how much a pair must be in order to cost nothing.
        weights: Weight of each sample; None is 1 each.
        pooled: One mean over all pairs of samples of different classes, as published.

    Returns:
        The program.

    Raises:
        MissingClass: If fewer than two classes have weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.eye(3), torch.tensor([0, 1, 1])
        >>> lp.solve(lp.forms.auc_one_vs_all(scores, labels)).status.name
        'SOLVED'
    """
    return _pairs(one_vs_all(scores, labels, weights), margin, pooled)


def auc_mu(
    scores: Tensor,
    labels: Tensor,
    *,
    partition: Tensor | None = None,
    margin: float = 1.0,
    weights: Tensor | None = None,
    pooled: bool = False,
) -> LinearProgram:
    """The program whose value is `closed.auc_mu`.

    Args:
        scores: Scores, `(n, K)`.
        labels: Class number of each sample.
        partition: `partition[k, l]` is the cost of calling k what is l; None is 0 on the diagonal and 1 elsewhere.
        margin: By how much a pair must be in order to cost nothing.
        weights: Weight of each sample; None is 1 each.
        pooled: One mean over all pairs of samples of different classes, as published.

    Returns:
        The program.

    Raises:
        MissingClass: If fewer than two classes have weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.eye(3), torch.tensor([0, 1, 1])
        >>> lp.solve(lp.forms.auc_mu(scores, labels)).status.name
        'SOLVED'
    """
    return _pairs(class_pairs(scores, labels, partition, weights, pooled), margin, pooled)


def f_score(
    scores: Tensor,
    labels: Tensor,
    *,
    beta: float = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> LinearProgram:
    """The program whose value is minus `closed.f_score`.

    Args:
        scores: Score of each sample, `(n,)`; `(..., n)` makes a batch of programs, solved together.
        labels: 1 for a positive, 0 for a negative; in the shape of the scores, as the weights are.
        beta: How much more recall counts than precision.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The program.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.solve(lp.forms.f_score(scores, labels)).value), 4)
        -0.8123
    """
    square = check_beta(beta) ** 2
    least, most, up, down, total = _inputs(scores, labels, weights, squash, margin)
    return _ratio(least, most, part=(1 + square) * up, whole=up + down, offset=square * total, scale=total)


def jaccard(
    scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, squash: Squash = torch.tanh, margin: float = 0.0
) -> LinearProgram:
    """The program whose value is minus `closed.jaccard`.

    Args:
        scores: Score of each sample, `(n,)`; `(..., n)` makes a batch of programs, solved together.
        labels: 1 for a positive, 0 for a negative; in the shape of the scores, as the weights are.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The program.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> round(float(lp.solve(lp.forms.jaccard(scores, labels)).value), 4)
        -0.6839
    """
    least, most, up, down, total = _inputs(scores, labels, weights, squash, margin)
    return _ratio(least, most, part=up, whole=down, offset=total, scale=total)


def precision_at_recall(
    scores: Tensor,
    labels: Tensor,
    recall: float,
    *,
    shortfall: float | None = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> LinearProgram:
    """The program whose value is minus `closed.precision_at_recall`.

    Args:
        scores: Score of each sample, `(n,)`; `(..., n)` makes a batch of programs, solved together.
        labels: 1 for a positive, 0 for a negative; in the shape of the scores, as the weights are.
        recall: The recall to reach, between 0 and 1.
        shortfall: False alarms that one positive missing from the recall counts for. None makes the bound hard, as
            published: infeasible when the scores cannot reach it.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The program.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> program = lp.forms.precision_at_recall(scores, labels, recall=0.5)
        >>> round(float(lp.solve(program).value), 4)
        -0.6839
    """
    least, most, up, down, total = _inputs(scores, labels, weights, squash, margin)
    check_share("recall", recall)
    extra = 0 if shortfall is None else 1
    price = up.new_full((*total.shape, extra), 0.0 if shortfall is None else check_price(shortfall))
    nothing = torch.zeros_like(total).unsqueeze(-1)
    ratio = _ratio(least, most, part=up, whole=up + down, offset=torch.zeros_like(total), scale=total)
    # recall * total * t - up . z - missing <= 0, and the missing weigh `shortfall` each in the whole.
    wide = torch.cat([-up, (recall * total).unsqueeze(-1), -torch.ones_like(price)], -1)
    return LinearProgram(
        torch.cat([ratio.cost, torch.zeros_like(price)], -1),
        _append(ratio.matrix, wide, wide.shape[-1]),
        torch.cat([ratio.bound, nothing], -1),
        torch.cat([up + down, nothing, price], -1).unsqueeze(-2),
        total.unsqueeze(-1),
    )


def recall_at_precision(
    scores: Tensor,
    labels: Tensor,
    precision: float,
    *,
    shortfall: float | None = 1.0,
    weights: Tensor | None = None,
    squash: Squash = torch.tanh,
    margin: float = 0.0,
) -> LinearProgram:
    """The program whose value is minus `closed.recall_at_precision`: a plain program, no ratio.

    Args:
        scores: Score of each sample, `(n,)`; `(..., n)` makes a batch of programs, solved together.
        labels: 1 for a positive, 0 for a negative; in the shape of the scores, as the weights are.
        precision: The precision to reach, between 0 and 1.
        shortfall: Price per flag by which the precision is missed. None makes the bound hard: infeasible when the
            scores cannot reach it.
        weights: Weight of each sample; None is 1 each.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The program.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> program = lp.forms.recall_at_precision(scores, labels, precision=0.5)
        >>> round(float(lp.solve(program).value), 4)
        -1.0
    """
    least, most, up, down, total = _inputs(scores, labels, weights, squash, margin)
    check_share("precision", precision)
    n, one = up.shape[-1], torch.ones_like(up)
    extra = 0 if shortfall is None else 1
    # y <= 1, -y <= -least, y <= most, then precision * down . y - (1 - precision) * up . y - broken <= 0.
    own = torch.arange(n, device=up.device)
    index = torch.stack([torch.arange(3 * n, device=up.device), own.repeat_interleave(3)])
    box = Entries(index, torch.stack([one, -one, one], -1).flatten(-2), (3 * n, n + extra))
    box_bounds = torch.stack([one, -least, most], -1).flatten(-2)
    price = up.new_full((*total.shape, extra), 0.0 if shortfall is None else check_price(shortfall))
    wide = torch.cat([precision * down - (1 - precision) * up, -torch.ones_like(price)], -1)
    total = total.unsqueeze(-1)
    return LinearProgram(
        torch.cat([-up, price], -1) / total,
        _append(box, wide, n + extra),
        torch.cat([box_bounds, torch.zeros_like(total)], -1),
    )


def f_score_basis(scores: Tensor, labels: Tensor, *, squash: Squash = torch.tanh, margin: float = 0.0) -> Tensor:
    """Five directions that hold the optimum of every ratio program here.

    The optimal z / t is min(1, most) on positives and max(0, least) on negatives; the columns are their parts.

    Args:
        scores: Score of each sample, `(n,)`.
        labels: 1 for a positive, 0 for a negative.
        squash: Maps scores into [-1, 1].
        margin: How clear a score must be, from 0 to 0.5.

    Returns:
        The directions, as columns `(n + 1, 5)`.

    Raises:
        MissingClass: If no positive has weight.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch
        >>> from setpoint import lp
        >>> scores, labels = torch.tensor([1.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
        >>> lp.forms.f_score_basis(scores, labels).shape
        torch.Size([4, 5])
    """
    least, most, up, down, _ = _inputs(scores.detach(), labels, None, squash, margin)
    parts = [up, up * (most - 1).clamp(max=0), down, down * least.clamp(min=0)]
    corner = torch.eye(len(up) + 1, dtype=up.dtype, device=up.device)[:, -1:]
    return torch.cat([torch.cat([torch.stack(parts, 1), up.new_zeros(1, 4)]), corner], 1)


def _pairs(
    duels: Iterator[tuple[Tensor, Tensor, Tensor, Tensor]], margin: float, pooled: bool = False
) -> LinearProgram:
    margin = check_margin(margin, least=0.0)
    costs, bounds = [], []
    for above, below, above_weights, below_weights in duels:
        pairs = len(above) * len(below)
        refuse_beyond_memory(
            f"the program of {pairs} pairs", 64 * pairs, "sp.lp.closed has its value from the scores alone"
        )
        cost = (above_weights.unsqueeze(1) * below_weights).reshape(-1)
        if float(cost.sum()) > 0:
            costs.append(cost if pooled else cost / cost.sum())
            bounds.append((above.double().unsqueeze(1) - below.double()).reshape(-1) - margin)
    if not costs:
        raise MissingClass("an area needs weight on at least two classes; add samples of the missing one")
    bound = torch.cat(bounds)
    each = torch.arange(len(bound), device=bound.device)
    matrix = Entries(torch.stack([each, each]), -torch.ones_like(bound), (len(bound), len(bound)))
    cost = torch.cat(costs)
    return LinearProgram(cost / cost.sum(), matrix, bound)


def _ratio(least: Tensor, most: Tensor, part: Tensor, whole: Tensor, offset: Tensor, scale: Tensor) -> LinearProgram:
    """Minus part . y / (whole . y + offset) with max(0, least) <= y <= min(1, most), in z = t y and t.

    Each sample has three rows, next to each other: z <= t, least t <= z, z <= most t.
    """
    n, one = part.shape[-1], torch.ones_like(part)
    value = torch.stack([one, -one, -one, least, one, -most], -1).flatten(-2)
    nothing, scale = part.new_zeros((*part.shape[:-1], 3 * n)), scale.unsqueeze(-1)
    return LinearProgram(
        torch.cat([-part / scale, nothing[..., :1]], -1),
        Entries(_ratio_places(n, part.device), value, (3 * n, n + 1)),
        nothing,
        torch.cat([whole, offset.unsqueeze(-1)], -1).unsqueeze(-2),
        scale,
    )


@functools.lru_cache(maxsize=4)
def _ratio_places(n: int, device: torch.device) -> Tensor:
    """Row and column of each entry: the three rows of a sample name its own variable and the last one."""
    with torch.inference_mode(False):
        own = torch.arange(n, device=device).repeat_interleave(3)
        column = torch.stack([own, torch.full_like(own, n)], 1).reshape(-1)
        return torch.stack([torch.arange(3 * n, device=device).repeat_interleave(2), column])


def _append(matrix: object, row: Tensor, columns: int) -> Entries:
    """A sparse matrix widened to `columns`, with one more dense row below."""
    assert isinstance(matrix, Entries)
    count = matrix.shape[0]
    each = torch.arange(columns, device=row.device)
    last = torch.stack([torch.full_like(each, count), each])
    return Entries(torch.cat([matrix.index, last], 1), torch.cat([matrix.value, row], -1), (count + 1, columns))


def _inputs(
    scores: Tensor, labels: Tensor, weights: Tensor | None, squash: Squash, margin: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The least and the most that may be flagged of each sample, the weights of either class, and their sum."""
    positive, weights = check_binary(scores, labels, weights, batches=True)
    up = weights * positive
    total = up.sum(-1)
    if not float(total.min()) > 0:
        raise MissingClass("a share of the positives needs at least one of them with weight")
    return *limits(scores, squash, margin), up, weights - up, total
