"""Asks that count the values of columns: the best threshold among all cuts, and the certified one.

Every cut is counted once per column. A bound on plain rows (`fpr <= 1%` beside `recall weighted by amount`) has an
exact test, as for any threshold. A bound on a weighted rate has none: one row may outweigh all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.decide.certify import certified_cuts
from setpoint.decide.cut import find_among
from setpoint.decide.samples_needed import refuse_the_impossible
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Rate, flagged
from setpoint.measure.sample import Sample
from setpoint.measure.worth import Weighted
from setpoint.problem.certificate import Certificate
from setpoint.problem.evidence import trials
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import OneThreshold, heaviest_of


@dataclass(frozen=True)
class WorthCurve(Curve):
    """A curve whose cuts are counted in rows and in the values of each column: `rows` is `(K + 1, 1 + C, 4)`."""

    rows: Tensor

    @property
    def counts(self) -> Tensor:
        return self.rows


def worth_curve(sample: Sample) -> WorthCurve:
    """All cuts of a sample with values."""
    assert sample.values is not None
    present = torch.ones_like(sample.scores, dtype=torch.bool) if sample.weights is None else sample.weights > 0
    sample = sample.take(present)
    assert sample.values is not None
    cuts = curve(sample.scores, sample.labels, sample.weights)
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    mass = weights.unsqueeze(-1) * torch.cat([torch.ones_like(sample.values[:, :1]), sample.values], dim=1)
    order = sample.scores.argsort(descending=True, stable=True)
    positive = sample.labels[order].unsqueeze(-1) > 0
    # The last row of each run of tied scores closes a cut.
    places = torch.searchsorted(-sample.scores[order], -cuts.values, right=True)
    sides = []
    for side in (positive, ~positive):
        passed = torch.cat([mass.new_zeros(1, mass.shape[1]), torch.where(side, mass[order], 0.0).cumsum(0)])
        sides.append(torch.cat([passed[:1], passed[places]]))
    tp, fp = sides
    return WorthCurve(cuts.values, cuts.tp, cuts.fp, torch.stack([tp, fp, tp[-1] - tp, fp[-1] - fp], dim=-1))


def find_worth(problem: Problem, sample: Sample, names: Sequence[str] | None = None) -> OneThreshold:
    """The best threshold that meets the bounds, or the threshold that breaks them least."""
    found = find_among(problem, worth_curve(sample), heaviest_of(sample))
    return OneThreshold(float(found.thresholds[0]))


def certify_worth(
    problem: Problem, sample: Sample, confidence: float, names: Sequence[str] | None = None
) -> tuple[OneThreshold, Certificate]:
    """The best threshold at which all bounds, which are on plain rows, hold with probability `confidence`."""
    refuse_the_impossible(problem)
    plain = Problem(flagged, True, tuple(replace(c, quantity=_rate(c)) for c in problem.constraints))
    found = certified_cuts(plain, replace(sample, values=None), confidence)
    cuts = worth_curve(sample)
    thresholds = found.thresholds(torch.from_numpy(np.sort(found.places)))
    places = len(cuts.values) - torch.searchsorted(cuts.values.flip(0), thresholds, right=True)
    cost = problem.costs(cuts.counts[places])
    best = int((cost <= cost.min() + EQUAL).nonzero()[-1])
    counts = cuts.counts[places[best]].numpy()
    samples = min(int(trials(c, counts)) for c in problem.constraints)
    certificate = Certificate(problem.promise, confidence, samples, found.method)
    return OneThreshold(float(thresholds[best])), certificate


def _rate(constraint: Constraint) -> Rate:
    quantity = constraint.quantity
    assert isinstance(quantity, Weighted)
    assert isinstance(quantity.rate, Rate)
    return quantity.rate
