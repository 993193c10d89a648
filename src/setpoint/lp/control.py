"""Numbers that steer an iteration: a plain float for one program, a tensor for a batch of them.

A zero-dimensional tensor would serve both, at ten times the cost of a float: in small programs that is the cost.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

#: One number per program: float | Tensor of shape (batch,).
Number: TypeAlias = Any
#: One yes or no per program: bool | Tensor of shape (batch,).
Flag: TypeAlias = Any


def everywhere(value: Any, like: Tensor) -> Any:
    """`value` for each of the programs whose vectors look like `like`."""
    if like.dim() == 1:
        return value
    dtype = like.dtype if isinstance(value, float) else None
    return torch.full(like.shape[:-1], value, dtype=dtype, device=like.device)


def dot(one: Tensor, other: Tensor) -> Number:
    return float(one @ other) if one.dim() == 1 else (one * other).sum(-1)


def largest(vector: Tensor) -> Number:
    """The largest absolute entry; 0 if there is none."""
    if not vector.shape[-1]:
        return everywhere(0.0, vector)
    if vector.dim() == 1:
        # Over all entries at once it is ten times as fast as over a dimension.
        least, most = torch.aminmax(vector)
        return max(-float(least), float(most))
    least, most = torch.aminmax(vector, dim=-1)
    return torch.maximum(-least, most)


def above(one: Tensor, other: Tensor | float) -> Tensor:
    """1.0 where `one` is above `other`, else 0.0; straight into floats, without a mask in between."""
    result = torch.empty_like(one)
    torch.gt(one, other, out=result)
    return result


def greater(one: Number, other: Number) -> Number:
    """The larger of two numbers."""
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return torch.maximum(torch.as_tensor(one), torch.as_tensor(other, dtype=torch.float64))
    return max(one, other)


def pick(where: Flag, one: Number, other: Number) -> Number:
    return torch.where(where, one, other) if isinstance(where, Tensor) else (one if where else other)


def negate(flag: Flag) -> Flag:
    return ~flag if isinstance(flag, Tensor) else not flag


def some(flag: Flag) -> bool:
    return bool(flag.any()) if isinstance(flag, Tensor) else flag


def every(flag: Flag) -> bool:
    return bool(flag.all()) if isinstance(flag, Tensor) else flag


def stretch(number: Number) -> Any:
    """Made ready to multiply a vector."""
    return number.unsqueeze(-1) if isinstance(number, Tensor) else number


def add_scaled(vector: Tensor, number: Number, other: Tensor) -> Tensor:
    """vector + number * other, in one pass."""
    if isinstance(number, Tensor):
        return torch.addcmul(vector, number.unsqueeze(-1), other)
    return torch.add(vector, other, alpha=number)


def put(where: Flag, new: tuple[Tensor, ...], old: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """`new` vectors for the programs marked, `old` for the others; no copies when all or none are."""
    if every(where):
        return new
    if not some(where):
        return old
    return tuple(torch.where(where.unsqueeze(-1), one, other) for one, other in zip(new, old))


def unit(size: Number) -> Number:
    """A size to divide by: 1 where it is zero."""
    return pick(size > 0, size, 1.0)
