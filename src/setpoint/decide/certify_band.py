"""Certified bands: two cuts at which all bounds hold on new data with a given probability.

Bounds on one cut each (precision on the upper cut, npv on the lower one) are certified cut by cut, as for a single
threshold: two walks share the error probability, and the best pair of certified cuts is taken. The walk of the
upper cut flags more and more rows, that of the lower cut leaves more and more rows unflagged. Bounds on both cuts
together, such as `review <= 5%`, are certified along a path of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.decide.along_path import certify_along_path, needed_along_path
from setpoint.decide.band import Pairs, find_band
from setpoint.decide.certify import certified_cuts, unweighted
from setpoint.decide.samples_needed import allowed_share, needed, refuse_the_impossible
from setpoint.errors import TooFewSamples
from setpoint.measure.band import BandRate, is_one_sided
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Rate, flagged
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Band


def certify_band(problem: Problem, sample: Sample, confidence: float) -> tuple[Band, Certificate]:
    """The best pair of cuts at which all bounds hold with probability `confidence`."""
    refuse_the_impossible(problem)
    if not all(map(is_one_sided, problem.constraints)):
        return certify_along_path(problem, sample, confidence, find_band)
    sample = unweighted(sample)
    bounds = _by_side(problem)
    walks = sum(map(bool, bounds))
    cuts = curve(sample.scores, sample.labels)
    high, low = (_certified(bounds[side], side, sample, cuts, (confidence, walks)) for side in (0, 1))
    found = Pairs(replace(problem, constraints=()), cuts, high.allowed, low.allowed).feasible()
    if found is None:
        raise TooFewSamples(
            f"{problem.promise} at confidence {100 * confidence:.6g}%: every certified upper cut lies below every "
            "certified lower cut; bring more rows, or ask for one threshold without review"
        )
    methods = " and ".join(dict.fromkeys(filter(None, (high.method, low.method))))
    both = "two walks that share the error probability: " if all(bounds) else ""
    band = Band(float(low.thresholds[found.low]), float(high.thresholds[found.high]))
    return band, Certificate(problem.promise, confidence, len(sample.scores), f"{both}{methods}")


def needed_for_band(problem: Problem, constraint: Constraint, confidence: float) -> int:
    """The fewest samples, of those that a bound is a share of, with which it can be certified beside the others.

    Bounds on one cut each share the error probability. A bound on both cuts is certified along a path, which a part of
    the samples chooses without being tested.
    """
    allowed = allowed_share(constraint)
    if not all(map(is_one_sided, problem.constraints)):
        return needed_along_path(needed(allowed, confidence))
    return needed(allowed, 1 - (1 - confidence) / sum(map(bool, _by_side(problem))))


def _by_side(problem: Problem) -> list[list[Constraint]]:
    """The bounds on the upper cut, and those on the lower cut."""
    return [[c for c in problem.constraints if _rate(c).sides[side]] for side in (0, 1)]


@dataclass(frozen=True)
class _Side:
    """The certified thresholds of one of the two cuts, by the cuts of all samples that they lie at."""

    allowed: NDArray[np.bool_]
    thresholds: NDArray[np.float64]
    method: str


def _certified(bounds: list[Constraint], side: int, sample: Sample, cuts: Curve, sure: tuple[float, int]) -> _Side:
    """The upper cuts (0) or the lower cuts (1) at which their bounds are certain; all cuts where there is no bound.

    `sure` is the confidence and the number of walks that share it.
    """
    thresholds = cuts.thresholds(torch.arange(len(cuts.tp))).double().numpy().copy()
    if not bounds:
        return _Side(np.ones(len(thresholds), dtype=bool), thresholds, "")
    asked = Problem(flagged, side == 0, tuple(replace(c, quantity=_plain(_rate(c), side)) for c in bounds))
    found = certified_cuts(asked, sample, *sure)
    allowed = np.zeros(len(thresholds), dtype=bool)
    own = found.thresholds(torch.from_numpy(np.sort(found.places))).double().numpy()
    # A certified threshold stands for the cut of all samples that decides them alike.
    places = _places(cuts, own)
    allowed[places], thresholds[places] = True, own
    return _Side(allowed, thresholds, found.method)


def _places(cuts: Curve, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of distinct scores above each threshold."""
    rising = cuts.values.double().numpy()[::-1]
    return len(rising) - np.searchsorted(rising, thresholds, side="right")


def _rate(constraint: Constraint) -> BandRate:
    assert isinstance(constraint.quantity, BandRate)
    return constraint.quantity


def _plain(rate: BandRate, side: int) -> Rate:
    """A rate that depends on the upper cut (0) or on the lower cut (1) alone, as a rate of that one threshold.

    Reviewed rows lie below the upper cut and above the lower one.
    """
    weights = ((w[0], w[1], w[4], w[5]) if side == 0 else (w[4], w[5], w[2], w[3]) for w in (rate.part, rate.whole))
    return Rate(rate.name, *weights)
