"""Certified thresholds per group: for bounds that compare groups, and for bounds that each group must keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_group import EVERYWHERE, find_by_group
from setpoint.decide.certify import certify, drawn_apart, unweighted
from setpoint.decide.cut import find
from setpoint.decide.rate_window import widest_window
from setpoint.decide.samples_needed import fewest_of_each, refusal_of_gap, refusal_of_window, refuse_the_impossible
from setpoint.errors import TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.measure.count import count
from setpoint.measure.curve import curve
from setpoint.measure.rate import Gap, rate_within
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.evidence import p_if_broken, trials
from setpoint.problem.problem import Problem

Candidates = Callable[[Problem, Sample], Iterator[Tensor]]
#: Candidates have their bounds pulled in by five standard errors (both halves err), in so many steps down to none.
_CAUTION, _STEPS = 5.0, 11
#: The share of the samples that choose a window, and of those that choose candidates for the others to test.
_FOR_WINDOW, _FOR_CANDIDATES = 0.2, 0.4
#: The part of the bound that candidates on the way from the end of the rate may use up, and the last ones.
_ON_THE_WAY, _AT_LAST = 0.2, (0.5, 0.7, 1.0)


def certify_gap(problem: Problem, sample: Sample, names: list[str], confidence: float) -> tuple[Tensor, Certificate]:
    """Thresholds `(1, G)` at which all bounds, the gap among them, hold with probability `confidence`.

    A gap alone is certified by a window of the compared rate: all cuts whose rates lie in it keep the promise at once.
    Where ties are as large as the window, and beside other bounds, candidates are tested in sequence.
    """
    refuse_the_impossible(problem)
    sample = unweighted(sample)
    if len(problem.constraints) > 1:
        return _tested_in_sequence(problem, sample, names, confidence, _from_cautious_to_bold)
    (bound,) = problem.constraints
    aside, rest = drawn_apart(sample, _FOR_WINDOW)
    sizes = _sizes(bound, rest)
    window = widest_window(_level(problem, aside), sizes, bound.bound, 1 - confidence)
    if window is None:
        there = _sizes(bound, sample)
        raise TooFewSamples(refusal_of_window(bound, (sizes, there), names, confidence, 1 - _FOR_WINDOW))
    low, high = window
    if _largest_tie(bound, aside) >= high - low:
        return _tested_in_sequence(problem, sample, names, confidence, _from_the_end)
    thresholds = find_by_group(replace(problem, constraints=(replace(bound, bound=high - low),)), rest, window)[0]
    method = f"a window of {rate_within(bound.quantity)} that {len(aside.labels)} samples set aside chose"
    return thresholds, Certificate(problem.promise, confidence, min(sizes), method)


def needed_for_gap(bound: Constraint, confidence: float) -> int:
    """The fewest samples of each of two groups with which a gap alone can be certified, those set aside among them."""
    return math.ceil(fewest_of_each(bound.bound, 1 - confidence, [0, 0]) / (1 - _FOR_WINDOW))


def _sizes(bound: Constraint, sample: Sample) -> list[int]:
    """The number of samples of each group that its rate is a share of."""
    sizes: list[int] = trials(bound, _counts(torch.zeros(1, sample.n_groups or 0), sample)).astype(int).tolist()
    return sizes


def _level(problem: Problem, sample: Sample) -> float:
    """The middle of the rates of all groups at the best cuts of these samples; 1 if they hold nothing to count."""
    rate, counts = rate_within(problem.constraints[0].quantity), find(problem, sample).counts[0]
    rates = rate(counts)[rate.size(counts) > 0]
    return float(rates.max() + rates.min()) / 2 if len(rates) else 1.0


def _largest_tie(bound: Constraint, sample: Sample) -> float:
    """The largest share of a group by which its rate jumps at one score, but for one sample, which is no tie."""
    rate, groups = rate_within(bound.quantity), sample.groups
    assert groups is not None
    tables = [
        curve(part.scores, part.labels).counts
        for part in (sample.take(groups == g) for g in range(sample.n_groups or 0))
        if len(part.labels)
    ]
    return max(float(rate(table).diff().abs().max() - 1 / rate.size(table[0]).clamp(min=1)) for table in tables)


def _from_the_end(problem: Problem, sample: Sample) -> Iterator[Tensor]:
    """Thresholds for a gap alone: from the nearer end, where all or none pass in every group, to the best cuts."""
    (bound,) = problem.constraints
    level = _level(problem, sample)
    end = float(level > 0.5)
    ways = [(share, _ON_THE_WAY) for share in np.linspace(0, 1, _STEPS)[1:]]
    for share, used in [*ways, *((1.0, used) for used in _AT_LAST)]:
        low, high = sorted((end, end + share * (level - end)))
        stricter = replace(problem, constraints=(replace(bound, bound=used * bound.bound),))
        yield find_by_group(stricter, sample, (low, high) if used < 1 else EVERYWHERE)[0]


def _from_cautious_to_bold(problem: Problem, sample: Sample) -> Iterator[Tensor]:
    """Thresholds for several bounds, each pulled in by several standard errors, then by fewer and fewer."""
    found = find(problem, sample)
    for degree in np.linspace(1, 0, _STEPS):
        stricter = [_pulled_in(c, found.counts[0], degree) for c in problem.constraints]
        yield find(replace(problem, constraints=tuple(stricter)), sample).thresholds


def _tested_in_sequence(
    problem: Problem, sample: Sample, names: list[str], confidence: float, candidates: Candidates
) -> tuple[Tensor, Certificate]:
    """The best of the candidates that pass.

    One half of the samples finds candidates, more and less cautious ones; the other half, which has not chosen them,
    tests one after the other, the most cautious first, until the first fails. All before it keep the promise at once.
    A group without samples in the second half makes every test fail.
    """
    first, second = drawn_apart(sample, _FOR_CANDIDATES)
    certified: list[Tensor] = []
    for thresholds in candidates(problem, first):
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
    method = f"in each of {len(names)} groups at confidence {100 * own:.4g}%, the smallest of them counted"
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
