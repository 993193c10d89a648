"""Small worlds whose best linear model is known, and on which plain cross-entropy fails.

Both ask for FNR at FPR 1 % of a linear model. *Tilted*: optimum 0.441, cross-entropy about 0.64. *Lost positives*:
two fifths of the positives are out of reach; optimum 0.552, cross-entropy about 0.745, and no class weight gets
below 0.67.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor


def tilted(size: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    half = size // 2
    negatives = torch.randn(half, 2, generator=draw) * torch.tensor([3.0, 0.5])
    positives = torch.randn(half, 2, generator=draw) + torch.tensor([3.0, 1.2])
    return torch.cat([positives, negatives]), torch.cat([torch.ones(half), torch.zeros(half)])


def lost_positives(size: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    n_positives = size // 5
    reachable = round(0.6 * n_positives)
    near = torch.randn(reachable, 2, generator=draw) + torch.tensor([3.0, 0.0])
    lost = torch.randn(n_positives - reachable, 2, generator=draw) * 0.5 + torch.tensor([-0.5, -2.5])
    negatives = torch.randn(size - n_positives, 2, generator=draw)
    labels = torch.cat([torch.ones(n_positives), torch.zeros(size - n_positives)])
    return torch.cat([near, lost, negatives]), labels


# Worlds of Gaussians whose best linear model is found in closed form: a direction is tried at every angle, and along
# each the two classes are one-dimensional normals.

ANGLES = np.linspace(0, 2 * np.pi, 721)


def _along(angle: float, mean: tuple[float, float], spread: tuple[float, float]) -> tuple[float, float]:
    """Mean and standard deviation of a Gaussian (independent axes) along a direction."""
    direction = np.array([np.cos(angle), np.sin(angle)])
    return float(direction @ mean), float(np.linalg.norm(direction * spread))


WIDE, NARROW = ((0.0, 0.0), (3.0, 0.5)), ((3.0, 1.2), (1.0, 1.0))


def best_partial_roc_area(high: float) -> float:
    """Mean recall over FPR 0 ... high of the best linear model in the tilted world."""
    levels = (np.arange(400) + 0.5) / 400 * high

    def area(angle: float) -> float:
        (mean_n, spread_n), (mean_p, spread_p) = _along(angle, *WIDE), _along(angle, *NARROW)
        return float(norm.sf((mean_n + spread_n * norm.isf(levels) - mean_p) / spread_p).mean())

    return max(map(area, ANGLES))


def tilted_the_other_way(size: int, seed: int) -> tuple[Tensor, Tensor]:
    """The tilted world with its classes exchanged: now a high recall is what is hard."""
    x, labels = tilted(size, seed)
    return x, 1 - labels


def best_precision_at_recall(recall: float) -> float:
    """In the world tilted the other way, whose classes are equally large."""

    def precision(angle: float) -> float:
        (mean_p, spread_p), (mean_n, spread_n) = _along(angle, *WIDE), _along(angle, *NARROW)
        false_positives = norm.sf((mean_p + spread_p * norm.isf(recall) - mean_n) / spread_n)
        return float(recall / (recall + false_positives))

    return max(map(precision, ANGLES))


#: Two groups, equally large, half of each positive: (negatives, positives) as (mean, spread of the axes).
GROUPS = ((WIDE, NARROW), (((0.0, 0.0), (1.0, 1.0)), ((1.5, 1.2), (1.0, 1.0))))


def two_groups(size: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, labels and groups."""
    draw = torch.Generator().manual_seed(seed)
    parts = []
    for group, classes in enumerate(GROUPS):
        for label, (mean, spread) in enumerate(classes):
            x = torch.randn(size // 4, 2, generator=draw) * torch.tensor(spread) + torch.tensor(mean)
            parts.append((x, torch.full((size // 4,), float(label)), torch.full((size // 4,), group)))
    x, labels, groups = (torch.cat(part) for part in zip(*parts))
    return x, labels, groups


def best_error_under_a_recall_gap(gap: float) -> float:
    """Over all directions, recall levels and differences of up to `gap` between the two groups."""
    levels = np.linspace(0.3, 0.999, 500)
    best = 1.0
    for angle in ANGLES[::4]:
        errors = []
        for negatives, positives in GROUPS:
            (mean_n, spread_n), (mean_p, spread_p) = _along(angle, *negatives), _along(angle, *positives)
            threshold = mean_p + spread_p * norm.isf(levels)
            errors.append((1 - levels) / 2 + norm.sf((threshold - mean_n) / spread_n) / 2)
        steps = int(gap / (levels[1] - levels[0]))
        for shift in range(-steps, steps + 1):
            first = errors[0][max(0, shift) : len(levels) + min(0, shift)]
            second = errors[1][max(0, -shift) : len(levels) + min(0, -shift)]
            best = min(best, float((first + second).min() / 2))
    return best
