"""A loss whose slopes are written out, as one step of autograd instead of one per operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor


class _WithSlopes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, number: float, slopes: Any, again: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        ctx.slopes, ctx.again = slopes, again
        return torch.scalar_tensor(number, dtype=tensors[0].dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient, needed = gradients[0], ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():
            # Somebody will differentiate the slopes, so they are found again with a graph.
            tensors = ctx.saved_tensors
            wanted = [one for one, need in zip(tensors, needed) if need]
            found = iter(torch.autograd.grad(ctx.again(*tensors), wanted, gradient, create_graph=True))
            return None, None, None, *[next(found) if need else None for need in needed]
        # Autograd itself turns them into the dtype of each tensor.
        given = zip(ctx.slopes, needed)
        return None, None, None, *[gradient * torch.from_numpy(slope) if need else None for slope, need in given]


def with_slopes(
    number: float, slopes: tuple[NDArray[Any], ...], again: Callable[..., Tensor], *tensors: Tensor
) -> Tensor:
    """A scalar with known slopes by tensors.

    Args:
        number: Its value.
        slopes: Its derivative by each tensor, in their shapes.
        again: Computes it from the tensors with a graph, for those who differentiate twice.
        tensors: The tensors that gradients go to.

    Returns:
        The scalar, in the precision of the first tensor.
    """
    return cast(Tensor, _WithSlopes.apply(number, slopes, again, *tensors))  # type: ignore[no-untyped-call]
