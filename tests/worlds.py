"""Small worlds whose best linear model is known, and on which plain cross-entropy fails.

Both ask for FNR at FPR 1 % of a linear model. *Tilted*: optimum 0.441, cross-entropy about 0.64. *Lost positives*:
two fifths of the positives are out of reach; optimum 0.552, cross-entropy about 0.745, and no class weight gets
below 0.67.
"""

from __future__ import annotations

import torch
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
