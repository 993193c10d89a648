"""Numbers that steer an iteration: a plain float for one program, an array for a batch of them.

The engine computes in NumPy: on programs of some hundred rows its operations cost a third of torch's, and there the
overhead of each operation is the whole cost.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Vectors, one per program: float64 of shape (..., length).
Array: TypeAlias = NDArray[Any]
#: One number per program: float | array of shape (batch,).
Number: TypeAlias = Any
#: One yes or no per program: bool | array of shape (batch,).
Flag: TypeAlias = Any


def as_array(tensor: Tensor) -> Array:
    """A tensor as float64 on the processor, without gradients."""
    found: Array = tensor.detach().to("cpu", torch.float64).numpy()
    return found


def everywhere(value: Any, like: Array) -> Any:
    """`value` for each of the programs whose vectors look like `like`."""
    return value if like.ndim == 1 else np.full(like.shape[:-1], value)


def dot(one: Array, other: Array) -> Number:
    return float(one @ other) if one.ndim == 1 else np.einsum("...i,...i->...", one, other)


def largest(vector: Array) -> Number:
    """The largest absolute entry; 0 if there is none."""
    if not vector.shape[-1]:
        return everywhere(0.0, vector)
    found = np.maximum.reduce(np.absolute(vector), -1)
    return float(found) if vector.ndim == 1 else found


def above(one: Array, other: Array | float) -> Array:
    """1.0 where `one` is above `other`, else 0.0."""
    return np.greater(one, other).astype(np.float64)


def at_least(one: Array, floor: Array | float) -> Array:
    found: Array = np.maximum(one, floor)
    return found


def greater(one: Number, other: Number) -> Number:
    """The larger of two numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return max(one, other)


def pick(where: Flag, one: Number, other: Number) -> Number:
    return np.where(where, one, other) if isinstance(where, np.ndarray) else (one if where else other)


def negate(flag: Flag) -> Flag:
    return ~flag if isinstance(flag, np.ndarray) else not flag


def some(flag: Flag) -> bool:
    return bool(flag.any()) if isinstance(flag, np.ndarray) else flag


def every(flag: Flag) -> bool:
    return bool(flag.all()) if isinstance(flag, np.ndarray) else flag


def stretch(number: Number) -> Any:
    """Made ready to multiply a vector."""
    return number[..., None] if isinstance(number, np.ndarray) else number


def put(where: Flag, new: tuple[Array, ...], old: tuple[Array, ...]) -> tuple[Array, ...]:
    """`new` vectors for the programs marked, `old` for the others; no copies when all or none are."""
    if every(where):
        return new
    if not some(where):
        return old
    return tuple(np.where(where[..., None], one, other) for one, other in zip(new, old))


def unit(size: Number) -> Number:
    """A size to divide by: 1 where it is zero."""
    return pick(size > 0, size, 1.0)
