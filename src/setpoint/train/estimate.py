"""Intervals by the bootstrap: for what no exact test is known, an estimate and not a promise."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from setpoint.measure.area import mean_over
from setpoint.measure.count import count
from setpoint.measure.curve import curve
from setpoint.measure.rate import Gap
from setpoint.measure.sample import Sample
from setpoint.problem.evidence import is_testable
from setpoint.problem.point import Estimate
from setpoint.problem.problem import Problem

DRAWS = 2000
#: An area is computed anew in each draw: fewer draws of more samples, within this many samples in all.
_WORK, _FEWEST = 20_000_000, 200


def estimate(problem: Problem, thresholds: Tensor, sample: Sample, confidence: float) -> tuple[Estimate, ...]:
    """The objective at fixed thresholds, or the area, and each bound that cannot be tested exactly."""
    if problem.over is not None:
        return (_area(problem, sample, confidence),)
    whole = count(
        sample.scores, sample.labels, thresholds, weights=sample.weights,
        groups=sample.groups if thresholds.dim() == 2 else None, n_groups=sample.n_groups,
    )  # fmt: skip
    counts = whole.reshape(-1, 4).sum(0).numpy()
    size = len(sample.scores)
    # At a fixed threshold a sample is one of four kinds, so that drawing samples is drawing their numbers.
    draws = _random(size).multinomial(size, counts / counts.sum(), DRAWS)
    drawn, observed = torch.from_numpy(draws).double(), torch.from_numpy(counts).double()
    untested = [c.quantity for c in problem.constraints if not is_testable(c) and not isinstance(c.quantity, Gap)]
    method = f"bootstrap of {DRAWS} draws at a fixed threshold"
    return tuple(
        _interval(str(quantity), float(quantity(observed)), quantity(drawn), confidence, size, method)
        for quantity in dict.fromkeys([problem.objective, *untested])
    )


def _area(problem: Problem, sample: Sample, confidence: float) -> Estimate:
    assert problem.over is not None
    size, over = len(sample.scores), problem.over
    draws = min(DRAWS, max(_FEWEST, _WORK // size))
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    rng, chances = _random(size), np.full(size, 1 / size)
    values = []
    for _ in range(draws):
        drawn = weights * torch.from_numpy(rng.multinomial(size, chances))
        # A draw without one of the classes has no area.
        if 0 < float(drawn @ sample.labels) < float(drawn.sum()):
            values.append(_mean(problem, sample, drawn))
    name = f"{problem.objective} over {over.rate}"
    value = _mean(problem, sample, weights)
    return _interval(name, value, torch.tensor(values or [value]), confidence, size, f"bootstrap of {draws} draws")


def _mean(problem: Problem, sample: Sample, weights: Tensor) -> float:
    assert problem.over is not None
    return float(mean_over(curve(sample.scores, sample.labels, weights), problem.objective, problem.over))


def _random(size: int) -> np.random.Generator:
    """Always the same draws for so many samples, but not those that a user's own seed of 0 gives."""
    return np.random.default_rng((0x5E7, size))


def _interval(name: str, value: float, draws: Tensor, confidence: float, samples: int, method: str) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws.numpy(), [tail, 1 - tail]).tolist()
    return Estimate(name, value, min(low, value), max(high, value), confidence, samples, method)
