"""Shifts: a threshold per class, subtracted from the scores before the largest is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import ShapeMismatch
from setpoint.measure.classes import confusion, count_classes
from setpoint.measure.sample import Sample
from setpoint.measure.step import Step
from setpoint.on_use import torch
from setpoint.problem.legible import DIGITS, spelled
from setpoint.problem.thresholds import Thresholds

if TYPE_CHECKING:
    from torch import Tensor

#: Longer lists of shifts are described by their ends.
_MOST_NAMED = 6


@dataclass(frozen=True)
class Shifts(Thresholds):
    """One shift per class: a row is of the class with the largest `score - shift`, among tied classes the first.

    Args:
        names: the names of the classes, in the order of the columns of the scores.
        shifts: the shift of each class.
        limit: no shifts at all give a better objective than this on the rows that these were set on, where that is
            known.

    Example:
        >>> import torch
        >>> from setpoint.problem.shifts import Shifts
        >>> Shifts(("cat", "dog"), (0.0, 0.5)).decide(torch.tensor([[1.0, 1.2], [1.0, 1.6]]).double()).tolist()
        [0, 1]
    """

    noun: ClassVar[str] = "set of shifts"
    fails: ClassVar[str] = "no shifts were found that meet"  # The search may miss some.
    names: tuple[str, ...]
    shifts: tuple[float, ...]
    limit: float | None = field(default=None, compare=False)

    @property
    def plain(self) -> dict[str, float]:  # type: ignore[override]
        return dict(zip(self.names, self.shifts))

    def tensor(self) -> Tensor:
        return torch.tensor([self.shifts], dtype=torch.float64)

    def moved_to(self, values: Sequence[float]) -> Shifts:
        """The same classes with these shifts."""
        return Shifts(self.names, tuple(values))

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        """The number of the class of each row."""
        if scores.ndim != 2 or scores.shape[1] != len(self.shifts):
            expected = f"one column of scores per class, (n, {len(self.shifts)})"
            raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give {expected}")
        return np.asarray(np.argmax(scores - np.array(self.shifts), axis=-1))

    def written(self, decisions: NDArray[np.int64]) -> NDArray[Any]:
        """The names of the classes."""
        return np.array(self.names)[decisions]

    def count(self, sample: Sample) -> Tensor:
        """True counts of a sample, each class against the rest: `(1, K, 4)`."""
        return self._counts(sample, None)

    def kinds(self, sample: Sample) -> Tensor:
        """How many rows of each class are given each class, `(K * K,)`."""
        predicted = self.decide(sample.scores.double())
        return confusion(predicted, sample.labels.long(), len(self.names), sample.weights).flatten()

    def soft_counts(self, sample: Sample, step: Step) -> Tensor:
        """Counts of a sample through the softmax at the temperature of a step: `(1, K, 4)`."""
        return self._counts(sample, float(getattr(step, "temperature", 1.0)))

    def _counts(self, sample: Sample, temperature: float | None) -> Tensor:
        scores, shifts = sample.scores.double(), self.tensor().to(sample.scores.device)
        return count_classes(scores, sample.labels.long(), shifts, temperature, weights=sample.weights).unsqueeze(0)

    def enough_digits(self, scores: NDArray[np.float64]) -> int:
        decided = self.decided(scores)
        rounded = ((n, Shifts(self.names, tuple(float(spelled(one, n)) for one in self.shifts))) for n in DIGITS)
        return next((n for n, other in rounded if np.array_equal(other.decided(scores), decided)), 0)

    def describe(self, form: str = "{group} {value}") -> str:
        if not form or len(self.names) > _MOST_NAMED:
            return super().describe()
        return ", ".join(form.format(group=name, value=self.shown(value)) for name, value in self.plain.items())

    def rule(self, form: str = "{group} {value}") -> str:
        return f"Run at shifts {self.describe(form)}"
