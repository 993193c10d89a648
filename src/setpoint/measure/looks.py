"""Looking at numbers: free on the processor, a wait for the device elsewhere, a break in what is being compiled."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


def may_look(numbers: Tensor) -> bool:
    """Whether what a tensor holds may decide what is done next.

    Where it may not, the step takes both ways and lets the device choose, with shapes that never depend on numbers.
    """
    return numbers.device.type == "cpu" and not torch.compiler.is_compiling()


def constant(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Fixed numbers on a device, sent there once: sending them makes the device be waited for. Never written to."""
    # What is compiled keeps its constants by itself.
    make = _made.__wrapped__ if torch.compiler.is_compiling() else _made
    return make(numbers, dtype, device)


@lru_cache(maxsize=1024)
def _made(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


def constant_like(numbers: tuple[float, ...], other: Tensor) -> Tensor:
    return constant(numbers, other.dtype, other.device)
