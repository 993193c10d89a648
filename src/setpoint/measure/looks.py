"""Reading numbers off a tensor: free on the CPU, a wait on other devices, a graph break while compiling."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


def may_look(numbers: Tensor) -> bool:
    """Whether Python code may branch on the numbers of a tensor.

    Where it may not, both branches are computed and the device chooses; no shape then depends on the numbers.
    """
    return numbers.is_cpu and not torch.compiler.is_compiling()


def in_arrays(numbers: Tensor) -> bool:
    """Whether NumPy may read and write the numbers of a tensor where they are; it has no bfloat16."""
    return may_look(numbers) and numbers.dtype is not torch.bfloat16


def constant(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Fixed numbers on a device, cached because sending them waits for the device; never write to the result."""
    # Compiled code keeps its constants by itself.
    make = _made.__wrapped__ if torch.compiler.is_compiling() else _made
    return make(numbers, dtype, device)


@lru_cache(maxsize=1024)
def _made(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


def constant_like(numbers: tuple[float, ...], other: Tensor) -> Tensor:
    return constant(numbers, other.dtype, other.device)
