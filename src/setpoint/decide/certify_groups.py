"""Certified thresholds per group: for bounds that compare groups, and for bounds that each group must keep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.certify import certify, drawn_apart, unweighted
from setpoint.decide.cut import find
from setpoint.decide.samples_needed import refusal_of_gap, refuse_the_impossible
from setpoint.errors import TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.measure.count import count
from setpoint.measure.rate import Gap, rate_within
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.evidence import p_if_broken
from setpoint.problem.problem import Problem

#: Candidates have their bounds pulled in by five standard errors (both halves err), in so many steps down to none.
_CAUTION, _STEPS = 5.0, 11


def certify_gap(problem: Problem, sample: Sample, names: list[str], confidence: float) -> tuple[Tensor, Certificate]:
    """Thresholds `(1, G)` at which all bounds, the gap among them, hold with probability `confidence`.

    One half of the samples finds candidates, more and less cautious ones; the other half, which has not chosen them,
    tests one after the other, the most cautious first, until the first fails. All before it keep the promise at once.
    A group without samples in the second half makes every test fail.
    """
    refuse_the_impossible(problem)
    sample = unweighted(sample)
    first, second = drawn_apart(sample, 0.5)
    found = find(problem, first)
    certified: list[Tensor] = []
    for degree in np.linspace(1, 0, _STEPS):
        stricter = [_pulled_in(c, found.counts[0], degree) for c in problem.constraints]
        thresholds = find(replace(problem, constraints=tuple(stricter)), first).thresholds
        counts = _counts(thresholds, second)
        if max(float(p_if_broken(c, problem.seen_by(c, counts))) for c in problem.constraints) > 1 - confidence:
            if not certified:
                everything = _counts(thresholds, sample)
                raise TooFewSamples(refusal_of_gap(problem, counts, everything, names, confidence))
            break
        certified.append(thresholds)
    costs = [float(problem.cost(torch.from_numpy(_counts(each, sample)).unsqueeze(0))) for each in certified]
    best = min(range(len(costs)), key=lambda place: (costs[place], -place))
    method = f"thresholds found on {len(first.scores)} samples, tested in sequence on {len(second.scores)} others"
    return certified[best], Certificate(problem.promise, confidence, len(second.scores), method)


def certify_each_group(
    problem: Problem, sample: Sample, names: list[str], confidence: float
) -> tuple[Tensor, Certificate]:
    """One threshold per group, `(1, G)`, at which every bound holds in every group at once.

    Groups are independent samples, so G certificates of confidence^(1/G) make one of `confidence`.
    """
    sample = unweighted(sample)
    assert sample.groups is not None
    own = confidence ** (1 / len(names))
    thresholds, fewest = [], len(sample.scores)
    for code, name in enumerate(names):
        inside = sample.groups == code
        try:
            threshold, certificate = certify(problem, Sample(sample.scores[inside], sample.labels[inside]), own)
        except TooFewSamples as cause:
            raise TooFewSamples(f"in group {name!r}: {cause}") from cause
        thresholds.append(threshold)
        fewest = min(fewest, certificate.samples)
    method = f"in each of {len(names)} groups at confidence {own:.4g}, the smallest of them counted"
    return torch.stack(thresholds, dim=1), Certificate(problem.promise, confidence, fewest, method)


def _counts(thresholds: Tensor, sample: Sample) -> NDArray[np.float64]:
    """True counts by group `(G, 4)`."""
    counts = count(sample.scores, sample.labels, thresholds, groups=sample.groups, n_groups=thresholds.shape[1])
    each: NDArray[np.float64] = counts[0].numpy()
    return each


def _pulled_in(constraint: Constraint, counts: Tensor, degree: float) -> Constraint:
    """The same bound, made stricter by `degree` times five of its standard errors."""
    compared, rate = isinstance(constraint.quantity, Gap), rate_within(constraint.quantity)
    pooled = counts.sum(0)
    level = float(rate(pooled)) if compared else constraint.bound
    # A gap lies between two groups; those of the fewest samples are the least certain.
    sizes = rate.size(counts if compared else pooled.unsqueeze(0)).clamp(min=1).sort().values[:2]
    error = math.sqrt(max(level * (1 - level), 1 / float(sizes.sum())) * float((1 / sizes).sum()))
    margin = degree * _CAUTION * error * (1 if constraint.relation == "<=" else -1)
    # No gap is closer to nothing than a sample: two groups are rarely alike but where all pass, or none.
    nearest = min(constraint.bound, 2 / float(sizes.min())) if compared else 0.0
    return replace(constraint, bound=min(max(constraint.bound - margin, nearest), 1.0))
