"""Certificates for decisions of any kind: a path of decisions from safe to bold, walked by exact tests.

A part of the samples, set aside, chooses the path: the best decisions under bounds that are first much stricter than
asked, then less and less so. Each step is then replaced by the mean of the steps around it: decisions that few samples
chose jump from one step to the next, and a jump over a bound would end the walk. The other samples walk the path. Each
decision on it is tested, and the walk ends at the first one for which "a bound is broken" is not rejected. To reach a
decision that breaks a bound, the walk must pass the first such one, whose test errs with probability 1 - confidence; so
the best of all decisions passed may be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

import numpy as np
from torch import Tensor

from setpoint.decide.certify import drawn_apart, unweighted
from setpoint.decide.samples_needed import allowed_share, refusal
from setpoint.errors import TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.evidence import p_if_broken, trials
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Band

#: Decisions that are a few numbers, whose mean is a decision too.
ByNumbers = TypeVar("ByNumbers", Band, Shifts)
#: The share of the samples that choose the path.
SET_ASIDE = 1 / 3
#: The factors of what each bound allows along the path. Beyond 1 the samples set aside may have been unlucky.
_FACTORS = np.linspace(0.05, 1.3, 80)
#: The standard deviation of the factors over which the decisions of a step are averaged.
_AROUND = 0.2


def certify_along_path(
    problem: Problem, sample: Sample, confidence: float, find: Callable[[Problem, Sample], ByNumbers]
) -> tuple[ByNumbers, Certificate]:
    """The best decision on a path at which all bounds hold with probability `confidence`.

    Args:
        problem: The problem, whose bounds have exact tests.
        sample: The calibration samples.
        confidence: The probability with which all bounds are to hold.
        find: Finds the best decision of a problem on a sample.

    Returns:
        The decision and its certificate.

    Raises:
        TooFewSamples: If no decision on the path passes; the message says how many samples are needed.
    """
    aside, tested = drawn_apart(unweighted(sample), SET_ASIDE)
    path = _smooth([find(tightened(problem, factor), aside) for factor in _FACTORS])
    return _walk(problem, path, tested, confidence, len(aside.labels))


def needed_along_path(tested: int) -> int:
    """The fewest samples of which so many remain to be tested."""
    return next(size for size in count(tested + 1) if size - round(SET_ASIDE * size) >= tested)


def _smooth(path: Sequence[ByNumbers]) -> Iterable[ByNumbers]:
    """The path with each step replaced by the mean of the steps around it, without repetitions."""
    near = np.exp(-(((_FACTORS[:, None] - _FACTORS) / _AROUND) ** 2) / 2)
    means = near / near.sum(1, keepdims=True) @ np.array([step.values for step in path])
    return dict.fromkeys(path[0].moved_to(values) for values in means.tolist())


def _walk(
    problem: Problem, path: Iterable[ByNumbers], tested: Sample, confidence: float, aside: int
) -> tuple[ByNumbers, Certificate]:
    passed: list[tuple[float, ByNumbers]] = []
    failed: Tensor | None = None
    for thresholds in path:
        counts = thresholds.count(tested)
        tests = [float(p_if_broken(c, counts[0].numpy())) for c in problem.constraints]
        if max(tests) > 1 - confidence:
            failed = counts[0]
            break
        passed.append((float(problem.cost(counts)), thresholds))
    if not passed:
        assert failed is not None
        raise TooFewSamples(refusal(problem, failed.numpy(), confidence, 1 - confidence))
    best = min(passed, key=lambda one: one[0])[1]
    there = best.count(tested)[0].numpy()
    samples = min(int(trials(c, there)) for c in problem.constraints)
    method = f"fixed-sequence test along a path that {aside} samples set aside chose"
    return best, Certificate(problem.promise, confidence, samples, method)


def tightened(problem: Problem, factor: float) -> Problem:
    """The problem whose bounds allow so many times as much: `fpr <= 1%` by 0.5 is `fpr <= 0.5%`."""
    return replace(problem, constraints=tuple(_tightened(c, factor) for c in problem.constraints))


def _tightened(constraint: Constraint, factor: float) -> Constraint:
    allowed = min(factor * allowed_share(constraint), 1.0)
    return replace(constraint, bound=allowed if constraint.relation == "<=" else 1 - allowed)
