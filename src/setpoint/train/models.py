"""Models that solvers train, by the number of their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import nn

from setpoint.errors import BadSetting


def linear(in_features: int, outputs: int = 1) -> nn.Module:
    """A linear model, with one output or one per class."""
    return nn.Linear(in_features, outputs)


def mlp(in_features: int, hidden: int | Sequence[int] = (64, 64), outputs: int = 1) -> nn.Module:
    """Layers of `hidden` units with ReLU between them, then one output or one per class."""
    sizes = (hidden,) if isinstance(hidden, int) else tuple(hidden)
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise BadSetting(f"module__hidden must be one layer size or several, each from 1 up, got {hidden!r}")
    layers = [layer for pair in pairwise((in_features, *sizes)) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear((in_features, *sizes)[-1], outputs))


def drawn(make: Callable[..., nn.Module], width: int, seed: int, outputs: int = 1) -> nn.Module:
    """A new model with parameters drawn from the seed; the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(width) if outputs == 1 else make(width, outputs=outputs)
