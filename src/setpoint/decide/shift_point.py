"""Shifts per class to run a model at: best for the objective, corrected for the bounds, with the true rates."""

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
    """The shifts at which to run a model of K classes, and the true rates there.

    A shift per class is subtracted from the scores before the largest is chosen.

    Attributes:
        problem: The problem that the shifts answer.
        shifts: One shift per class.
        objective: The true value of the objective on the data that the point was found on.
        rates: The true values of the objective and of every bounded rate on those data.
        feasible: Whether every bound holds there. Where ties make it False, the shifts break the bounds least.
        violation: How far the worst bound is broken; 0 or less when all hold.

    Example:
        >>> import setpoint as sp
        >>> scores, labels = [[3.0, 0, 0], [2, 1, 0], [1, 2, 0], [0, 0, 1]], [0, 1, 1, 2]
        >>> point = sp.classes.evaluate_shifts(sp.maximize(sp.classes.Macro(sp.recall)), scores, labels)
        >>> point.objective, point.predict(scores).tolist()
        (1.0, [0, 1, 1, 2])
    """

    problem: Problem
    shifts: tuple[float, ...]
    objective: float
    rates: Mapping[str, float]
    feasible: bool
    violation: float

    def predict(self, scores: Any) -> Any:
        """Predict the class of the largest score after the shifts; among tied classes the lowest.

        Args:
            scores: Scores `(n, K)`, as a tensor, an array or lists.

        Returns:
            Class numbers `(n,)`: a tensor for a tensor, otherwise a NumPy array.
        """
        values = scores.detach() if isinstance(scores, Tensor) else torch.as_tensor(scores)
        answer = predict_class(values.double(), torch.tensor(self.shifts, dtype=torch.float64))
        return answer if isinstance(scores, Tensor) else answer.numpy()

    def judge(self, scores: Any, labels: Any, *, weights: Any = None) -> ShiftPoint:
        """Evaluate the same shifts on other data.

        Args:
            scores: Scores `(n, K)`.
            labels: Class numbers `(n,)`.
            weights: Weights `(n,)`, if any.

        Returns:
            A point with the same shifts and the rates of those data.
        """
        sample = check_classes(scores, labels, weights, n_classes=len(self.shifts))
        return _point(self.problem, torch.tensor(self.shifts, dtype=torch.float64), sample)


def evaluate_shifts(problem: Problem, scores: Any, labels: Any, *, weights: Any = None) -> ShiftPoint:
    """Find the shifts per class that answer a problem on these data, by true counts.

    The bounds hold on these data; on new data they hold about half the time.

    Args:
        problem: A problem with an objective such as `Macro(sp.recall)` and bounds such as
            `OfClass(sp.flagged, 0) <= 0.3`.
        scores: Scores `(n, K)`, as a tensor, an array or lists.
        labels: Class numbers `(n,)`, from 0 to K - 1.
        weights: Weights `(n,)`, if any.

    Returns:
        The shifts, and the true rates there.

    Raises:
        BadProblem: If the problem is not one of many classes, or its coverages cannot be had together.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.minimize(sp.classes.Micro(sp.fnr), sp.classes.OfClass(sp.flagged, 0) <= 0.5)
        >>> point = sp.classes.evaluate_shifts(problem, [[2.0, 0], [1, 0], [0.5, 0], [0, 1]], [0, 0, 1, 1])
        >>> point.rates["coverage of class 0"], point.objective
        (0.5, 0.0)
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
    """The best shifts for the objective, and the correction for the bounds: `(K,)` each, in float64.

    `start` is an earlier answer for scores that have changed little since: one sweep of the search is then enough.
    With a `temperature` the bounds are met by soft coverages, otherwise by true ones.
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
