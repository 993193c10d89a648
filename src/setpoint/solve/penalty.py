"""A bound kept by a fixed penalty on its distance: objective + eta |excess|."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.problem.problem import Problem
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.price import Expansion
from setpoint.solve.refuse import above_zero

#: A penalty keeps a bound only if it is dearer than the bound's price; and prices are noisy.
OVER_THE_PRICE = 2.0


class Penalty(ImplicitThreshold):
    """Keep bounds by a fixed penalty on their distance, objective + eta |excess|, at implicit thresholds.

    The prices are eta * sign(excess) in place of solved ones. An eta of 1 is far below the price of a tight bound, and
    the model then collapses to flagging everything.

    Args:
        problem: The objective and its bounds.
        eta: The penalty. None keeps it at twice the running mean of the solved price.
        settings: Settings of `ImplicitThreshold`.

    Raises:
        BadSetting: If `eta` is not above 0.

    Example:
        >>> import setpoint as sp
        >>> solver = sp.losses.Penalty(sp.ask("minimize fnr where fpr <= 5%"), eta=20.0, memory=0)
    """

    solves_prices = False
    running: Tensor

    def __init__(self, problem: Problem, *, eta: float | None = None, **settings: Any) -> None:
        super().__init__(problem, **settings)
        above_zero(eta=eta)
        self.eta = eta
        self.register_buffer("running", torch.zeros(len(problem.bounds)))

    def price(self, here: Expansion, slopes: tuple[Tensor, Tensor], active: Tensor) -> Tensor:
        if self.eta is not None:
            return self.eta * here.excesses.sign()
        solved = super().price(here, slopes, active).abs()
        running = torch.where(self.running > 0, 0.9 * self.running + 0.1 * solved, solved)
        if self.training:
            self.running.copy_(running)
        return OVER_THE_PRICE * running.to(solved.dtype) * here.excesses.sign()
