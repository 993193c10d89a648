"""Certified bands: two cuts at which all bounds hold on new data with a given probability.

Bounds on one cut each (precision on the upper cut, npv on the lower one) are certified cut by cut, as for a single
threshold: two walks share the error probability, and the best pair of certified cuts is taken. The lower cut is the
upper cut of the mirrored question, in which scores change their sign and the classes their places. Bounds on both cuts
together, such as `review <= 5%`, are certified along a path of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.decide.along_path import certify_along_path
from setpoint.decide.band import Pairs, find_band
from setpoint.decide.certify import certified_cuts, unweighted
from setpoint.decide.samples_needed import refuse_the_impossible
from setpoint.errors import TooFewSamples
from setpoint.measure.band import BandRate, is_one_sided
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Rate, flagged
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Band

#: Turns a rate of one of the two cuts into a rate of a single threshold.
Plain = Callable[[BandRate], Rate]


def certify_band(problem: Problem, sample: Sample, confidence: float) -> tuple[Band, Certificate]:
    """The best pair of cuts at which all bounds hold with probability `confidence`."""
    refuse_the_impossible(problem)
    if not all(map(is_one_sided, problem.constraints)):
        band, certificate = certify_along_path(problem, sample, confidence, find_band)
        assert isinstance(band, Band)
        return band, certificate
    sample = unweighted(sample)
    bounds = [[c for c in problem.constraints if _rate(c).sides[side]] for side in (0, 1)]
    walks = sum(map(bool, bounds))
    cuts = curve(sample.scores, sample.labels)
    high = _certified(bounds[0], _upper, (sample, 1), cuts, (confidence, walks))
    mirrored = replace(sample, scores=-sample.scores, labels=1 - sample.labels)
    low = _certified(bounds[1], _lower, (mirrored, -1), cuts, (confidence, walks))
    found = Pairs(replace(problem, constraints=()), cuts, high.allowed, low.allowed).feasible()
    if found is None:
        raise TooFewSamples(
            f"{problem.promise} at confidence {confidence:g}: every certified upper cut lies below every certified "
            "lower cut; bring more rows, or ask for one threshold without review"
        )
    methods = " and ".join(dict.fromkeys(filter(None, (high.method, low.method))))
    both = "two walks that share the error probability: " if all(bounds) else ""
    band = Band(float(low.thresholds[found.low]), float(high.thresholds[found.high]))
    return band, Certificate(problem.promise, confidence, len(sample.scores), f"{both}{methods}")


@dataclass(frozen=True)
class _Side:
    """The certified thresholds of one of the two cuts, by the cuts of all samples that they lie at."""

    allowed: NDArray[np.bool_]
    thresholds: NDArray[np.float64]
    method: str


def _certified(
    bounds: list[Constraint], plain: Plain, signed: tuple[Sample, int], cuts: Curve, sure: tuple[float, int]
) -> _Side:
    """The cuts at which the bounds of one side are certain; all cuts where it has no bound.

    `signed` is the sample with the sign of its scores, `sure` the confidence and the number of walks that share it.
    """
    thresholds = cuts.thresholds(torch.arange(len(cuts.tp))).double().numpy().copy()
    if not bounds:
        return _Side(np.ones(len(thresholds), dtype=bool), thresholds, "")
    asked = Problem(flagged, True, tuple(replace(c, quantity=plain(_rate(c))) for c in bounds))
    (sample, sign), (confidence, walks) = signed, sure
    found = certified_cuts(asked, sample, confidence, walks)
    allowed = np.zeros(len(thresholds), dtype=bool)
    own = sign * found.cuts.thresholds(torch.from_numpy(np.sort(found.places))).double().numpy()
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


def _upper(rate: BandRate) -> Rate:
    """A rate that depends on the upper cut alone, as a rate of flagged against all other rows."""
    return Rate(rate.name, *((w[0], w[1], w[4], w[5]) for w in (rate.part, rate.whole)))


def _lower(rate: BandRate) -> Rate:
    """A rate that depends on the lower cut alone, as a rate of the mirrored question."""
    return Rate(rate.name, *((w[3], w[2], w[5], w[4]) for w in (rate.part, rate.whole)))
