"""Intervals for quantities without an exact test: estimates, not promises.

At a threshold each row is of one of four kinds, tp, fp, fn or tn (of K classes: of one of K^2, its class and the class
that it is given), and counts for its weight w. The influence of a row of kind k on a quantity q of the counts is
w dq/dk, and the squares of all influences add up to the variance of q, whatever the weights are. The interval is q plus
and minus that standard error times a quantile of Student's t, on the scale of log-odds where q is a share. The degrees
of freedom are as many as there are rows that decide: (sum of squares)^2 / (sum of fourth powers), as far as that is
owed to unequal weights. They are few when a few heavy rows decide, and the interval is then wide; with equal weights
Student's t is the normal distribution.

The rates at a threshold that was found on the same rows are too good, so the rows are then counted in five parts, each
at the threshold that the other four give. Areas have no threshold; their interval is that of a bootstrap of the rows.
`python -m benchmarks.studies.estimates` measures how often these intervals and others hold the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
import torch
from torch import Tensor

from setpoint.decide.by_kind import decider
from setpoint.decide.estimate_labels import estimate_labels
from setpoint.decide.lists import estimate_lists
from setpoint.measure.classes import ClassQuantity, counts_of
from setpoint.measure.constraint import Quantity
from setpoint.measure.curve import curve, mean_over
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.measure.rate import CATALOGUE, Gap
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Estimate
from setpoint.problem.evidence import is_testable
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Thresholds

#: Parts of the rows, each counted at the threshold of the others.
FOLDS = 5
#: An area is computed anew in each draw: fewer draws of more samples, within this many samples in all.
_DRAWS, _WORK, _FEWEST = 2000, 20_000_000, 200


def estimate(point: OperatingPoint, sample: Sample, confidence: float) -> tuple[Estimate, ...]:
    """Estimates of the objective and of each bound without an exact test, at a point's thresholds; or of the area.

    The thresholds of a point without a certificate are the best ones on this very sample.
    """
    problem = point.problem
    if problem.over is not None:
        return (_area(problem, sample, confidence),)
    if sample.weights is not None:
        sample = sample.take(sample.weights > 0)
    if problem.kind == LISTS:
        return estimate_lists(problem, sample, confidence)
    if sample.values is not None:
        return _by_rows(point, sample, confidence)
    if problem.kind == LABELS:
        return (estimate_labels(point, sample, confidence, fixed=point.certificate is not None),)
    folds = _folds(sample) if point.certificate is None else None
    if folds is None:
        kinds, how = _Kinds.at(point.thresholds, sample), "at a fixed threshold"
    else:
        kinds = _Kinds.nothing()
        for one in range(FOLDS):
            own = decider(problem).best(problem, sample.take(folds != one), None)
            kinds += _Kinds.at(own, sample.take(folds == one))
        how = f"each of {FOLDS} parts at the threshold of the others"
    untested = [c.quantity for c in problem.constraints if not is_testable(c) and not isinstance(c.quantity, Gap)]
    method = f"Student's t, {how}{_worth(sample)}"
    return tuple(
        kinds.interval(quantity, confidence, method) for quantity in dict.fromkeys([problem.objective, *untested])
    )


def estimate_of_counts(quantity: Quantity, counts: Tensor, confidence: float) -> Estimate:
    """The estimate of a quantity from rows of each kind, which all weigh the same, at a fixed threshold.

    The kinds are the true counts `(4,)`, or those of `Thresholds.kinds`.
    """
    return _Kinds(counts, counts, counts, counts).interval(quantity, confidence, "Student's t, at a fixed threshold")


@dataclass(frozen=True)
class _Kinds:
    """Sums over the rows of each count, of powers of their weights: 0 (how many rows there are), 1, 2 and 4."""

    rows: Tensor
    counts: Tensor
    squares: Tensor
    fourths: Tensor

    @classmethod
    def nothing(cls) -> _Kinds:
        return cls(*torch.zeros(4, 1, dtype=torch.float64))

    @classmethod
    def at(cls, thresholds: Thresholds, sample: Sample) -> _Kinds:
        weights = torch.ones(len(sample.scores)).double() if sample.weights is None else sample.weights
        return cls(*(thresholds.kinds(replace(sample, weights=weights**p)) for p in (0, 1, 2, 4)))

    def __add__(self, other: _Kinds) -> _Kinds:
        return _Kinds(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values())))

    def interval(self, quantity: Quantity, confidence: float, method: str) -> Estimate:
        value, samples = float(_value(quantity, self.counts)), int(self.rows.sum())
        # Half a row of the mean weight to each kind: without it, nothing is known of a kind that was not seen. The many
        # kinds of K classes get less, K rows in all.
        mean = float(self.counts.sum()) / samples
        more = len(self.counts) ** -0.5 if isinstance(quantity, ClassQuantity) else 0.5
        counts, squares = self.counts + more * mean, self.squares + more * mean**2
        middle, slopes = float(_value(quantity, counts)), _slopes(quantity, counts)
        quantile = float(scipy.special.stdtrit(self._freedom(slopes), (1 + confidence) / 2))
        error = quantile * float(slopes**2 @ squares) ** 0.5
        if quantity.is_share and 0 < middle < 1:
            odds, error = scipy.special.logit(middle), error / (middle * (1 - middle))
            low, high = float(scipy.special.expit(odds - error)), float(scipy.special.expit(odds + error))
        else:
            low, high = middle - error, middle + error
            if quantity.name in CATALOGUE:
                low, high = max(low, -1.0), min(high, 1.0)
        return Estimate(str(quantity), value, min(low, value), max(high, value), confidence, samples, method)

    def _freedom(self, slopes: Tensor) -> float:
        """The degrees of freedom: how many rows decide, where unequal weights make them few."""
        mean = self.counts / self.rows.clamp(min=1)
        few = _inverse_number(slopes, self.squares, self.fourths)
        few -= _inverse_number(slopes, self.rows * mean**2, self.rows * mean**4)
        return max(1.0, 1 / max(few, 1e-9))


def _by_rows(point: OperatingPoint, sample: Sample, confidence: float) -> tuple[Estimate, ...]:
    """Estimates at a fixed threshold, by Bayesian bootstraps of the rows, for asks that count the values of columns."""
    problem, size = point.problem, len(sample.scores)
    asked = [problem.objective, *(c.quantity for c in problem.constraints if not is_testable(c))]
    rng, weights = np.random.default_rng((0x5E7, size)), torch.ones_like(sample.scores)
    weights = weights if sample.weights is None else sample.weights
    draws = min(_DRAWS, max(_FEWEST, _WORK // (20 * size)))
    drawn = [weights * torch.from_numpy(rng.exponential(size=size)) for _ in range(draws)]
    counts = torch.cat([point.thresholds.count(replace(sample, weights=own)) for own in drawn])
    tail, found = (1 - confidence) / 2, []
    for quantity in dict.fromkeys(asked):
        value = float(quantity(point.thresholds.count(sample))[0])
        low, high = np.quantile(quantity(counts).numpy(), [tail, 1 - tail]).tolist()
        method = f"percentiles of {draws} Bayesian bootstraps of the rows, at a fixed threshold"
        found.append(Estimate(str(quantity), value, min(low, value), max(high, value), confidence, size, method))
    return tuple(found)


def _inverse_number(slopes: Tensor, squares: Tensor, fourths: Tensor) -> float:
    squared = float(slopes**2 @ squares) ** 2
    return float(slopes**4 @ fourths) / squared if squared > 0 else 0.0


def _value(quantity: Quantity, kinds: Tensor) -> Tensor:
    """The value of a quantity where there are so many rows of each kind."""
    if not isinstance(quantity, ClassQuantity):
        return quantity(kinds)
    n_classes = math.isqrt(kinds.shape[-1])
    return quantity(counts_of(kinds.unflatten(-1, (n_classes, n_classes))))


def _slopes(quantity: Quantity, counts: Tensor) -> Tensor:
    """The derivative by each of the counts."""
    if isinstance(quantity, ClassQuantity):
        leaf = counts.clone().requires_grad_()
        return torch.autograd.grad(_value(quantity, leaf), leaf)[0]
    step = 1e-6 * counts.sum()
    return (quantity(counts + step * torch.eye(len(counts), dtype=counts.dtype)) - quantity(counts)) / step


def _folds(sample: Sample) -> Tensor | None:
    """The part of each row, drawn at random with each class in every part; None where a class has too few rows."""
    draw = torch.Generator().manual_seed(0x5E7)
    folds = torch.zeros(len(sample.scores), dtype=torch.long)
    for label in (0, 1) if sample.scores.dim() == 1 else sample.labels.unique().tolist():
        rows = (sample.labels == label).nonzero().squeeze(-1)
        if len(rows) < 2 * FOLDS:
            return None
        folds[rows[torch.randperm(len(rows), generator=draw)]] = torch.arange(len(rows)) % FOLDS
    return folds


def _worth(sample: Sample) -> str:
    """A phrase that says how many equal weights the unequal ones are worth: (sum of weights)^2 / sum of squares."""
    if sample.weights is None:
        return ""
    equal = float(sample.weights.sum() ** 2 / (sample.weights**2).sum())
    return f"; weights that are worth {equal:.3g} equal ones of {len(sample.weights)}"


def _area(problem: Problem, sample: Sample, confidence: float) -> Estimate:
    assert problem.over is not None
    size, over = len(sample.scores), problem.over
    draws = min(_DRAWS, max(_FEWEST, _WORK // size))
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    # Always the same draws for so many samples, but not those that a user's own seed of 0 gives.
    rng, chances = np.random.default_rng((0x5E7, size)), np.full(size, 1 / size)
    values = []
    for _ in range(draws):
        drawn = weights * torch.from_numpy(rng.multinomial(size, chances))
        # A draw without one of the classes has no area.
        if 0 < float(drawn @ sample.labels) < float(drawn.sum()):
            values.append(_mean(problem, sample, drawn))
    value, tail = _mean(problem, sample, weights), (1 - confidence) / 2
    low, high = np.quantile(values or [value], [tail, 1 - tail]).tolist()
    method = f"percentiles of {draws} bootstraps of the rows{_worth(sample)}"
    name = f"{problem.objective} over {over.rate}"
    return Estimate(name, value, min(low, value), max(high, value), confidence, size, method)


def _mean(problem: Problem, sample: Sample, weights: Tensor) -> float:
    assert problem.over is not None
    return float(mean_over(curve(sample.scores, sample.labels, weights), problem.objective, problem.over))
