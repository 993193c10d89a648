"""Sums of hinges over all pairs on the processor: the formulas of `pairs.py` with their slopes, as passes over arrays.

For some thousand scores each step of autograd costs more than its numbers do. `pairs.py` stays the reference, for
every surrogate and device and for second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


class HingeSums:
    """sum_k w_k relu(margin + upper_j - lower_k) for each j, of float64 arrays in any order; `lower` is not empty."""

    def __init__(self, upper: Array, lower: Array, weights: Array | None, margin: float) -> None:
        self.order = lower.argsort()
        low = lower[self.order]
        # Large scores of small spread keep all their digits only if the common part goes first.
        centre = low[len(low) // 2]
        reach = upper - centre + margin
        # In ascending order the searches stay in the cache.
        ascending = reach.argsort()
        self.below = np.empty(len(upper), np.int64)
        self.below[ascending] = (low - centre).searchsorted(reach[ascending])
        self.weights = None if weights is None else weights[self.order]
        passed = np.arange(len(low) + 1.0) if self.weights is None else _from_zero(self.weights)
        #: The weight of the lowers over which each upper falls short, and the sums.
        self.short = passed[self.below]
        # Moving the corner from one lower to the next adds terms of one sign only, so that nothing cancels.
        corner = np.concatenate([low[:1], low])
        rise = upper - corner[self.below]
        rise += margin
        self.sums = self.short * np.maximum(rise, 0.0, out=rise)
        corner[0] = 0.0
        corner[1:] = passed[:-1]
        corner[2:] *= low[1:] - low[:-1]
        self.sums += corner.cumsum()[self.below]

    def slopes(self, prices: Array) -> tuple[Array, Array]:
        """The derivatives of prices . sums by each upper and by each lower."""
        # Those who fall short of the k-th from below: all whose `below` is beyond k.
        met = np.bincount(self.below, prices, len(self.order) + 1)[:0:-1].cumsum()[::-1]
        by_lower = np.empty(len(self.order))
        by_lower[self.order] = -met if self.weights is None else -met * self.weights
        return prices * self.short, by_lower


def _from_zero(terms: Array) -> Array:
    """The sums of the first 0, 1, 2, ... terms."""
    sums = np.zeros(len(terms) + 1)
    np.cumsum(terms, out=sums[1:])
    return sums


class HingeSumsOf(torch.autograd.Function):
    """The sums in float64 as a step of autograd; `again` gives them with a graph of their slopes."""

    @staticmethod
    def forward(
        ctx: Any, upper: Tensor, lower: Tensor, weights: Tensor | None, margin: float, again: Callable[..., Tensor]
    ) -> Tensor:
        ctx.save_for_backward(upper, lower)
        own = None if weights is None else weights.double().numpy()
        ctx.again, ctx.found = again, HingeSums(upper.double().numpy(), lower.double().numpy(), own, margin)
        return torch.from_numpy(ctx.found.sums)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient, (upper, lower) = gradients[0], ctx.saved_tensors
        if torch.is_grad_enabled():
            # Somebody will differentiate the slopes.
            slopes = torch.autograd.grad(ctx.again(upper, lower), (upper, lower), gradient, create_graph=True)
            return *slopes, None, None, None
        by_upper, by_lower = (torch.from_numpy(slope) for slope in ctx.found.slopes(gradient.double().numpy()))
        return by_upper.to(upper.dtype), by_lower.to(lower.dtype), None, None, None
