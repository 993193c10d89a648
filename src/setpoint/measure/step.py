"""The step: does a score pass its threshold? Hard for the truth, smooth for gradients.

A step maps margins (score - threshold) to how much they count as above and as below. The slope of a smooth step
is itself a step, so that counting with it gives the derivative of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F


class Step(Protocol):
    """How much a margin counts as above, and as below, the threshold."""

    def above(self, margin: Tensor) -> Tensor: ...

    def below(self, margin: Tensor) -> Tensor: ...


def adds_up(step: Step) -> bool:
    """Whether above and below are 1 together, so that soft counts add up to the number of samples."""
    return not isinstance(step, SoftplusStep | HingeStep)


class SmoothStep(Step, Protocol):
    """A step with a slope: the derivatives of `above` and `below` by the margin."""

    @property
    def slope(self) -> Step: ...


@dataclass(frozen=True)
class HardStep:
    """The truth: 1 when strictly above. A margin of exactly zero does not pass."""

    def above(self, margin: Tensor) -> Tensor:
        return (margin > 0).to(margin.dtype)

    def below(self, margin: Tensor) -> Tensor:
        return (margin <= 0).to(margin.dtype)


@dataclass(frozen=True)
class SigmoidStep:
    """1 / (1 + exp(-temperature * margin)). The larger the temperature, the harder the step."""

    temperature: float | Tensor = 1.0

    def above(self, margin: Tensor) -> Tensor:
        return torch.sigmoid(self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return torch.sigmoid(-self.temperature * margin)

    @property
    def slope(self) -> Step:
        return _SigmoidSlope(self.temperature)


@dataclass(frozen=True)
class _SigmoidSlope:
    temperature: float | Tensor

    def above(self, margin: Tensor) -> Tensor:
        passed = torch.sigmoid(self.temperature * margin)
        return self.temperature * passed * (1 - passed)

    def below(self, margin: Tensor) -> Tensor:
        return -self.above(margin)


@dataclass(frozen=True)
class SoftplusStep:
    """log(1 + exp(temperature * margin)): convex, unbounded, so that above + below is not 1."""

    temperature: float | Tensor = 1.0

    def above(self, margin: Tensor) -> Tensor:
        return F.softplus(self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return F.softplus(-self.temperature * margin)

    @property
    def slope(self) -> Step:
        return _SoftplusSlope(self.temperature)


@dataclass(frozen=True)
class _SoftplusSlope:
    temperature: float | Tensor

    def above(self, margin: Tensor) -> Tensor:
        return self.temperature * torch.sigmoid(self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return -self.temperature * torch.sigmoid(-self.temperature * margin)


@dataclass(frozen=True)
class HingeStep:
    """max(0, 1 + temperature * margin): convex, and never below the hard step."""

    temperature: float | Tensor = 1.0

    def above(self, margin: Tensor) -> Tensor:
        return F.relu(1 + self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return F.relu(1 - self.temperature * margin)

    @property
    def slope(self) -> Step:
        return _HingeSlope(self.temperature)


@dataclass(frozen=True)
class _HingeSlope:
    temperature: float | Tensor

    def above(self, margin: Tensor) -> Tensor:
        return self.temperature * (self.temperature * margin > -1).to(margin.dtype)

    def below(self, margin: Tensor) -> Tensor:
        return -self.temperature * (self.temperature * margin < 1).to(margin.dtype)


hard_step = HardStep()
