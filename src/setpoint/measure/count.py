"""Counts: the weight of each class above and below a threshold; every rate is a function of them.

Counts are a tensor whose last dimension holds (tp, fp, fn, tn). They are sums over samples, so a sample
weight is a repetition, and the counts of two halves add up to the counts of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from setpoint.measure.step import HardStep, Step, hard_step
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


def count(
    scores: Tensor,
    labels: Tensor,
    thresholds: Tensor | float,
    step: Step = hard_step,
    *,
    weights: Tensor | None = None,
    groups: Tensor | None = None,
    n_groups: int | None = None,
) -> Tensor:
    """Count the weight of each class above and below one threshold or several, in one pass.

    Hard counts are added up in float64, soft ones in the precision of the scores, float32 at least.

    Args:
        scores: One score per sample, `(n,)`.
        labels: 0 or 1 per sample, `(n,)`.
        thresholds: One number, m numbers `(m,)`, or, with `groups`, one column per group `(m, G)`.
        step: How far a score counts as above its threshold; the hard step by default.
        weights: One weight per sample; all 1 if None.
        groups: The group of each sample, a whole number from 0 up; the counts are then split by group.
        n_groups: The number of groups; found from `groups` if None.

    Returns:
        The counts (tp, fp, fn, tn) in the last dimension: `(4,)` at one threshold, `(m, 4)` at several; by group
        `(..., G, 4)`.

    Example:
        >>> import torch
        >>> from setpoint.measure.count import count
        >>> count(torch.tensor([0.9, 0.4, 0.6, 0.1]), torch.tensor([1, 1, 0, 0]), 0.5)
        tensor([1., 1., 1., 1.], dtype=torch.float64)
    """
    # Half of a half-precision score and its threshold is lost in their difference.
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    dtype = torch.float64 if isinstance(step, HardStep) else scores.dtype
    thresholds = torch.as_tensor(thresholds, dtype=scores.dtype, device=scores.device)
    sides = _sides(labels, weights, dtype)
    per_group = groups is not None and thresholds.dim() == 2
    margin = scores - (thresholds[:, groups] if per_group else thresholds.unsqueeze(-1))
    if groups is None:
        return torch.cat(_passing(margin, sides, step), dim=-1)
    size = n_groups if n_groups is not None else int(groups.max()) + 1 if groups.numel() else 1
    by_group = (torch.nn.functional.one_hot(groups, size).to(dtype).unsqueeze(-1) * sides.unsqueeze(-2)).flatten(1)
    return torch.cat([part.unflatten(-1, (size, 2)) for part in _passing(margin, by_group, step)], dim=-1)


def count_by_steps(
    scores: Tensor, labels: Tensor, thresholds: Tensor, steps: Sequence[Step], weights: Tensor | None = None
) -> list[Tensor]:
    """Counts at m thresholds under several smooth steps, each `(m, 4)`, from the same margins."""
    sides = _sides(labels, weights, scores.dtype)
    margin = scores - thresholds.to(scores.dtype).unsqueeze(-1)
    return [torch.cat(_passing(margin, sides, step), dim=-1) for step in steps]


def _sides(labels: Tensor, weights: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The weight of each sample as a positive and as a negative, `(n, 2)`; one of the two is 0."""
    positive = labels.to(dtype)
    sides = torch.stack([positive, 1 - positive], dim=-1)
    return sides if weights is None else sides * weights.to(dtype).unsqueeze(-1)


def _passing(margin: Tensor, sides: Tensor, step: Step) -> tuple[Tensor, Tensor]:
    """The weight of each side above, and below."""
    return step.above(margin).to(sides.dtype) @ sides, step.below(margin).to(sides.dtype) @ sides


def count_sorted(scores: Tensor, labels: Tensor, thresholds: Tensor, weights: Tensor | None = None) -> Tensor:
    """True counts at m thresholds, `(m, 4)`, equal to those of `count`, in memory that does not grow as n times m.

    Each score is put between two of the sorted thresholds, and the weights there are added up.
    """
    ordered, order = thresholds.to(scores.dtype).sort()
    # The number of thresholds strictly below a score is the number of those that it passes.
    passed = torch.searchsorted(ordered, scores.contiguous())
    positive = labels.double()
    weight = torch.ones_like(positive) if weights is None else weights.double()
    size = len(thresholds) + 1
    sides = [torch.bincount(passed, weights=weight * side, minlength=size) for side in (positive, 1 - positive)]
    total = torch.stack([side.sum() for side in sides])
    above = torch.stack([side.flip(0).cumsum(0).flip(0)[1:] for side in sides], dim=-1)
    counts = torch.cat([above, total - above], dim=-1)
    return torch.empty_like(counts).index_copy_(0, order, counts)
