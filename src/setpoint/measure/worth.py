"""Rates and costs that count the values of a column: `recall weighted by amount`, `cost(miss=amount, alarm=5)`.

Counts are `(..., W, 4)`. Row 0 counts samples, each with its weight. Row w counts the same samples, each times its
value in the w-th column, so that tp there is the worth of all positives that are found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING

from setpoint.errors import BadProblem, ShapeMismatch
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Metric, Rate, share, spelled
from setpoint.on_use import is_tensor, torch

if TYPE_CHECKING:
    from torch import Tensor

WORTH = "worth"
#: A miss or an alarm costs no more: sums of costs stay finite.
MOST = 1e12


class Worth(Quantity, ABC):
    """A function of the counts of samples and of their values, `(..., W, 4) -> (...)`.

    By itself a quantity has its own columns in the order in which it names them. A problem gives all its quantities
    the columns of the whole problem, by `among`.
    """

    kind = WORTH
    #: The columns of the counts, one for each row but row 0; empty for the own columns.
    order: tuple[str, ...]

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns whose values the quantity counts."""

    @abstractmethod
    def among(self, columns: tuple[str, ...]) -> Worth:
        """The same quantity, for counts of these columns."""

    def row(self, counts: Tensor, column: str | None) -> Tensor:
        """The counts of one column, `(..., 4)`; of the samples themselves for None."""
        rows = 1 + len(self.order or self.columns)
        if counts.dim() < 2 or counts.shape[-2] < rows:
            raise ShapeMismatch(
                f"{self} needs counts (..., {rows}, 4), of rows and of values, got {tuple(counts.shape)}"
            )
        return counts[..., self._place(column), :]

    def _place(self, column: str | None) -> int:
        return 0 if column is None else 1 + (self.order or self.columns).index(column)

    def heaviest(self, heaviest: float | Tensor, column: str | None) -> float | Tensor:
        """The largest share of a row that one sample can have: that of the column where there is one per row."""
        one_each = is_tensor(heaviest) and heaviest.dim() > 0
        return heaviest[..., self._place(column)] if one_each and is_tensor(heaviest) else heaviest

    def adopt(self, plain: Quantity) -> Quantity:
        if isinstance(plain, Worth):
            return plain
        if not isinstance(plain, Rate | Metric):
            raise BadProblem(f"{plain} does not go together with {self}; bound a rate such as flagged <= 1% instead")
        return Weighted(plain, None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Weighted(Worth):
    """A rate in which every sample counts as much as its value in a column.

    `Weighted(sp.recall, "amount")` is the share of the positives' whole amount that is found. Values are numbers
    from 0 up.

    Args:
        rate: A rate or metric such as `sp.recall`.
        column: The name of the column; None where every sample counts alike, as in a plain rate beside weighted ones.
        order: The columns of the counts; a problem sets it.

    Raises:
        BadProblem: If the rate is none, or the name is empty.

    Example:
        >>> import setpoint as sp
        >>> print(sp.maximize(sp.rates.Weighted(sp.recall, "amount"), sp.fpr <= 0.01))
        maximize recall weighted by amount where fpr <= 1%
    """

    rate: Rate | Metric
    column: str | None
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Rate | Metric):
            raise BadProblem(f"Weighted is made of a rate such as sp.recall, but got {self.rate!r}")
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise BadProblem(f"{self.rate} is weighted by the name of a column, but got {self.column!r}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.rate) if self.column is None else f"{self.rate} weighted by {spelled(self.column)}"

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def among(self, columns: tuple[str, ...]) -> Weighted:
        return replace(self, order=columns)

    def __call__(self, counts: Tensor) -> Tensor:
        return self.rate(self.row(counts, self.column))

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        return self.rate.resolution(self.row(counts, self.column), self.heaviest(heaviest, self.column))

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(), self.column)

    @property
    def is_share(self) -> bool:
        return self.rate.is_share


def plain_of(quantity: Quantity) -> Quantity:
    """The plain rate that stands beside quantities of values; any other quantity as it is."""
    return quantity.rate if isinstance(quantity, Weighted) and quantity.column is None else quantity


@dataclass(frozen=True, eq=False, repr=False)
class Cost(Worth):
    """The mean cost per sample, where the cost of a miss or of a false alarm is the value of a column.

    `sp.cost` makes it.

    Args:
        miss: The cost of a positive that is not flagged, a number or the name of a column.
        alarm: The cost of a negative that is flagged, a number or the name of a column.
        order: The columns of the counts; a problem sets it.

    Raises:
        BadProblem: If a cost is below 0 or not finite, or both are numbers.

    Example:
        >>> import setpoint as sp
        >>> print(sp.minimize(sp.cost(miss="amount", alarm=5)))
        minimize cost(miss=amount, alarm=5)
    """

    miss: float | str
    alarm: float | str
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("miss", "alarm"):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        if not self.columns:
            raise BadProblem("Cost needs the name of a column; a cost of numbers alone is the rate that sp.cost makes")

    @property
    def name(self) -> str:  # type: ignore[override]
        return _name(self.miss, self.alarm)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part for part in (self.miss, self.alarm) if isinstance(part, str)))

    def among(self, columns: tuple[str, ...]) -> Cost:
        return replace(self, order=columns)

    def __call__(self, counts: Tensor) -> Tensor:
        spent = self._spent(self.miss, counts, 2) + self._spent(self.alarm, counts, 1)
        return share(spent, self.row(counts, None).sum(-1))

    def _spent(self, cost: float | str, counts: Tensor, place: int) -> Tensor:
        """The cost of all mistakes of one kind, those at a place of (tp, fp, fn, tn)."""
        if isinstance(cost, str):
            return self.row(counts, cost)[..., place]
        return cost * self.row(counts, None)[..., place]

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        """The cost of the dearest sample, as a share of all samples."""
        whole = self.row(counts, None).sum(-1)
        each = [self._dearest(cost, heaviest) * torch.ones_like(whole) for cost in (self.miss, self.alarm)]
        return share(torch.stack(each).amax(0), whole)

    def _dearest(self, cost: float | str, heaviest: float | Tensor) -> float | Tensor:
        return self.heaviest(heaviest, cost) if isinstance(cost, str) else cost * self.heaviest(heaviest, None)

    def identity(self) -> tuple[object, ...]:
        return (self.miss, self.alarm)


def cost(*, miss: float | str, alarm: float | str) -> Rate | Cost:
    """The mean cost per sample of the two kinds of mistakes.

    Args:
        miss: The cost of a positive that is not flagged: a number, or the name of a column that has one per row.
        alarm: The cost of a negative that is flagged, likewise.

    Returns:
        A rate if both are numbers, else a quantity whose counts hold the values of the columns too.

    Raises:
        BadProblem: If a cost is below 0 or above 1e12, or both are 0.

    Example:
        >>> import setpoint as sp, torch
        >>> float(sp.cost(miss=5, alarm=1)(torch.tensor([30.0, 5.0, 10.0, 55.0])))
        0.550000011920929
        >>> print(sp.minimize(sp.cost(miss="amount", alarm=5), sp.fpr <= 0.01))
        minimize cost(miss=amount, alarm=5) where fpr <= 1%
    """
    miss, alarm = _checked("miss", miss), _checked("alarm", alarm)
    if isinstance(miss, str) or isinstance(alarm, str):
        return Cost(miss, alarm)
    if not miss and not alarm:
        raise BadProblem("a cost of 0 for misses and for alarms asks for nothing; give one of them a cost above 0")
    return Rate(_name(miss, alarm), part=(0, alarm, miss, 0), whole=(1, 1, 1, 1))


def _checked(name: str, cost: float | str) -> float | str:
    if isinstance(cost, str) and cost:
        return cost
    if isinstance(cost, bool) or not isinstance(cost, Real) or not 0 <= cost <= MOST:
        raise BadProblem(f"the cost of {name} is a number from 0 to 1e12 or the name of a column, but got {cost!r}")
    return float(cost)


def _name(miss: float | str, alarm: float | str) -> str:
    parts = [spelled(part) if isinstance(part, str) else repr(part).removesuffix(".0") for part in (miss, alarm)]
    return f"cost(miss={parts[0]}, alarm={parts[1]})"
