"""The shifts to run at: best for the objective, corrected for the bounds, with the true rates there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.coverage import coverage_bounds, soft_correction, true_correction
from setpoint.decide.shift_search import search_shifts
from setpoint.errors import BadProblem, BadScores
from setpoint.measure.classes import ClassQuantity, Micro, check_classes, count_classes, predict_class
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem


@dataclass(frozen=True)
class ShiftPoint:
    """Where to run a model of K classes, and what that brings.

    `shifts` are taken from the scores before the largest is chosen. `objective` and `rates` are true values on the
    data that the point was found on. `feasible` says whether every bound holds there; where ties make it False,
    the shifts are those that break the bounds least.
    """

    problem: Problem
    shifts: tuple[float, ...]
    objective: float
    rates: Mapping[str, float]
    feasible: bool
    violation: float

    def predict(self, scores: Any) -> Any:
        """The class of the largest score after the shifts, of tied ones the lowest; a tensor gives a tensor."""
        values = scores.detach() if isinstance(scores, Tensor) else torch.as_tensor(scores)
        answer = predict_class(values.double(), torch.tensor(self.shifts, dtype=torch.float64))
        return answer if isinstance(scores, Tensor) else answer.numpy()

    def judge(self, scores: Any, labels: Any, *, weights: Any = None) -> ShiftPoint:
        """The same shifts on other data."""
        sample = check_classes(scores, labels, weights, n_classes=len(self.shifts))
        return _point(self.problem, torch.tensor(self.shifts, dtype=torch.float64), sample)


def evaluate_shifts(problem: Problem, scores: Any, labels: Any, *, weights: Any = None) -> ShiftPoint:
    """The shifts to run at, set on these data by true counts: the bounds hold here, and elsewhere about as often
    as not.
    """
    check_class_problem(problem)
    sample = check_classes(scores, labels, weights)
    if float(sample.mass) <= 0:
        raise BadScores("no scores to judge; pass at least one sample")
    low, high = coverage_bounds(problem, sample.scores.shape[1])
    base, correction = find_shifts(problem, sample.detach(), low, high)
    return _point(problem, base + correction, sample)


def _point(problem: Problem, shifts: Tensor, sample: Sample) -> ShiftPoint:
    scores = sample.scores.detach().double()
    counts = count_classes(scores, sample.labels, shifts, weights=sample.weights).unsqueeze(0)
    quantities = dict.fromkeys([problem.objective, *(c.quantity for c in problem.constraints)])
    assert sample.weights is not None
    return ShiftPoint(
        problem=problem,
        shifts=tuple(shifts.tolist()),
        objective=float(problem.objective(counts)[0]),
        rates={str(quantity): float(quantity(counts)[0]) for quantity in quantities},
        feasible=problem.holds(counts, float(sample.weights.max())),
        violation=max(problem.violations(counts), default=0.0),
    )


def find_shifts(
    problem: Problem,
    sample: Sample,
    low: Tensor,
    high: Tensor,
    *,
    start: tuple[Tensor, Tensor] | None = None,
    temperature: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The shifts best for the objective, and what the bounds add to them: `(K,)` each, in float64.

    `start` is a former answer for scores that have changed little since: one sweep of the search is then enough.
    Soft coverages are met, at `temperature`, when there is one; true ones if not.
    """
    scores = sample.scores.detach().double()
    base, correction = (None, None) if start is None else start
    if isinstance(problem.objective, Micro):
        base = torch.zeros_like(low)
    else:
        base = search_shifts(problem, sample, base, sweeps=20 if start is None else 1)
    if temperature is not None:
        return base, soft_correction(scores - base, low, high, temperature, sample.weights, correction)
    return base, true_correction(scores - base, low, high, sample.weights, correction)


def check_class_problem(problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected a problem, got {problem!r}; make one with sp.minimize or sp.maximize")
    if not isinstance(problem.objective, ClassQuantity) or problem.over is not None:
        raise BadProblem(f"many classes need an objective such as Micro(sp.fnr) or Macro(sp.recall), not '{problem}'")
