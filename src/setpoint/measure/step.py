"""Steps: how far a score counts as above its threshold; hard to judge, smooth to learn.

A step maps a margin (score minus threshold) to its share above and its share below the threshold. The slope of a
smooth step is a step too, so counting with the slope gives the derivative of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


class Step(Protocol):
    """A function from margins to their shares above and below the threshold."""

    def above(self, margin: Tensor) -> Tensor: ...

    def below(self, margin: Tensor) -> Tensor: ...


def adds_up(step: Step) -> bool:
    """Whether above and below add up to 1, so that soft counts add up to the number of samples."""
    return not isinstance(step, SoftplusStep | HingeStep)


class SmoothStep(Step, Protocol):
    """A step with a slope: the derivatives of `above` and `below` by the margin."""

    @property
    def slope(self) -> Step: ...


@dataclass(frozen=True)
class HardStep:
    """The step by which models are judged: 1 for a margin strictly above 0, otherwise 0.

    A margin is a score minus its threshold, so a score that equals the threshold does not pass.

    Example:
        >>> import setpoint as sp, torch
        >>> sp.steps.HardStep().above(torch.tensor([-0.5, 0.0, 0.5]))
        tensor([0., 0., 1.])
    """

    def above(self, margin: Tensor) -> Tensor:
        return (margin > 0).to(margin.dtype)

    def below(self, margin: Tensor) -> Tensor:
        return (margin <= 0).to(margin.dtype)


@dataclass(frozen=True)
class SigmoidStep:
    """The smooth step 1 / (1 + exp(-temperature * margin)).

    Above and below add up to 1, so soft counts add up to the number of samples.

    Args:
        temperature: The steepness; the larger the temperature, the harder the step.

    Example:
        >>> import setpoint as sp, torch
        >>> sp.steps.SigmoidStep(temperature=10.0).above(torch.tensor([-0.5, 0.0, 0.5]))
        tensor([0.0067, 0.5000, 0.9933])
    """

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
    """The convex, unbounded step log(1 + exp(temperature * margin)).

    Above and below do not add up to 1, so sizes of classes are taken from the true counts.

    Args:
        temperature: The steepness; the larger the temperature, the sharper the bend at a margin of 0.

    Example:
        >>> import setpoint as sp, torch
        >>> sp.steps.SoftplusStep().above(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1269, 0.6931, 2.1269])
    """

    temperature: float | Tensor = 1.0

    def above(self, margin: Tensor) -> Tensor:
        return torch.nn.functional.softplus(self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return torch.nn.functional.softplus(-self.temperature * margin)

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
    """The convex step max(0, 1 + temperature * margin), which is never below the hard step.

    Above and below do not add up to 1, so sizes of classes are taken from the true counts.

    Args:
        temperature: The steepness; a margin below -1 / temperature counts 0.

    Example:
        >>> import setpoint as sp, torch
        >>> sp.steps.HingeStep().above(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0., 1., 3.])
    """

    temperature: float | Tensor = 1.0

    def above(self, margin: Tensor) -> Tensor:
        return torch.nn.functional.relu(1 + self.temperature * margin)

    def below(self, margin: Tensor) -> Tensor:
        return torch.nn.functional.relu(1 - self.temperature * margin)

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
