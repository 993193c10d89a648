"""Prices of bounds, solved at the found thresholds; and the one loss that all solvers share.

    loss = objective + sum(price_i * excess_i)

in soft counts, with thresholds and prices held constant. If the prices are such that no small move of the
thresholds changes the loss, its gradient is that of the objective *as re-optimised over the thresholds* (the
envelope theorem; for one threshold and one equality, the implicit function theorem).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.errors import BadScores
from setpoint.measure.constraint import Quantity
from setpoint.measure.count import count, count_by_steps
from setpoint.measure.looks import constant_like, may_look
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.measure.step import SmoothStep, Step, adds_up
from setpoint.problem.problem import Problem
from setpoint.solve.refuse import above_zero


@dataclass(frozen=True)
class Damping:
    """How solved prices are kept finite: by a floor under the slopes and a limit on the prices.

    Slopes are taken per unit of temperature times score, so that the floor does not depend on the scale of the scores.

    Args:
        slope_floor: Slopes below this count for little: a slope of 0 gives a price of 0, not of infinity.
        price_limit: The largest price, of either sign.

    Raises:
        BadSetting: If either is not above 0.

    Example:
        >>> import setpoint as sp
        >>> damping = sp.losses.Damping(price_limit=100.0)
        >>> solver = sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 5%"), damping=damping)
    """

    slope_floor: float = 1e-6
    price_limit: float = 1e3

    def __post_init__(self) -> None:
        above_zero(slope_floor=self.slope_floor, price_limit=self.price_limit)

    def clipped(self, prices: Tensor) -> Tensor:
        return prices.clamp(-self.price_limit, self.price_limit)


def count_at(sample: Sample, thresholds: Tensor, step: Step) -> Tensor:
    """Counts `(m, 4)` at the thresholds `(m,)`, or `(1, G, 4)` at one threshold per group, `(1, G)`."""
    groups = sample.groups if thresholds.dim() == 2 else None
    return count(
        sample.scores, sample.labels, thresholds, step,
        weights=sample.weights, groups=groups, n_groups=sample.n_groups,
    )  # fmt: skip


OVERFLOW = "temperature times scores overflows; lower the temperature, or scale the scores"
#: The price of a bound that no threshold meets: heavy beside an objective of at most 1.
BROKEN_PRICE = 10.0
#: The counts of scores that pass, among the four.
PASSING = (1.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Expansion:
    """Cost and excesses to first order around some counts `(m, 4)`: values, and slopes by every count."""

    counts: Tensor
    cost: Tensor
    excesses: Tensor
    cost_slope: Tensor
    excess_slopes: Tensor

    def by_threshold(self, pace: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes of cost `(T,)` and excesses `(k, T)` when each of T thresholds moves its own counts at `pace`."""
        return (self.cost_slope * pace).sum(-1).flatten(), (self.excess_slopes * pace).sum(-1).flatten(1)

    def loss(self, prices: Tensor, batch: Tensor, share: Tensor, hold: Tensor | None = None) -> Tensor:
        """The priced loss, its derivative by the counts taken here, that of the counts by the scores in `batch`.

        It is linear in the batch's own counts (blown up by 1 / share to the size of these), hence unbiased for
        ratios such as precision however small the batch; when the batch is all there is, it is the loss itself.
        `hold` are the prices of passing each threshold, as in `hold_passing`.
        """
        slope = self.cost_slope + torch.einsum("k,k...->...", prices, self.excess_slopes)
        if hold is not None:
            slope = slope + hold.view(slope.shape[:-1]).unsqueeze(-1) * constant_like(PASSING, slope)
        value = self.cost + (prices * self.excesses).sum()
        return value + (slope * (batch / share - self.counts)).sum()


def expand_around(problem: Problem, counts: Tensor, sample: Sample, step: Step) -> Expansion:
    """The problem to first order around the soft counts of a sample under a step."""
    return expand(problem, counts, None if adds_up(step) else sample.totals)


def expand(problem: Problem, counts: Tensor, totals: Tensor | None = None) -> Expansion:
    """The problem to first order around `counts`, which are taken as given; `totals` as in `Rate.with_slope`."""
    if problem.group is None and all(isinstance(q, Rate) for q in _quantities(problem)):
        return _expand_rates(problem, counts.detach(), totals)
    anchor = counts.detach().requires_grad_()
    with torch.enable_grad():
        cost = problem.cost(anchor)
        (cost_slope,) = torch.autograd.grad(cost, anchor)
        if problem.over is not None:
            # Each excess depends on its own threshold's counts alone, so their sum has all the slopes.
            excesses = problem.excesses(anchor)
            (rows,) = torch.autograd.grad(excesses.sum(), anchor)
            excess_slopes = torch.diag_embed(rows.T).movedim(0, -1)
        else:
            # Each excess has a copy of the counts to itself, so one pass backward has all the slopes.
            copies = counts.detach().expand(len(problem.constraints), *counts.shape).clone().requires_grad_()
            excesses = copies.new_zeros(0)
            excess_slopes = torch.zeros_like(copies)
            if problem.constraints:
                each = [c.excess(problem.seen_by(c, own))[0] for c, own in zip(problem.constraints, copies)]
                excesses = torch.stack(each)
                (excess_slopes,) = torch.autograd.grad(excesses.sum(), copies)
    return Expansion(counts.detach(), cost.detach(), excesses.detach(), cost_slope, excess_slopes)


def _quantities(problem: Problem) -> list[Quantity]:
    return [problem.objective, *(c.quantity for c in problem.constraints)]


def _expand_rates(problem: Problem, counts: Tensor, totals: Tensor | None) -> Expansion:
    """The same for rates, whose slopes are known without asking autograd."""
    rates = [rate for rate in _quantities(problem) if isinstance(rate, Rate)]
    (value, slope), *bounded = (rate.with_slope(counts, totals) for rate in rates)
    sign = -problem.n_thresholds if problem.maximize else problem.n_thresholds
    cost, cost_slope = value.sum() / sign, slope / sign
    if problem.over is not None:
        level, rising = problem.over.rate.with_slope(counts, totals)
        excesses = level - constant_like(tuple(problem.over.bounds), counts)
        return Expansion(counts, cost, excesses, cost_slope, torch.diag_embed(rising.T).movedim(0, -1))
    if not bounded:
        return Expansion(counts, cost, counts.new_zeros(0), cost_slope, counts.new_zeros(0, *counts.shape))
    signs = [-1.0 if c.relation == ">=" else 1.0 for c in problem.constraints]
    beyond = [sign * (level[0] - c.bound) for sign, c, (level, _) in zip(signs, problem.constraints, bounded)]
    slopes = [sign * rising for sign, (_, rising) in zip(signs, bounded)]
    return Expansion(counts, cost, torch.stack(beyond), cost_slope, torch.stack(slopes))


def count_and_pace(sample: Sample, thresholds: Tensor, step: SmoothStep) -> tuple[Tensor, Tensor]:
    """Soft counts and their derivatives, each by its own threshold, of scores that carry no gradient."""
    if thresholds.dim() == 2:
        return count_at(sample, thresholds, step), count_pace(sample, thresholds, step)
    counts, slopes = count_by_steps(sample.scores, sample.labels, thresholds, (step, step.slope), sample.weights)
    return counts, -slopes


def count_pace(sample: Sample, thresholds: Tensor, step: SmoothStep) -> Tensor:
    """The derivative of the soft counts, each by its own threshold: `(m, 4)`."""
    return -count_at(sample, thresholds, step.slope)


def hold_passing(slope: Tensor, pace: Tensor, damping: Damping) -> Tensor:
    """Prices of passing each threshold, `(T,)`, at which a small move of the threshold no longer changes the loss.

    Thresholds that no bound holds lie where the *true* rates are best, and there the smooth loss still has a slope:
    with nothing against it all scores drift one way, and the loss with them. Held so, a threshold moves with the scores
    around it. At the optimum of the smooth loss itself the price is 0.
    """
    passing = (pace * constant_like(PASSING, pace)).sum(-1).flatten()
    return damping.clipped(-slope * passing / (passing.square() + damping.slope_floor**2))


def solve_prices(
    cost_slope: Tensor, excess_slopes: Tensor, active: Tensor, damping: Damping, *, one_each: bool = False
) -> Tensor:
    """Prices of the active bounds at which no small move of the thresholds pays: cost' + prices . excess' = 0.

    Least squares, square or not, damped so that a vanishing slope gives a price of 0 rather than of infinity.
    Bounds that are not active cost nothing. The sign is free: with precision as the objective it is negative
    for about half of all models. `one_each` says that every bound is of a threshold of its own, in the same order.
    """
    slopes = excess_slopes * active.to(excess_slopes.dtype).unsqueeze(-1)
    if slopes.numel() == 0:
        return slopes.new_zeros(len(slopes))
    if may_look(slopes) and not bool(slopes.isfinite().all() & cost_slope.isfinite().all()):
        raise BadScores(OVERFLOW)
    if slopes.shape[1] == 1:
        # One threshold: the pseudo-inverse of a column.
        return damping.clipped(-slopes[:, 0] * cost_slope / (slopes.square().sum() + damping.slope_floor**2))
    if one_each:
        own = slopes.diagonal()
        return damping.clipped(-own * cost_slope / (own.square() + damping.slope_floor**2))
    # A device is waited for here: the decomposition looks whether it converged.
    left, stretch, right = torch.linalg.svd(slopes, full_matrices=False)
    damped = stretch / (stretch**2 + damping.slope_floor**2)
    # Rounding would give bounds that are not active a small price.
    return damping.clipped(-left @ (damped * (right @ cost_slope))) * active
