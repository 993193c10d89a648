"""The first rows of each list: a decision by the order of the scores in a list, without a threshold of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.measure.lists import Ordered, ranks_in_lists
from setpoint.measure.sample import Sample
from setpoint.measure.step import Step
from setpoint.on_use import torch
from setpoint.problem.thresholds import Thresholds

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class FirstOfList(Thresholds):
    """Flag the first k rows of each list, by their scores; rows with tied scores keep their order in the list.

    Args:
        k: the number of rows that are flagged in each list; a shorter list is flagged whole.
        depth: the number of first rows of each list that the counts tell apart, k or more.

    Example:
        >>> import torch
        >>> from setpoint.problem.first_of_list import FirstOfList
        >>> scores = torch.tensor([0.2, 0.9, 0.4, 0.1]).double()
        >>> FirstOfList(1, 1).decide(scores, ["a", "a", "b", "b"]).tolist()
        [0, 1, 1, 0]
    """

    noun: ClassVar[str] = "flagged"
    fails: ClassVar[str] = "these scores do not meet"
    k: int
    depth: int

    @property
    def plain(self) -> dict[str, float]:  # type: ignore[override]
        return {"first": self.k}

    def tensor(self) -> Tensor:
        return torch.tensor([self.k], dtype=torch.float64)

    def decided(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.int64]:
        """1 for each row that is among the first k of its list; `groups` are the lists."""
        return (ranks_in_lists(scores, groups) <= self.k).astype(np.int64)

    def count(self, sample: Sample) -> Tensor:
        """True counts, `(1, D, Q, 6)`, as `Ordered.counts` has them."""
        return Ordered(sample).counts(self.depth).unsqueeze(0)

    def soft_counts(self, sample: Sample, step: Step) -> Tensor:
        """Counts of the first k rows through a smooth step, `(1, 1, Q, 6)`."""
        return Ordered(sample).soft_counts(self.k, step).unsqueeze(0)

    def describe(self, form: str = "") -> str:
        return f"first {self.k}"

    def rule(self, form: str = "") -> str:
        return f"Flag the first {self.k} rows of each list"
