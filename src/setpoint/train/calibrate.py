"""From scores to an operating point: the best cut on these data, or the threshold to run at."""

from __future__ import annotations

from typing import Any

import torch

from setpoint.errors import BadScores, MissingClass
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.language import ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.threshold import find
from setpoint.train.certify import certify


def evaluate(problem: Problem | str, scores: Any, labels: Any, *, weights: Any = None) -> OperatingPoint:
    """The best feasible cut on these very data: a point of their curve, not a promise for others."""
    problem = ask(problem) if isinstance(problem, str) else problem
    sample = _judged_sample(problem, scores, labels, weights)
    found = find(problem, sample.scores, sample.labels, sample.weights)
    return OperatingPoint.at(problem, found.thresholds, sample)


def calibrate(
    problem: Problem | str, scores: Any, labels: Any, *, confidence: float | None = None, weights: Any = None
) -> OperatingPoint:
    """The threshold to run at, set on data that the model was not trained on.

    Without `confidence` it is the best cut of these data (plug-in), which on new data breaks its bound about
    half the time. With `confidence` the threshold is moved to the safe side until the bound holds with that
    probability; if there are too few samples for that, the error says how many are needed.
    """
    problem = ask(problem) if isinstance(problem, str) else problem
    sample = _judged_sample(problem, scores, labels, weights)
    if confidence is None:
        return evaluate(problem, sample.scores, sample.labels, weights=sample.weights)
    threshold, certificate = certify(problem, sample, confidence)
    return OperatingPoint.at(problem, threshold, sample, certificate=certificate)


def _judged_sample(problem: Problem, scores: Any, labels: Any, weights: Any) -> Sample:
    """A sample in float64 that holds every class the problem is a share of."""
    sample = check_sample(scores, labels, weights)
    if len(sample.scores) == 0:
        raise BadScores("no scores to judge; pass at least one sample of each class")
    wide = Sample(
        sample.scores.detach().double(),
        sample.labels.double(),
        None if sample.weights is None else sample.weights.double(),
    )
    weights = torch.ones_like(wide.scores) if wide.weights is None else wide.weights
    positives, everything = float((weights * wide.labels).sum()), float(weights.sum())
    # Flag nothing: then all positives are missed and all negatives passed over.
    counts = torch.tensor([0.0, 0.0, positives, everything - positives], dtype=torch.float64)
    asked = [problem.objective, *(c.quantity for c in problem.bounds)]
    for quantity in (q.rate if isinstance(q, Gap) else q for q in asked):
        if isinstance(quantity, Rate) and quantity.has_fixed_whole and float(quantity.size(counts)) <= 0:
            kind = "positive" if positives <= 0 else "negative"
            raise MissingClass(f"{quantity} needs {kind} samples, but these {len(wide.scores)} hold none")
    return wide
