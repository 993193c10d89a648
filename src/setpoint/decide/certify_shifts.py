"""Certified shifts: bounds on classes that hold on new data with a given probability.

A problem about one class alone is certified cut by cut, as for a single threshold. Bounds on several classes are
certified along a path of shifts that a part of the samples chooses; each decision on it is tested by exact tests of
every bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from setpoint.decide.along_path import certify_along_path, needed_along_path
from setpoint.decide.certify import certify
from setpoint.decide.samples_needed import allowed_share, needed, refuse_the_impossible
from setpoint.decide.shifts import against_the_rest, find_shifts, of_one_class, only_class
from setpoint.errors import TooFewSamples
from setpoint.measure.classes import OfClass
from setpoint.measure.constraint import Constraint
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts


def needed_for_shifts(problem: Problem, constraint: Constraint, confidence: float) -> int:
    """The fewest samples, of those that a bound is a share of, with which it can be certified.

    Bounds on several classes are certified along a path, which a part of the samples chooses without being tested.
    """
    fewest = needed(allowed_share(constraint), confidence)
    named = {q.label if isinstance(q, OfClass) else None for q in problem.quantities}
    return fewest if len(named) == 1 and None not in named else needed_along_path(fewest)


def certify_shifts(
    problem: Problem, sample: Sample, confidence: float, names: Sequence[str] | None = None
) -> tuple[Shifts, Certificate]:
    """The best shifts at which all bounds hold with probability `confidence`."""
    refuse_the_impossible(problem)
    n_classes, alone = sample.scores.shape[1], only_class(problem)
    own = tuple(names or map(str, range(n_classes)))
    if alone is not None:
        try:
            found, certificate = certify(of_one_class(problem), against_the_rest(sample, alone), confidence)
        except TooFewSamples as cause:
            raise TooFewSamples(f"class {own[alone]} against the rest: {cause}") from cause
        shifts = [float(found[0]) if k == alone else 0.0 for k in range(n_classes)]
        return Shifts(own, tuple(shifts)), replace(certificate, statement=problem.promise)
    last: Tensor | None = None

    def nearby(asked: Problem, rows: Sample) -> Shifts:
        # The bounds of the next problem on the path are a little wider, and so the last shifts are a good start.
        nonlocal last
        found = find_shifts(asked, rows, own, last)
        last = torch.tensor(found.shifts, dtype=torch.float64)
        return found

    return certify_along_path(problem, sample, confidence, nearby)
