"""The refinement of linear models with its gradient in closed form: the same steps as by the solver, without autograd.

The loss is that of `ImplicitThreshold` at a temperature of 1, without memory, on all rows: objective + prices . excesses
in soft counts, with thresholds found by the true rates every few steps. It covers asks in which every quantity is a
share of counts (`Rate`), at one threshold or at the thresholds of an area. With the soft counts u = (tp, fp) at a
threshold, every rate is (a0 + a . u) / (b0 + b . u), because fn and tn are what u leaves of each class.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.data.rows import Rows
from setpoint.decide.cut import find
from setpoint.errors import BadScores
from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem
from setpoint.solve.implicit import BROKEN_PRICE, broken_bounds
from setpoint.solve.price import Damping

#: The settings of `torch.optim.Adam`.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
DAMPING = Damping()

Numbers = NDArray[np.float64]


class Pull(Protocol):
    """An anchor: cross-entropy to `targets` under `weights`, and a pull towards `centre`."""

    @property
    def targets(self) -> Tensor: ...

    @property
    def weights(self) -> Tensor: ...

    @property
    def centre(self) -> Tensor: ...


def is_lean(problem: Problem, rows: Rows) -> bool:
    """Whether the closed form covers this problem on these rows."""
    asked = [problem.objective, *(bound.quantity for bound in problem.bounds)]
    plain = rows.groups is None and all(isinstance(quantity, Rate) for quantity in asked)
    return plain and rows.x.device.type == "cpu" and rows.sample(rows.labels).has_both_classes


class LeanLoss:
    """The loss of implicit thresholds on all rows and its derivative by each score.

    Attributes:
        thresholds: The thresholds that `search` found last, `(m, 1)`.
        active: Whether each bound holds the threshold.
        broken: Whether each bound is met by no threshold.
    """

    def __init__(self, problem: Problem, rows: Rows) -> None:
        self.problem, self.labels = problem, rows.labels
        weights = rows.weights_or_ones
        # Where all rows weigh 1, the search may go by rank.
        self.weights = None if bool((weights == 1).all()) else weights
        positive = rows.labels.double()
        self.sides = torch.stack([positive * weights, (1 - positive) * weights], dim=-1)
        over, points = problem.over, problem.n_thresholds
        rates: list[Any] = [problem.objective, *([over.rate] if over else [c.quantity for c in problem.constraints])]
        # The part and the whole of each rate, by tp and fp, and what stands beside these two.
        forms = np.array([[rate.part, rate.whole] for rate in rates], dtype=np.float64)
        self.by_count = forms[..., :2] - forms[..., 2:]
        self.beside = forms[..., 2:] @ self.sides.sum(0).numpy()
        signs = [1.0] if over else [-1.0 if c.relation == ">=" else 1.0 for c in problem.constraints]
        self.signs = np.array([(-1.0 if problem.maximize else 1.0) / points, *signs])
        self.bounds = np.array([c.bound for c in problem.bounds], dtype=np.float64).reshape(len(signs), points)
        self.passed, self.slope = (torch.empty(points, len(positive), dtype=torch.float64) for _ in range(2))

    def search(self, scores: Tensor) -> None:
        """Find the best thresholds on these scores by the true rates, and hold them from now on."""
        found = find(self.problem, Rows(None, self.labels, self.weights).sample(scores))
        self.thresholds = found.thresholds.unsqueeze(-1)
        self.active, self.broken = found.active.numpy(), broken_bounds(self.problem, found).numpy()

    def __call__(self, scores: Tensor) -> tuple[float, Tensor]:
        """The loss, and its derivative by each score."""
        passed, slope = self.passed, self.slope
        torch.sub(scores, self.thresholds, out=passed).sigmoid_()
        torch.mul(passed, passed, out=slope)
        torch.sub(passed, slope, out=slope)
        value, price = self._priced((passed @ self.sides).numpy(), (slope @ self.sides).numpy())
        if not math.isfinite(value):
            raise BadScores(f"the loss of the refinement is {value}: numbers too large to count with; scale the features")
        return value, torch.linalg.vecdot(slope.T @ torch.from_numpy(price), self.sides)

    def _priced(self, counts: Numbers, pace: Numbers) -> tuple[float, Numbers]:
        """The loss, and what one more tp and one more fp at each threshold cost, `(m, 2)`.

        Both arguments are `(m, 2)`: the soft counts tp and fp, and their derivatives by the scores.
        """
        part, whole = np.moveaxis(self.beside[..., None] + self.by_count @ counts.T, 1, 0)
        size = np.where(whole <= 0, np.inf, whole)
        rates = part / size
        slopes = (self.by_count[:, 0, None] - rates[..., None] * self.by_count[:, 1, None]) / size[..., None]
        slopes *= self.signs[:, None, None]
        # A threshold that rises by 1 is all scores falling by 1.
        by_threshold = -(slopes * pace).sum(-1)
        excesses = self.signs[1:, None] * (rates[1:] - self.bounds)
        prices = self._prices(by_threshold[0], by_threshold[1:])
        price = slopes[0] + (prices[..., None] * slopes[1:]).sum(0)
        if self.problem.over is None and not self.active.any() and not self.broken.any():
            price = price + _balancing(by_threshold[0], -pace.sum(-1))
        return float(self.signs[0] * rates[0].sum() + (prices * excesses).sum()), price

    def _prices(self, cost: Numbers, excess: Numbers) -> Numbers:
        """The price of each bound, `(k, 1)`, or of each point of an area, `(1, m)`: as `solve_prices` has them."""
        if self.problem.over is not None:
            return _balancing(cost, excess)
        held = excess * self.active[:, None]
        squares = (held * held).sum() + DAMPING.slope_floor**2
        prices = (-held * cost / squares).clip(-DAMPING.price_limit, DAMPING.price_limit)
        return np.where(self.broken[:, None], BROKEN_PRICE, prices)


def _balancing(cost: Numbers, other: Numbers) -> Numbers:
    """The price of `other` at which a move of the threshold no longer changes the loss."""
    limit = DAMPING.price_limit
    return (-cost * other / (other * other + DAMPING.slope_floor**2)).clip(-limit, limit)


class Descent:
    """Adam with its usual settings, on one vector."""

    def __init__(self, start: Tensor) -> None:
        self.place, self.steps = start.clone(), 0
        self.mean, self.square = torch.zeros_like(start), torch.zeros_like(start)

    def step(self, gradient: Tensor, rate: float) -> None:
        """Move `place` by one step."""
        self.steps += 1
        self.mean.lerp_(gradient, 1 - BETA_1)
        self.square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        scale = self.square.sqrt().div_(math.sqrt(1 - BETA_2**self.steps)).add_(EPSILON)
        self.place.addcdiv_(self.mean, scale, value=-rate / (1 - BETA_1**self.steps))


@torch.no_grad()
def refine_lean(
    problem: Problem, rows: Rows, start: Tensor, anchor: Pull, strength: float, rates: list[float], every: int
) -> Tensor:
    """Improve `start` on the problem, held back by the anchor; the average over the last half of the steps.

    Args:
        problem: The problem, which `is_lean` covers on these rows.
        rows: All rows, with a last feature of 1.
        start: The parameters to start from.
        anchor: The anchor.
        strength: The strength of the anchor beside the loss, in units of their pulls on the scores at the start.
        rates: The learning rate of each step.
        every: The number of steps from one search of the thresholds to the next.

    Returns:
        The parameters.
    """
    x, loss, descent, average = rows.x, LeanLoss(problem, rows), Descent(start), torch.zeros_like(start)
    ridge = torch.full_like(start, float(anchor.weights.mean()))
    ridge[-1] = 0.0
    scores = x @ start
    loss.search(scores)
    pull = anchor.weights * (torch.sigmoid(scores) - rows.labels)
    strength *= float(loss(scores)[1].norm() / pull.norm().clamp(min=1e-300))
    weights, ridge = strength * anchor.weights, strength * ridge
    for step, rate in enumerate(rates):
        scores = x @ descent.place
        if step % every == 0:
            loss.search(scores)
        push = loss(scores)[1].addcmul_(weights, torch.sigmoid(scores) - anchor.targets)
        descent.step((x.T @ push).addcmul_(ridge, descent.place - anchor.centre), rate)
        if step >= len(rates) // 2:
            average += descent.place / (len(rates) - len(rates) // 2)
    return average
