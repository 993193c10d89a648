"""Prices that climb while their bound is broken: cooper's multipliers in manual mode, their state in our buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from cooper.constraints.constraint import Constraint as Priced
from cooper.constraints.constraint_state import ConstraintState
from cooper.formulations.formulations import AugmentedLagrangian as Augmented
from cooper.formulations.formulations import Lagrangian as Plain
from cooper.multipliers.multipliers import DenseMultiplier
from cooper.optim.torch_optimizers.nupi_optimizer import nuPI
from cooper.penalty_coefficients.penalty_coefficients import DensePenaltyCoefficient
from cooper.utils.annotations import ConstraintType
from torch import Tensor, nn

from setpoint.errors import BadSetting, DivergedPrices
from setpoint.measure.constraint import Constraint
from setpoint.measure.looks import may_look

#: Which of the bounds: all, or some by number.
Places = slice | list[int]


@dataclass(frozen=True)
class NuPI:
    """A damped climb: the price also answers to the *change* of the excess, smoothed by `smoothing` (0 ... 1).

    price += lr (e_t + proportional (1 - smoothing) (e_t - x)), with x the running mean of the excesses e before.
    The first step is that of the plain climb.
    """

    proportional: float = 5.0
    smoothing: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.proportional < float("inf") or not 0 <= self.smoothing < 1:
            raise BadSetting(
                f"NuPI needs proportional above 0 and smoothing from 0 up to below 1, "
                f"got {self.proportional!r} and {self.smoothing!r}"
            )
        as_numbers(self, "proportional", "smoothing")


@dataclass(frozen=True)
class Climb:
    """How prices climb: `lr` a step for an excess as large as what the bound allows, and what holds them.

    `penalty` c makes the model feel relu(price + c excess) instead of the price (equalities: price + c excess).
    `ceiling` caps the prices; without one, a price beyond `limit` stops the training.
    """

    lr: float = 0.1
    control: NuPI | None = None
    penalty: float | None = None
    ceiling: float | None = None
    limit: float = 1e4

    def __post_init__(self) -> None:
        if not 0 < self.lr < float("inf"):
            raise BadSetting(f"price_lr must be above 0, got {self.lr!r}")
        if self.control is not None and not isinstance(self.control, NuPI):
            raise BadSetting(f"control must be None or a NuPI(...), got {self.control!r}")
        if self.penalty is not None and not 0 < self.penalty < float("inf"):
            raise BadSetting(f"penalty must be above 0, got {self.penalty!r}; leave it out for the plain Lagrangian")
        for name, most in (("ceiling", self.ceiling), ("price_limit", self.limit)):
            if most is not None and not 0 < most < float("inf"):
                raise BadSetting(f"{name} must be above 0, got {most!r}")
        as_numbers(self, "lr", "penalty", "ceiling", "limit")


def as_numbers(settings: object, *names: str) -> None:
    """Truth values and numbers of NumPy as the numbers they are: optimizers take no others."""
    for name in names:
        value = getattr(settings, name)
        object.__setattr__(settings, name, None if value is None else float(value))


def room(bound: Constraint) -> float:
    """The share that a bound allows, the unit of its excess: 1 % for `fpr <= 1%` and `recall >= 99%`; else 1.

    Shares below a millionth count as that much: no sample tells them apart, and prices would overflow.
    """
    share = min(bound.bound, 1 - bound.bound) if bound.quantity.is_share else 1.0
    return max(share, 1e-6) if share > 0 else 1.0


def _contribution(constraint: Priced, state: ConstraintState, side: Literal["primal", "dual"]) -> Tensor:
    """The constraint's part of cooper's Lagrangian, in which either the model or the multiplier can move."""
    store = constraint.compute_contribution_to_lagrangian(state, side)
    assert store is not None
    return store.lagrangian_contribution


class Ascent(nn.Module):
    """One price a bound. It rises by lr * excess / room, never below zero unless the bound is an equality."""

    prices: Tensor
    smoothed: Tensor
    started: Tensor
    rooms: Tensor
    excesses: Tensor

    def __init__(self, bounds: tuple[Constraint, ...], climb: Climb) -> None:
        super().__init__()
        self.bounds, self.settings = bounds, climb
        equality = [bound.relation == "==" for bound in bounds]
        # Numbers of places would be sent to a device at every step; where all bounds are of a kind none are needed.
        self.kinds: list[tuple[ConstraintType, Places]] = [
            (kind, [place for place, equal in enumerate(equality) if equal == wanted] if mixed else slice(None))
            for mixed in [len(set(equality)) > 1]
            for kind, wanted in ((ConstraintType.INEQUALITY, False), (ConstraintType.EQUALITY, True))
            if wanted in equality
        ]
        self.register_buffer("excesses", torch.zeros(len(bounds)), persistent=False)
        self.register_buffer("rooms", torch.tensor([room(bound) for bound in bounds]), persistent=False)
        self.register_buffer("prices", torch.zeros(len(bounds)))
        self.register_buffer("smoothed", torch.zeros(len(bounds)))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def start(self, prices: Tensor) -> None:
        """Begin at these prices, as far as they are possible."""
        most = self.settings.limit if self.settings.ceiling is None else self.settings.ceiling
        floors = prices.new_tensor([-most if bound.relation == "==" else 0.0 for bound in self.bounds])
        self.prices.copy_(torch.maximum(prices, floors).clamp(max=most))

    def felt(self, excesses: Tensor) -> tuple[Tensor, Tensor]:
        """The weight of the objective, 1, and the prices that the model feels: the Lagrangian's slopes by excess."""
        slopes = torch.zeros_like(excesses)
        for constraint, _, places in self._constraints(excesses.dtype):
            here = excesses[places].detach().requires_grad_()
            with torch.enable_grad():
                part = _contribution(constraint, ConstraintState(violation=here), "primal")
                (slopes[places],) = torch.autograd.grad(part, here)
        return excesses.new_ones(()), slopes

    def climb(self, soft: Tensor, true: Tensor) -> None:
        """Move every price by its true excess; the soft one is what the model saw, and moves nothing."""
        risen, smoothed = self.prices.clone(), self.smoothed.clone()
        soft, true = (excess.to(risen.dtype) / self.rooms for excess in (soft, true))
        for constraint, multiplier, places in self._constraints(risen.dtype):
            weight = multiplier.weight
            optimizer = self._optimizer(weight, torch.where(self.started, smoothed[places], true[places]))
            state = ConstraintState(violation=soft[places], strict_violation=true[places])
            with torch.enable_grad():
                _contribution(constraint, state, "dual").backward()
            optimizer.step()
            multiplier.post_step_()
            risen[places] = weight.detach()
            smoothed[places] = optimizer.state[weight].get("xi", smoothed[places])
        if self.settings.ceiling is not None:
            risen.clamp_(-self.settings.ceiling, self.settings.ceiling)
        if may_look(risen):
            self._refuse_divergence(risen, true)
        self.excesses.copy_(true)
        self.prices.copy_(risen)
        self.smoothed.copy_(smoothed)
        self.started.fill_(True)

    def look(self) -> None:
        """Refuse prices that have diverged on a device at which nobody looked."""
        self._refuse_divergence(self.prices, self.excesses)

    def _constraints(self, dtype: torch.dtype) -> list[tuple[Priced, DenseMultiplier, Places]]:
        """Cooper's constraints around the prices as they are now; all that lasts is in our buffers.

        Cooper looks whether a multiplier of an inequality is below 0, twice a step: a device is waited for.
        """
        made = []
        for kind, places in self.kinds:
            multiplier = DenseMultiplier(init=self.prices[places].detach().clone(), dtype=dtype)
            if self.settings.penalty is None:
                made.append((Priced(kind, Plain, multiplier), multiplier, places))
                continue
            penalty = DensePenaltyCoefficient(torch.full_like(multiplier.weight.detach(), self.settings.penalty))
            made.append((Priced(kind, Augmented, multiplier, penalty), multiplier, places))
        return made

    def _optimizer(self, weight: Tensor, smoothed: Tensor) -> torch.optim.Optimizer:
        control = self.settings.control
        if control is None:
            return torch.optim.SGD([weight], lr=self.settings.lr, maximize=True)
        proportional, integral = torch.tensor(control.proportional), torch.tensor(1.0)
        optimizer = nuPI(
            [weight], lr=self.settings.lr, Kp=proportional, Ki=integral, ema_nu=control.smoothing, maximize=True
        )
        optimizer.state[weight]["xi"] = smoothed.clone()
        return optimizer

    def _refuse_divergence(self, risen: Tensor, excesses: Tensor) -> None:
        for place, bound in enumerate(self.bounds):
            if not abs(float(risen[place])) <= self.settings.limit:
                excess = float(excesses[place]) * float(self.rooms[place])
                raise DivergedPrices(
                    f"the price of {bound} has diverged: {float(self.prices[place]):.6g}, then "
                    f"{float(risen[place]):.6g} (limit {self.settings.limit:g}), with the true {bound.quantity} "
                    f"beyond its bound by {excess:.6g}; loosen the bound, lower price_lr or set a ceiling"
                )
