"""Prices that climb while their bound is broken, their state in buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.errors import BadSetting, DivergedPrices
from setpoint.measure.constraint import Constraint
from setpoint.measure.looks import may_look
from setpoint.solve.refuse import above_zero, finite_start

#: Tensors, or arrays where NumPy may work on the memory of the buffers.
Numbers = Tensor | NDArray[Any]


@dataclass(frozen=True)
class NuPI:
    """A damped climb: each price also answers to the change of the excess of its bound.

        price += lr (e_t + proportional (1 - smoothing) (e_t - x))

    where e_t is the excess now and x the running mean of the excesses before. The first step is that of the plain
    climb.

    Args:
        proportional: How strongly the price answers to the change.
        smoothing: How slowly the running mean forgets, from 0 up to below 1.

    Raises:
        BadSetting: If `proportional` is not above 0, or `smoothing` not from 0 up to below 1.

    Example:
        >>> import setpoint as sp
        >>> climb = sp.losses.Climb(control=sp.losses.NuPI(proportional=3.0))
        >>> solver = sp.Lagrangian(sp.ask("minimize fnr where fpr <= 5%"), climb=climb)
    """

    proportional: float = 5.0
    smoothing: float = 0.5

    def __post_init__(self) -> None:
        above_zero(proportional=self.proportional)
        if not 0 <= self.smoothing < 1:
            raise BadSetting(f"smoothing must lie from 0 up to below 1, got {self.smoothing!r}")


@dataclass(frozen=True)
class Climb:
    """How the prices of a `Lagrangian` start, climb and are held.

    Args:
        lr: Rise of a price per step when the excess is as large as the share that the bound allows.
        control: `NuPI(...)` damps the climb; None is the plain climb.
        penalty: c makes the model feel relu(price + c excess) in place of the price (equalities: price + c excess).
        ceiling: The highest price. None sets no ceiling.
        limit: A price beyond this stops the training with `DivergedPrices`, unless there is a ceiling.
        start: The first price. None starts where no small move of the thresholds pays.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import setpoint as sp
        >>> sp.losses.Climb(lr=0.2, ceiling=50.0).limit
        10000.0
    """

    lr: float = 0.1
    control: NuPI | None = None
    penalty: float | None = None
    ceiling: float | None = None
    limit: float = 1e4
    start: float | None = None

    def __post_init__(self) -> None:
        above_zero(lr=self.lr, penalty=self.penalty, ceiling=self.ceiling, limit=self.limit)
        if self.control is not None and not isinstance(self.control, NuPI):
            raise BadSetting(f"control must be None or a NuPI(...), got {self.control!r}")
        finite_start("start", self.start)


def room(bound: Constraint) -> float:
    """The share that a bound allows, the unit of its excess: 1 % for `fpr <= 1%` and `recall >= 99%`; else 1.

    Shares below a millionth count as that much: no sample tells them apart, and prices would overflow.
    """
    share = min(bound.bound, 1 - bound.bound) if bound.quantity.is_share else 1.0
    return max(share, 1e-6) if share > 0 else 1.0


def as_given(given: Numbers, *buffers: Tensor) -> list[Any]:
    """Buffers in the form of some numbers: themselves beside a tensor, arrays on their memory beside an array."""
    return list(buffers) if isinstance(given, Tensor) else [buffer.numpy() for buffer in buffers]


def cast_like(numbers: Any, other: Any) -> Any:
    """Numbers in the precision of others of their form."""
    return numbers.to(other.dtype) if isinstance(numbers, Tensor) else numbers.astype(other.dtype)


def plus(numbers: Any, more: Any, factor: float) -> Any:
    """numbers + factor x more; tensors round it once, as the optimizers of PyTorch do."""
    return numbers.add(more, alpha=float(factor)) if isinstance(numbers, Tensor) else numbers + factor * more


def module_of(numbers: Numbers) -> Any:
    return torch if isinstance(numbers, Tensor) else np


class Ascent(nn.Module):
    """One price per bound. It rises by lr * excess / room, never below zero unless the bound is an equality."""

    prices: Tensor
    smoothed: Tensor
    started: Tensor
    rooms: Tensor
    floors: Tensor
    excesses: Tensor

    def __init__(self, bounds: tuple[Constraint, ...], climb: Climb) -> None:
        super().__init__()
        self.bounds, self.settings = bounds, climb
        floors = torch.tensor([-torch.inf if bound.relation == "==" else 0.0 for bound in bounds])
        self.register_buffer("floors", floors, persistent=False)
        self.register_buffer("excesses", torch.zeros(len(bounds)), persistent=False)
        self.register_buffer("rooms", torch.tensor([room(bound) for bound in bounds]), persistent=False)
        self.register_buffer("prices", torch.zeros(len(bounds)))
        self.register_buffer("smoothed", torch.zeros(len(bounds)))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def start(self, prices: Tensor) -> None:
        """Begin at these prices, or at `start` of the settings, as far as they are possible."""
        if self.settings.start is not None:
            prices = torch.full_like(prices, self.settings.start)
        most = self.settings.limit if self.settings.ceiling is None else self.settings.ceiling
        self.prices.copy_(torch.maximum(prices, self.floors).clamp(-most, most))

    def felt(self, excesses: Numbers) -> tuple[float, Numbers]:
        """The weight of the objective, 1, and the prices that the model feels: the Lagrangian's slopes by excess."""
        prices, floors = (cast_like(own, excesses) for own in as_given(excesses, self.prices, self.floors))
        if self.settings.penalty is not None:
            prices = module_of(excesses).maximum(prices + self.settings.penalty * excesses, floors)
        return 1.0, prices

    def climb(self, excesses: Numbers) -> None:
        """Move every price by the true excess of its bound."""
        prices, rooms, floors = as_given(excesses, self.prices, self.rooms, self.floors)
        excess, control, numeric = cast_like(excesses, prices) / rooms, self.settings.control, module_of(excesses)
        rise = excess
        if control is not None:
            smoothed, started = as_given(excesses, self.smoothed, self.started)
            before, fresh = numeric.where(started, smoothed, excess), 1 - control.smoothing
            rise = excess + fresh * (excess - before) * control.proportional
            after = plus(before * control.smoothing, excess, fresh)
        risen = numeric.maximum(plus(prices, rise, self.settings.lr), floors)
        if self.settings.ceiling is not None:
            risen = risen.clip(-self.settings.ceiling, self.settings.ceiling)
        if not may_look(self.prices):
            self.excesses.copy_(excess)
        elif not bool((abs(risen) <= self.settings.limit).all()):
            self._refuse_divergence(risen, excess)
        prices[...] = risen
        if control is not None:
            smoothed[...], started[...] = after, True

    def look(self) -> None:
        """Refuse prices that have diverged on a device at which nobody looked."""
        self._refuse_divergence(self.prices, self.excesses)

    def _refuse_divergence(self, risen: Numbers, excesses: Numbers) -> None:
        for place, bound in enumerate(self.bounds):
            if not abs(float(risen[place])) <= self.settings.limit:
                excess = float(excesses[place]) * float(self.rooms[place])
                raise DivergedPrices(
                    f"the price of {bound} has diverged: {float(self.prices[place]):.6g}, then "
                    f"{float(risen[place]):.6g} (limit {self.settings.limit:g}), with the true {bound.quantity} "
                    f"beyond its bound by {excess:.6g}; loosen the bound, lower the lr of the climb or set a ceiling"
                )
