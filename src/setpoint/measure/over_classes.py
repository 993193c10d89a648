"""Quantities over all classes: the mean weighted by the size of each class, and the gap between classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.measure.classes import ClassQuantity
from setpoint.measure.rate import Metric, Rate, share
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


def _sizes(counts: Tensor) -> Tensor:
    """The samples of each class, `(..., K)`."""
    return counts[..., 0] + counts[..., 2]


@dataclass(frozen=True, eq=False, repr=False)
class Proportional(ClassQuantity):
    """The mean of a rate over the K classes, each weighted by its share of the samples.

    Args:
        rate: A rate or metric such as `sp.precision`.

    Example:
        >>> import setpoint as sp, torch
        >>> counts = torch.tensor([[8.0, 1.0, 2.0, 9.0], [4.0, 2.0, 1.0, 8.0]])
        >>> round(float(sp.classes.Proportional(sp.recall)(counts)), 3)
        0.8
    """

    rate: Rate | Metric

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"weighted {self.rate}"

    def __call__(self, counts: Tensor) -> Tensor:
        sizes = _sizes(counts)
        return share((self.rate(counts) * sizes).sum(-1), sizes.sum(-1))

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        # A sample that moves leaves one class and enters another.
        sizes = _sizes(counts)
        return share(2 * (self.rate.resolution(counts, heaviest) * sizes).amax(-1), sizes.sum(-1))


@dataclass(frozen=True, eq=False, repr=False)
class ClassGap(ClassQuantity):
    """The highest value of a rate over all classes that have samples, less the lowest.

    Args:
        rate: A rate or metric such as `sp.recall`.

    Example:
        >>> import setpoint as sp, torch
        >>> gap = sp.classes.ClassGap(sp.recall)
        >>> float(gap(torch.tensor([[8.0, 1.0, 2.0, 9.0], [4.0, 2.0, 4.0, 10.0]])))
        0.30000001192092896
        >>> print(sp.minimize(sp.error, gap <= 0.1))
        minimize error where recall gap between classes <= 10%
    """

    rate: Rate | Metric

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.rate} gap between classes"

    def __call__(self, counts: Tensor) -> Tensor:
        values, absent = self.rate(counts), _sizes(counts) <= 0
        highest = values.masked_fill(absent, -torch.inf).amax(-1)
        lowest = values.masked_fill(absent, torch.inf).amin(-1)
        return torch.where(absent.all(-1), torch.zeros_like(highest), highest - lowest)

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        # A sample that moves can take from one of the two classes and give to the other.
        return 2 * self.rate.resolution(counts, heaviest).amax(-1)
