"""Thresholds of several labels: each label of a row is decided by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import ShapeMismatch
from setpoint.measure.labels import count_labels
from setpoint.measure.sample import Sample
from setpoint.measure.step import Step
from setpoint.on_use import torch
from setpoint.problem.legible import digits_between
from setpoint.problem.thresholds import Thresholds

if TYPE_CHECKING:
    from torch import Tensor

#: Longer lists of thresholds are described by their ends.
_MOST_NAMED = 6


@dataclass(frozen=True)
class PerLabel(Thresholds):
    """One threshold per label: a row is given each label whose score is strictly above its threshold.

    Args:
        names: the names of the labels, in the order of the columns of the scores.
        cuts: the threshold of each label.

    Example:
        >>> import torch
        >>> from setpoint.problem.per_label import PerLabel
        >>> PerLabel(("spam", "toxic"), (0.5, 0.2)).decide(torch.tensor([[0.4, 0.4], [0.6, 0.1]]).double()).tolist()
        [[0, 1], [1, 0]]
    """

    noun: ClassVar[str] = "set of thresholds"
    names: tuple[str, ...]
    cuts: tuple[float, ...]

    @property
    def plain(self) -> dict[str, float]:  # type: ignore[override]
        return dict(zip(self.names, self.cuts))

    def tensor(self) -> Tensor:
        return torch.tensor([self.cuts], dtype=torch.float64)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        if scores.ndim != 2 or scores.shape[1] != len(self.cuts):
            expected = f"one column of scores per label, (n, {len(self.cuts)})"
            raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give {expected}")
        return (scores > np.array(self.cuts)).astype(np.int64)

    def count(self, sample: Sample) -> Tensor:
        """True counts of a sample per label, `(1, L, 4)`; entries that are not known are counted nowhere."""
        passed = self.passes(sample.scores.double()).double()
        return count_labels(passed, sample.labels, sample.weights).unsqueeze(0)

    def soft_counts(self, sample: Sample, step: Step) -> Tensor:
        """Counts of a sample through a smooth step: `(1, L, 4)`."""
        shares = step.above(sample.scores.double() - self.tensor().to(sample.scores.device))
        return count_labels(shares, sample.labels, sample.weights).unsqueeze(0)

    def enough_digits(self, scores: NDArray[np.float64]) -> int:
        each = [digits_between(cut, own) for cut, own in zip(self.cuts, scores.T)]
        return max(each) if all(each) else 0

    def describe(self, form: str = "{group} {value}") -> str:
        if not form or len(self.names) > _MOST_NAMED:
            return super().describe()
        return ", ".join(form.format(group=name, value=self.shown(value)) for name, value in self.plain.items())

    def rule(self, form: str = "{group} {value}") -> str:
        return f"Run at thresholds {self.describe(form)}"
