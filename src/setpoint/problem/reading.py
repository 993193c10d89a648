"""Scores, labels, weights and groups of a user as a sample, for problems of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from setpoint.errors import BadWeights, ShapeMismatch
from setpoint.measure.sample import Sample, check_sample
from setpoint.measure.values import stack_values
from setpoint.problem.problem import Problem

#: The key of the weights of the rows themselves, beside the values of columns.
ROWS = ""


def read_sample(problem: Problem, scores: Any, labels: Any, weights: Any = None, groups: Any = None) -> Sample:
    """A sample in float64 with everything that a problem counts.

    Args:
        problem: The problem.
        scores: One score per row.
        labels: 0 or 1 per row.
        weights: One weight per row; for asks that name columns, such as `recall weighted by amount`, the values of each
            column by its name, and the weights of the rows, if any, under the name "".
        groups: The group of each row, numbered.

    Raises:
        BadWeights: If a column that the ask names is missing, or holds values that cannot be counted.
    """
    values: Tensor | None = None
    if problem.columns:
        weights, values = _by_column(problem, weights)
    elif isinstance(weights, Mapping):
        raise BadWeights(f"'{problem}' names no column, so weights are one number per row, not a mapping")
    sample = check_sample(scores, labels, weights, groups).double()
    if values is not None and len(values) != len(sample.scores):
        raise ShapeMismatch(f"{len(sample.scores)} scores came with values of {len(values)} rows")
    return replace(sample, values=values)


def _by_column(problem: Problem, weights: Any) -> tuple[Any, Tensor]:
    if not isinstance(weights, Mapping):
        named = ", ".join(f"{column!r}: ..." for column in problem.columns)
        raise BadWeights(f"'{problem}' counts the values of columns; pass weights={{{named}}}, one value per row")
    missing = [column for column in problem.columns if column not in weights]
    if missing:
        there = ", ".join(map(repr, weights)) or "none"
        raise BadWeights(f"'{problem}' counts the values of {missing[0]!r}; pass them in weights= (there: {there})")
    return weights.get(ROWS), stack_values({column: weights[column] for column in problem.columns})


def weights_of(problem: Problem, sample: Sample) -> Any:
    """The weights of a sample as `read_sample` takes them, with the values of each column that the problem names."""
    if sample.values is None:
        return sample.weights
    columns = dict(zip(problem.columns, sample.values.unbind(1)))
    return columns if sample.weights is None else {ROWS: sample.weights, **columns}
