"""The rows of a step as arrays: how far each of them passes its thresholds under the sigmoid step.

A step of a small model counts few rows, and the overhead of each operation on a tensor costs more than the rows do. So
rows are counted in NumPy, on the memory of the tensors, and slopes are written out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.measure.sample import Sample

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])


class CountedRows:
    """The scores and labels of a sample, and how far they pass, once they have been counted.

    Attributes:
        passed: How far each row passes, the last axis being that of the rows; None before they have been counted.
        slopes: The slope of that per unit of temperature; None if nobody asked for it.
        positives: The weight of the positives.
        negatives: The weight of the negatives.
    """

    positives: float
    negatives: float

    def __init__(self, sample: Sample) -> None:
        self.scores, self.labels = sample.scores.detach().numpy(), sample.labels.numpy()
        self.passed: Array | None = None
        self.slopes: Array | None = None

    @property
    def mass(self) -> float:
        return self.positives + self.negatives

    @property
    def has_both_classes(self) -> bool:
        return self.positives > 0 and self.negatives > 0

    def take_from(self, rows: CountedRows, place: slice | None) -> None:
        """Take over how far these rows pass from others, among which they stand at `place`, if they do."""
        if place is not None:
            self.passed = None if rows.passed is None else rows.passed[..., place]
            self.slopes = None if rows.slopes is None else rows.slopes[..., place]

    def sides(self, weights: Array) -> Array:
        """The weight of each row as a positive and as a negative, `(2, n)`."""
        weighed: Array = np.stack([self.labels, 1 - self.labels]) * weights
        return weighed


def overflows(step: F) -> F:
    """Take numbers too large to count with without a word: a loss that is not finite is refused in one sentence."""

    @functools.wraps(step)
    def quiet(*given: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return step(*given)

    return cast(F, quiet)


def passing(scores: Array, levels: Array, heat: float, out: Array) -> Array:
    """How far scores pass the levels under the sigmoid step."""
    np.subtract(scores, levels, out=out)
    out *= heat
    torch.from_numpy(out).sigmoid_()
    return out


def slope_of(passed: Array, out: Array) -> Array:
    """The slope of the sigmoid step per unit of temperature."""
    np.multiply(passed, passed, out=out)
    return np.subtract(passed, out, out=out)
