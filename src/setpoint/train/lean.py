"""The refinement of linear models with its gradient in closed form, by a few steps of a Newton method.

The loss is that of `ImplicitThreshold` at a temperature of 1, without memory, on all rows: objective + prices .
excesses in soft counts, with thresholds found by the true rates. The closed form covers asks in which every quantity is
a share of counts (`Rate`), at one threshold or at the thresholds of an area. With the soft counts u = (tp, fp) at a
threshold, every rate is (a0 + a . u) / (b0 + b . u), because fn and tn are what u leaves of each class.

Every step finds thresholds and prices anew, then goes along the gradient of loss and anchor divided by a curvature:
that of the anchor, and half the size of the push of the loss on each row, which is positive where the loss is not
convex. The curvature is made at the first step and at a third of the steps. Step lengths fall from 1 to 0 along a
cosine, and the result is the average over the last half of the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from setpoint.data.rows import Rows
from setpoint.decide.cut import Finder
from setpoint.errors import BadScores
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.implicit import broken_bounds
from setpoint.solve.price import BROKEN_PRICE, Damping
from setpoint.train.newton import invert_curvature
from setpoint.train.stacked_rows import StackedRows

DAMPING = Damping()
#: The number of Newton steps, and those at which the curvature is made.
STEPS = 40
CURVED = (0, STEPS // 3)
#: The length of each step.
LENGTHS = [(1 + math.cos(math.pi * step / STEPS)) / 2 for step in range(STEPS)]
#: The share of the push on a row that counts as curvature.
PUSHED = 0.5
#: The share of all curvature that is added to each parameter's own: the bias has no ridge.
LEAST = 1e-9


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


@dataclass(frozen=True)
class Share:
    """A rate less its bound as a function of u = (tp, fp): sign * ((a0 + a . u) / (b0 + b . u) - bound)."""

    part: tuple[float, float, float]
    whole: tuple[float, float, float]
    bound: float
    sign: float

    @classmethod
    def of(cls, rate: Quantity, classes: list[float], bound: float, sign: float) -> Share:
        assert isinstance(rate, Rate)
        positives, negatives = classes
        part, whole = (
            (fn * positives + tn * negatives, tp - fn, fp - tn) for tp, fp, fn, tn in (rate.part, rate.whole)
        )
        return cls(part, whole, bound, sign)

    def at(self, tp: float, fp: float) -> tuple[float, float, float]:
        """The value, and its derivatives by tp and fp; a share of nothing is 0 and stays 0."""
        (a0, a1, a2), (b0, b1, b2) = self.part, self.whole
        size = b0 + b1 * tp + b2 * fp
        if size <= 0:
            return -self.sign * self.bound, 0.0, 0.0
        value, per = (a0 + a1 * tp + a2 * fp) / size, self.sign / size
        return self.sign * (value - self.bound), per * (a1 - value * b1), per * (a2 - value * b2)


class LeanLoss:
    """The loss of implicit thresholds on all rows and its derivative by each score.

    An area is a threshold per point, each with one equality of its own; any other problem has one threshold.

    Attributes:
        thresholds: The thresholds that `search` found last, `(m, 1)`.
        active: Whether each bound holds its threshold.
        broken: Whether each bound is met by no threshold.
    """

    def __init__(self, problem: Problem, rows: Rows) -> None:
        self.problem, self.labels, self.finder = problem, rows.labels, Finder(problem)
        weights = rows.weights_or_ones
        # Where all rows weigh 1, the search may go by rank.
        self.weights = None if bool((weights == 1).all()) else weights
        self.sides = torch.stack([rows.labels * weights, (1 - rows.labels) * weights])
        classes, points = self.sides.sum(1).tolist(), problem.n_thresholds
        self.cost = Share.of(problem.objective, classes, 0.0, (-1 if problem.maximize else 1) / points)
        self.excesses = [
            Share.of(c.quantity, classes, c.bound, -1.0 if c.relation == ">=" else 1.0) for c in problem.bounds
        ]
        # Above, how far each row passes each threshold; below, the slopes.
        self.passed = torch.empty(2 * points, len(weights), dtype=torch.float64)

    def search(self, scores: Tensor) -> None:
        """Find the best thresholds on these scores by the true rates, and hold them from now on."""
        found = self.finder(Sample(scores, self.labels, self.weights))
        self.thresholds = found.thresholds.unsqueeze(-1)
        self.active, self.broken = found.active.tolist(), broken_bounds(self.problem, found).tolist()

    def __call__(self, scores: Tensor) -> tuple[float, Tensor]:
        """The loss, and its derivative by each score."""
        size = len(self.thresholds)
        passed, slope = self.passed[:size], self.passed[size:]
        torch.sub(scores, self.thresholds, out=passed).sigmoid_()
        torch.addcmul(passed, passed, passed, value=-1, out=slope)
        counts = (self.passed @ self.sides.T).tolist()
        loss, prices = self.priced(counts[:size], counts[size:])
        return loss, (torch.tensor(prices, dtype=torch.float64) @ self.sides).mul_(slope).sum(0)

    def priced(self, counts: list[list[float]], paces: list[list[float]]) -> tuple[float, list[list[float]]]:
        """The loss, and the price of one more tp and fp at each threshold, from the soft counts and their slopes."""
        loss, prices = 0.0, []
        for place, (count, pace) in enumerate(zip(counts, paces)):
            bounds = slice(None) if self.problem.over is None else slice(place, place + 1)
            value, *price = self._priced(bounds, count, pace)
            loss += value
            prices.append(price)
        if not math.isfinite(loss):
            raise BadScores(
                f"the loss of the refinement is {loss}: numbers too large to count with; scale the features"
            )
        return loss, prices

    def _priced(self, bounds: slice, counts: list[float], pace: list[float]) -> tuple[float, float, float]:
        """The part of one threshold, with its bounds, in the loss, and the price there of one more tp and fp.

        `counts` are the soft tp and fp, `pace` their derivatives by the scores. The prices are those of `solve_prices`
        and `hold_passing`: at them no small move of the threshold pays.
        """
        active, broken = self.active[bounds], self.broken[bounds]
        loss, by_tp, by_fp = self.cost.at(*counts)
        # A threshold that rises by 1 is all scores falling by 1.
        cost = -(by_tp * pace[0] + by_fp * pace[1])
        excesses = [excess.at(*counts) for excess in self.excesses[bounds]]
        slopes = [-(tp * pace[0] + fp * pace[1]) * held for (_, tp, fp), held in zip(excesses, active)]
        squares = sum(slope * slope for slope in slopes)
        for (excess, tp, fp), slope, none_meets in zip(excesses, slopes, broken):
            price = BROKEN_PRICE if none_meets else _damped(slope, cost, squares)
            loss, by_tp, by_fp = loss + price * excess, by_tp + price * tp, by_fp + price * fp
        if any(active) or any(broken):
            return loss, by_tp, by_fp
        passing = -(pace[0] + pace[1])
        hold = _damped(passing, cost, passing * passing)
        return loss, by_tp + hold, by_fp + hold


def _damped(slope: float, cost: float, squares: float) -> float:
    price = -slope * cost / (squares + DAMPING.slope_floor**2)
    return min(max(price, -DAMPING.price_limit), DAMPING.price_limit)


@torch.no_grad()
def refine_lean(
    problem: Problem, rows: Rows, start: Tensor, anchor: Pull, strength: float, products: Tensor | None = None
) -> Tensor:
    """Improve `start` on the problem, held back by the anchor; the average over the last half of the steps.

    Args:
        problem: The problem, which `is_lean` covers on these rows.
        rows: All rows, with a last feature of 1.
        start: The parameters to start from.
        anchor: The anchor.
        strength: The strength of the anchor beside the loss, in units of their pulls on the scores at the start.
        products: The products of the rows (see `products_of`), if they are fewer than their features.

    Returns:
        The parameters.
    """
    x, loss, theta, average = rows.x, LeanLoss(problem, rows), start, torch.zeros_like(start)
    ridge = torch.full_like(start, float(anchor.weights.mean()))
    ridge[-1] = 0.0
    scores = x @ start
    loss.search(scores)
    pull = anchor.weights * (torch.sigmoid(scores) - rows.labels)
    strength *= float(loss(scores)[1].norm() / pull.norm().clamp(min=1e-300))
    weights, ridge = strength * anchor.weights, strength * ridge
    for step, length in enumerate(LENGTHS):
        # The first search was at the start.
        if step:
            scores = x @ theta
            loss.search(scores)
        push, chance = loss(scores)[1], torch.sigmoid(scores)
        if step in CURVED:
            curvature = PUSHED * push.abs() + weights * chance * (1 - chance)
            undo = invert_curvature(x, curvature, ridge + LEAST * curvature.sum(), products)
        slope = x.T @ push.addcmul_(weights, chance - anchor.targets)
        theta = theta - length * undo(slope.addcmul_(ridge, theta - anchor.centre))
        if step >= STEPS // 2:
            average += theta / (STEPS - STEPS // 2)
    return average


class _Losses:
    """The losses of several sets of rows, with one operation for all of them."""

    def __init__(self, problem: Problem, stacked: StackedRows) -> None:
        self.each = [LeanLoss(problem, rows) for rows in stacked.sets]
        self.sizes, points = stacked.sizes, problem.n_thresholds
        self.sides = torch.stack([stacked.labels * stacked.weights, (1 - stacked.labels) * stacked.weights], dim=1)
        self.passed = torch.empty(2, len(self.each), points, stacked.longest, dtype=torch.float64)
        self.twice = self.sides.transpose(1, 2).repeat(2, 1, 1)

    def search(self, scores: Tensor) -> None:
        """Find the best thresholds of each set, and hold them from now on."""
        for loss, own, size in zip(self.each, scores, self.sizes):
            loss.search(own[:size])
        self.thresholds = torch.stack([loss.thresholds for loss in self.each])

    def __call__(self, scores: Tensor) -> Tensor:
        """The derivative of the loss of each set by its scores."""
        passed, slope = self.passed
        torch.sub(scores.unsqueeze(1), self.thresholds, out=passed).sigmoid_()
        torch.addcmul(passed, passed, passed, value=-1, out=slope)
        counts = torch.bmm(self.passed.flatten(0, 1), self.twice).tolist()
        both = zip(self.each, counts, counts[len(self.each) :])
        prices = torch.tensor([loss.priced(*own)[1] for loss, *own in both], dtype=torch.float64)
        return torch.bmm(prices, self.sides).mul_(slope).sum(1)


@torch.no_grad()
def refine_stacked(
    problem: Problem, stacked: StackedRows, start: Tensor, anchor: Tensor, strengths: list[float]
) -> Tensor:
    """`refine_lean` on several sets of rows at once.

    Args:
        problem: The problem, which `is_lean` covers on each of the sets.
        stacked: The sets.
        start: The parameters of each set to start from.
        anchor: The weights of the anchor in each set, which is cross-entropy to its labels.
        strengths: The strength of the anchor in each set.

    Returns:
        The parameters of each set.
    """
    losses, theta, average = _Losses(problem, stacked), start, torch.zeros_like(start)
    scores = stacked.scores(start)
    losses.search(scores)
    pull = anchor * (torch.sigmoid(scores) - stacked.labels)
    balance = losses(scores).norm(dim=1) / pull.norm(dim=1).clamp(min=1e-300)
    strength = (torch.tensor(strengths, dtype=torch.float64) * balance).unsqueeze(-1)
    ridge = (strength * stacked.mean(anchor).unsqueeze(-1)).repeat(1, stacked.width)
    ridge[:, -1] = 0.0
    weights = strength * anchor
    for step, length in enumerate(LENGTHS):
        # The first search was at the start.
        if step:
            scores = stacked.scores(theta)
            losses.search(scores)
        push, chance = losses(scores), torch.sigmoid(scores)
        if step in CURVED:
            curvature = PUSHED * push.abs() + weights * chance * (1 - chance)
            factors = stacked.curvatures(curvature, ridge + LEAST * curvature.sum(1, keepdim=True))
        slope = stacked.back(push.addcmul_(weights, chance - stacked.labels)).addcmul_(ridge, theta)
        theta = theta - length * torch.linalg.lu_solve(*factors, slope.unsqueeze(-1)).squeeze(-1)
        if step >= STEPS // 2:
            average += theta / (STEPS - STEPS // 2)
    return average
