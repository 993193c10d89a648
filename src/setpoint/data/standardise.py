"""Standardising: features less their mean, in deviations, as the training rows have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


#: Rows that are computed on together, so that they stay in the cache.
AT_ONCE = 4096
#: Standardised values beyond this many deviations grow as a logarithm.
TAIL = 5.0
#: The parts of a logarithm that any machine computes to the same bit: halvings, and a series for what is left.
HALVINGS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
ROOT_OF_2, LOG_OF_2 = 1.4142135623730951, 0.6931471805599453
SERIES = tuple(1 / (2 * k + 1) for k in range(12))


def soften(z: NDArray[Any]) -> NDArray[Any]:
    """Standardised values with short tails: beyond five deviations, |z| becomes 5 + log(1 + |z| - 5).

    The order of the values is kept, up to rounding, and infinite values become finite.

    Example:
        >>> import numpy as np
        >>> from setpoint.data.standardise import soften
        >>> soften(np.array([-1.5, 5.0, 6.0, -1e9])).round(3).tolist()
        [-1.5, 5.0, 5.693, -25.723]
    """
    with np.errstate(invalid="ignore"):
        beyond = np.abs(z) > TAIL
    if not beyond.any():
        return z
    far, softened = z[beyond], z.copy()
    size = np.minimum(np.abs(far), np.finfo(z.dtype).max)
    softened[beyond] = np.sign(far) * (TAIL + _logarithm((size - TAIL) + 1))
    return softened


def _logarithm(y: NDArray[Any]) -> NDArray[Any]:
    """The natural logarithm of numbers from 1 up, by operations that are rounded in one way everywhere.

    The logarithms of two libraries differ in the last digit. A feature is rounded to float32 next, and a row at the
    threshold would be decided differently where a model is exported.
    """
    halved = np.zeros_like(y)
    for count in HALVINGS:
        is_large = y >= 2.0**count
        y, halved = np.where(is_large, y * 2.0**-count, y), np.where(is_large, halved + count, halved)
    is_large = y >= ROOT_OF_2
    y, halved = np.where(is_large, y * 0.5, y), np.where(is_large, halved + 1, halved)
    ratio = (y - 1) / (y + 1)
    square, total = ratio * ratio, np.full_like(y, SERIES[-1])
    for share in SERIES[-2::-1]:
        total = total * square + share
    return np.asarray(halved * LOG_OF_2 + ratio * 2 * total)


@dataclass(frozen=True)
class Standardiser:
    """Mean and spread (standard deviation) per feature on the training rows, float64.

    Example:
        >>> import torch
        >>> from setpoint.data.standardise import Standardiser
        >>> scale = Standardiser.of(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
        >>> scale.apply(torch.tensor([[5.0, 8.0]])).tolist()
        [[3.0, 1.0]]
        >>> weight, bias = scale.undo(torch.tensor([2.0, 0.0, 1.0]).double())
        >>> float(weight @ torch.tensor([5.0, 8.0]).double() + bias)
        7.0
    """

    mean: Tensor
    spread: Tensor

    @classmethod
    def of(cls, x: Tensor, weights: Tensor | None = None, constant: float = 1.0) -> Standardiser:
        """Learn from rows, which may be weighted; a `constant` spread of inf makes constant features always 0."""
        weights = x.new_ones(len(x), dtype=torch.float64) if weights is None else weights
        shares = (weights / weights.sum()).double().split(AT_ONCE)
        # Squares of huge numbers overflow, those of tiny ones vanish: hence in units of a power of 2, which is exact.
        exponent = torch.frexp(torch.maximum(x.amax(0), -x.amin(0)).double())[1] - 1
        unit = torch.pow(2.0, exponent.clamp(-1022, 1023).double())
        parts, zero = x.split(AT_ONCE), torch.zeros_like(unit)
        mean = sum((share @ (part.double() / unit) for share, part in zip(shares, parts)), zero)
        square = sum((share @ (part.double() / unit - mean).square_() for share, part in zip(shares, parts)), zero)
        spread = square.sqrt()
        varies = (spread > 1e-12 * mean.abs()) & (spread * unit > 0)
        return cls(mean * unit, torch.where(varies, spread * unit, constant))

    def apply(self, x: Tensor) -> Tensor:
        """Standardised features."""
        return (x - self.mean) / self.spread

    def with_ones(self, x: Tensor) -> Tensor:
        """Standardised features in float64 with a last column of ones, which the bias is the weight of."""
        scaled = torch.empty(len(x), x.shape[1] + 1, dtype=torch.float64)
        for part, out in zip(x.split(AT_ONCE), scaled.split(AT_ONCE)):
            out[:, :-1], out[:, -1] = self.apply(part), 1.0
        return scaled

    def undo(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and bias on the raw features that give the scores of `theta` on standardised ones (the bias last)."""
        weight = theta[:-1] / self.spread
        return weight, theta[-1] - weight @ self.mean

    def redo(self, weight: Tensor, bias: Tensor) -> Tensor:
        """The parameters on standardised features of a linear layer on raw ones, the bias last."""
        return torch.cat([weight * self.spread, (bias + weight @ self.mean).reshape(1)])
