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
        gradient, tensors = gradients[0], ctx.saved_tensors
        if torch.is_grad_enabled():
            # Somebody will differentiate the slopes, so they are found again with a graph.
            wanted = [one for one, needed in zip(tensors, ctx.needs_input_grad[3:]) if needed]
            found = iter(torch.autograd.grad(ctx.again(*tensors), wanted, gradient, create_graph=True))
            return None, None, None, *(next(found) if needed else None for needed in ctx.needs_input_grad[3:])
        given = zip(ctx.slopes, tensors, ctx.needs_input_grad[3:])
        return None, None, None, *(gradient * torch.from_numpy(s).to(t.dtype) if need else None for s, t, need in given)


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
