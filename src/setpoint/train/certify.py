"""A threshold with a proof: the order statistic at which a bound holds with a given probability.

For a rate that is a share of one class, n calibration samples of that class and a threshold that lets j of them
through, P(the rate exceeds its bound) <= P(Binomial(n, bound) <= j), whatever the distribution. All thresholds
on the safe side of that one keep the promise at the same time, so the best of them may be chosen freely.
"""

from __future__ import annotations

import math

import torch
from scipy.stats import binom
from torch import Tensor

from setpoint.errors import BadProblem, BadSetting, TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import curve
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.point import Certificate
from setpoint.problem.problem import Problem


def certify(problem: Problem, sample: Sample, confidence: float) -> tuple[Tensor, Certificate]:
    """The best threshold `(1,)` at which the problem's one bound holds with probability `confidence`."""
    if not 0 < confidence < 1:
        raise BadSetting(f"confidence must lie between 0 and 1, such as 0.95, got {confidence!r}")
    bound, on_positives, allowed = _one_class_bound(problem)
    if sample.weights is not None and bool((sample.weights != sample.weights[0]).any()):
        raise BadProblem("a certificate counts samples, so unequal weights cannot be certified; drop the weights")
    if allowed <= 0:
        raise BadProblem(f"no number of samples can certify {bound}; leave a little room, such as 0.1%")
    scores = sample.scores[sample.labels == float(on_positives)]
    passed = _tolerated(len(scores), allowed, confidence)
    if passed < 0:
        kind = "positives" if on_positives else "negatives"
        reachable = 1 - (1 - confidence) ** (1 / len(scores)) if len(scores) else 1.0
        strictest = reachable if bound.relation == "<=" else 1 - reachable
        raise TooFewSamples(
            f"{bound} at confidence {confidence:g} needs {needed(allowed, confidence)} {kind}, but there are "
            f"{len(scores)}; they could certify {bound.quantity} {bound.relation} {strictest:.4g}"
        )
    if on_positives:
        edge = torch.nextafter(scores.sort().values[passed], scores.new_tensor(-torch.inf))
    else:
        edge = scores.sort(descending=True).values[passed]
    certificate = Certificate(statement=str(bound), confidence=confidence, samples=len(scores))
    return _best_beyond(problem, sample, edge, above=not on_positives), certificate


def _best_beyond(problem: Problem, sample: Sample, edge: Tensor, *, above: bool) -> Tensor:
    """The best of all cuts `(1,)` whose threshold lies on the safe side of the edge; of equals the nearest to it."""
    cuts = curve(sample.scores, sample.labels, sample.weights)
    thresholds = cuts.thresholds(torch.arange(len(cuts.tp), device=edge.device))
    cost = problem.objective(cuts.counts) * (-1 if problem.maximize else 1)
    # Thresholds fall from cut to cut, so that above the edge the last is the nearest, below it the first.
    safe = (thresholds >= edge if above else thresholds <= edge).nonzero().squeeze(-1)
    equals = safe[cost[safe] <= cost[safe].min() + 1e-12]
    return thresholds[equals[-1 if above else 0]].reshape(1)


def needed(allowed: float, confidence: float) -> int:
    """The fewest samples of the class with which a share of `allowed` can be certified: 299 for 1 % at 95 %."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-allowed)) if allowed < 1 else 1


def _tolerated(n: int, allowed: float, confidence: float) -> int:
    """The largest j with P(Binomial(n, allowed) <= j) <= 1 - confidence, or -1 if there is none."""
    j = int(binom.ppf(1 - confidence, n, allowed)) if n else -1
    while j >= 0 and binom.cdf(j, n, allowed) > 1 - confidence:
        j -= 1
    return min(j, n - 1)


def _one_class_bound(problem: Problem) -> tuple[Constraint, bool, float]:
    """The bound, whether it is on the positives, and the share of them that may fall on the wrong side."""
    if len(problem.constraints) == 1 and problem.constraints[0].relation != "==":
        bound = problem.constraints[0]
        rate, upper = bound.quantity, bound.relation == "<="
        if isinstance(rate, Rate) and rate.direction and rate.is_share:
            # On the wrong side: a negative that passes, or a positive that does not.
            if rate.whole == (0, 1, 0, 1) and upper == (rate.direction > 0):
                return bound, False, bound.bound if upper else 1 - bound.bound
            if rate.whole == (1, 0, 1, 0) and upper == (rate.direction < 0):
                return bound, True, bound.bound if upper else 1 - bound.bound
    raise BadProblem(
        f"no certificate for '{problem}' yet: a certificate needs one bound that holds fpr or fnr down, or tnr or "
        "recall up; calibrate without confidence= for the plug-in threshold"
    )
