"""From scores to an operating point: the best cut on these data, or the threshold to run at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from setpoint.errors import BadGroups, BadScores, BadWeights, MissingClass
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample, check_sample, name_groups
from setpoint.problem.language import ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.threshold import find
from setpoint.train.certify import certify


def evaluate(
    problem: Problem | str, scores: Any, labels: Any, *, weights: Any = None, groups: Any = None
) -> OperatingPoint:
    """The best feasible cut on these very data: a point of their curve, not a promise for others."""
    return calibrate(problem, scores, labels, weights=weights, groups=groups)


def calibrate(
    problem: Problem | str,
    scores: Any,
    labels: Any,
    *,
    confidence: float | None = None,
    weights: Any = None,
    groups: Any = None,
) -> OperatingPoint:
    """The threshold to run at, set on data that the model was not trained on.

    Without `confidence` it is the best cut of these data (plug-in), which on new data breaks its bound about
    half the time. With `confidence` the threshold is moved to the safe side until the bound holds with that
    probability; if there are too few samples for that, the error says how many are needed. `groups`, names or
    numbers, one a sample, are needed when the problem compares groups, each of which gets a threshold.
    """
    problem = ask(problem) if isinstance(problem, str) else problem
    sample, names = _judged_sample(problem, scores, labels, weights, groups)
    if confidence is None:
        return OperatingPoint.at(problem, find(problem, sample).thresholds, sample, names)
    threshold, certificate = certify(problem, sample, confidence)
    return OperatingPoint.at(problem, threshold, sample, names, certificate)


def _judged_sample(
    problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any
) -> tuple[Sample, list[str] | None]:
    """A sample in float64 that holds every class the problem is a share of, and the names of its groups."""
    names = None
    if problem.group is not None:
        if groups is None:
            raise BadGroups(f"'{problem}' compares groups of {problem.group}; pass groups=, one a sample")
        groups, names = name_groups(groups)
    wide = check_sample(scores, labels, weights, groups if names else None).double()
    if len(wide.scores) == 0:
        raise BadScores("no scores to judge; pass at least one sample of each class")
    if names:
        wide = replace(wide, n_groups=len(names))
    weights = torch.ones_like(wide.scores) if wide.weights is None else wide.weights
    positives, everything = float((weights * wide.labels).sum()), float(weights.sum())
    if everything <= 0:
        raise BadWeights("every sample has weight 0; there is nothing to judge")
    # Flag nothing: then all positives are missed and all negatives passed over.
    counts = torch.tensor([0.0, 0.0, positives, everything - positives], dtype=torch.float64)
    asked = [problem.objective, *(c.quantity for c in problem.bounds)]
    for quantity in (q.rate if isinstance(q, Gap) else q for q in asked):
        if isinstance(quantity, Rate) and quantity.has_fixed_whole and float(quantity.size(counts)) <= 0:
            kind = "positive" if positives <= 0 else "negative"
            raise MissingClass(f"{quantity} needs {kind} samples, but these {len(wide.scores)} hold none")
    return wide, names
