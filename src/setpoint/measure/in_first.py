"""Rates among the first k rows of each list, `precision in the first 5`: the mean over lists.

Counts are `(..., D, Q, 4)` for Q lists. Entry d - 1 of the third-last dimension has the counts when the first d rows of
each list are flagged, for d = 1 ... D, so that the four counts of a list add up to its length. As in `ranking`, a place
that a short list leaves empty is a miss, and recall is 0 in a list without positives; so is the fnr.

Counts `(..., D, Q, 6)`, as `measure/lists.py` makes them, have two numbers more: the probability that a list has a
positive among its first d rows, which is 0 or 1 unless scores are tied, and the weight of the list. Their D ends with
the longest list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.errors import BadProblem, ShapeMismatch
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Metric, Rate, fnr, precision, recall
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: The kind of question about lists.
LISTS = "lists"
_HIT, _WEIGHT = 4, 5

hit = Metric("hit", lambda tp, fp, fn, tn: tp.clamp(max=1))
"""Whether a list has a positive among its first rows, 1 or 0; for soft counts the number of positives, up to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class InFirst(Quantity):
    """A rate among the first k rows of each list, as the mean over lists.

    Precision is the number of positives among the first k, divided by k also where a list has fewer rows. Recall and
    the fnr of a list without positives are 0.

    Args:
        rate: `sp.precision`, `sp.recall`, `sp.fnr`, an F-score or `sp.rates.hit`.
        k: The number of rows from the top of each list.

    Raises:
        BadProblem: If the rate has no meaning in lists, or k is no whole number from 1 up.

    Example:
        >>> import setpoint as sp
        >>> print(sp.maximize(sp.rates.InFirst(sp.recall, 20), sp.rates.InFirst(sp.precision, 5) >= 0.3))
        maximize recall in the first 20 where precision in the first 5 >= 30%
    """

    kind = LISTS
    rate: Rate | Metric
    k: int

    def __post_init__(self) -> None:
        if not _fits(self.rate):
            raise BadProblem(
                f"lists have precision, recall, fnr, an F-score or hit in their first rows, but got {self.rate!r}"
            )
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise BadProblem(f"{self.rate} in the first rows needs a whole number of rows from 1 up, got {self.k!r}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.rate} in the first {self.k}"

    def __call__(self, counts: Tensor) -> Tensor:
        values, weights = self.of_each(counts), self._weights(counts)
        return (weights * values).sum(-1) / weights.sum(-1).clamp(min=1e-30)

    def of_each(self, counts: Tensor) -> Tensor:
        """The value of each list, `(..., Q)`."""
        if counts.shape[-1] > 4 and bool(self.rate == hit):
            return counts[..., min(self.k, counts.shape[-3]) - 1, :, _HIT]
        return self.rate(self._first(counts))

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        """The change by one row in the list where it is largest."""
        first = self._first(counts)
        one = self.rate.resolution(first, 1.0) if isinstance(self.rate, Rate) else torch.ones_like(first[..., 0])
        weights = self._weights(counts)
        return (weights * one).amax(-1) / weights.sum(-1) if first.shape[-2] else one.sum(-1)

    def _weights(self, counts: Tensor) -> Tensor:
        """The weight of each list, `(..., Q)`."""
        return counts[..., 0, :, _WEIGHT] if counts.shape[-1] > 4 else torch.ones_like(counts[..., 0, :, 0])

    def _first(self, counts: Tensor) -> Tensor:
        """The counts of each list, `(..., Q, 4)`, when k places are flagged, with empty places as false alarms."""
        deep = counts.dim() >= 3 and (counts.shape[-3] >= self.k or counts.shape[-1] > 4)
        if not deep:
            raise ShapeMismatch(f"{self} needs counts (depths, lists, 4) of {self.k} depths, got {tuple(counts.shape)}")
        tp, _, fn, tn = counts[..., min(self.k, counts.shape[-3]) - 1, :, :4].unbind(-1)
        return torch.stack([tp, self.k - tp, fn, tn], dim=-1)

    def adopt(self, plain: Quantity) -> Quantity:
        if isinstance(plain, InFirst):
            return plain
        if not _fits(plain):
            raise BadProblem(
                f"{plain} has no meaning in lists; beside {self} bound precision in the first 5, or recall"
            )
        raise BadProblem(f"say in how many rows of each list: {plain} in the first {self.k}")

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(), self.k)

    @property
    def is_share(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"InFirst({self.name})"


def _fits(rate: object) -> bool:
    """Whether a rate has a meaning among the first rows of a list."""
    if isinstance(rate, Rate) and rate.name.startswith("f_score("):
        return True
    return isinstance(rate, Rate | Metric) and any(bool(rate == one) for one in (precision, recall, fnr, hit))
