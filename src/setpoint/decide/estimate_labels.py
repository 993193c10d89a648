"""The interval of the objective of several labels: an estimate, not a promise.

The labels of a row depend on one another, so rows are the units: the influence of a row on the objective is the sum
over its labels of the derivative by the count that it adds to, and the squares of all influences add up to the
variance.
"""

from __future__ import annotations

import scipy
import torch

from setpoint.decide.labels import find_labels
from setpoint.errors import MissingClass
from setpoint.measure.labels import kinds_of_rows
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Estimate
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import refuse_absent

#: Parts of the rows, each counted at the thresholds of the others.
_FOLDS = 5


def estimate_labels(point: OperatingPoint, sample: Sample, confidence: float, *, fixed: bool) -> Estimate:
    """The objective with an interval: at `fixed` thresholds, or as the thresholds of other rows would have it."""
    problem, size = point.problem, len(sample.scores)
    passed, how = point.thresholds.passes(sample.scores), "at fixed thresholds"
    folds = None if fixed else _folds(problem, sample)
    if folds is not None:
        for fold in folds.unique():
            own = find_labels(problem, sample.take(folds != fold))
            passed[folds == fold] = own.passes(sample.scores[folds == fold])
        how = f"each of {_FOLDS} parts at the thresholds of the others"
    kinds = kinds_of_rows(passed, sample.labels).double()
    weights = torch.ones(size, dtype=torch.float64) if sample.weights is None else sample.weights
    weighed = kinds * weights[:, None, None]
    counts = weighed.sum(0)
    # Half a row to each kind: without it, nothing is known of a kind that was not seen.
    leaf = (counts + 0.5 * float(weights.mean())).requires_grad_()
    middle = problem.objective(leaf)
    (slopes,) = torch.autograd.grad(middle, leaf)
    value, centre = float(problem.objective(counts)), float(middle.detach())
    more = 0.5 * float((slopes**2).sum()) * float(weights.mean()) ** 2
    error = float((weighed * slopes).sum((1, 2)).square().sum() + more) ** 0.5
    error *= float(scipy.special.ndtri((1 + confidence) / 2))
    if problem.objective.is_share and 0 < centre < 1:
        odds, error = scipy.special.logit(centre), error / (centre * (1 - centre))
        low, high = float(scipy.special.expit(odds - error)), float(scipy.special.expit(odds + error))
    else:
        low, high = centre - error, centre + error
    method = f"normal approximation over the rows, {how}"
    return Estimate(str(problem.objective), value, min(low, value), max(high, value), confidence, size, method)


def _folds(problem: Problem, sample: Sample) -> torch.Tensor | None:
    """The part of each row, drawn at random; None where the rows are too few for any part to be left out."""
    draw = torch.Generator().manual_seed(0x5E7)
    folds = torch.empty(len(sample.scores), dtype=torch.long)
    folds[torch.randperm(len(folds), generator=draw)] = torch.arange(len(folds)) % _FOLDS
    try:
        for fold in range(_FOLDS):
            refuse_absent(problem, sample.take(folds != fold))
    except MissingClass:
        return None
    return folds
