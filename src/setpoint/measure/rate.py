"""Rates and metrics: functions of the confusion counts (tp, fp, fn, tn)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from setpoint.errors import BadProblem
from setpoint.measure.constraint import FlaggedRows, Quantity, percent
from setpoint.measure.looks import constant_like
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

Four = tuple[float, ...]


def share(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, and 0 where the whole is empty, also in the gradient."""
    empty = whole <= 0
    return torch.where(empty, 0.0, part / whole.masked_fill(empty, 1.0))


def weigh(counts: Tensor, weights: Four) -> Tensor:
    """The counts `(..., 4)`, each times its weight, added up."""
    terms = [one if weight == 1 else weight * one for weight, one in zip(weights, counts.unbind(-1)) if weight]
    return reduce(add, terms) if terms else torch.zeros_like(counts[..., 0])


def spelled(name: str) -> str:
    """The name of a column or class as an ask has it: as it is if it is a plain word, else as a JSON string."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else json.dumps(name)


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Quantity):
    """A share of the confusion counts: `part` divided by `whole`.

    A rate compared with a number is a constraint. A share of nothing (`whole` is 0) is 0, never NaN.

    Args:
        name: The name of the rate in an ask and in reports.
        part: The weights of (tp, fp, fn, tn) in the numerator.
        whole: The weights of (tp, fp, fn, tn) in the denominator.

    Example:
        >>> import setpoint as sp, torch
        >>> wrongly = sp.Rate("wrongly", part=(0, 1, 0, 0), whole=(1, 1, 1, 1))
        >>> wrongly(torch.tensor([10.0, 5.0, 10.0, 75.0]))
        tensor(0.0500)
    """

    name: str
    part: Four
    whole: Four

    def __call__(self, counts: Tensor) -> Tensor:
        return share(weigh(counts, self.part), self.size(counts))

    def size(self, counts: Tensor) -> Tensor:
        """The whole that the rate is a share of."""
        return weigh(counts, self.whole)

    def slope(self, counts: Tensor) -> Tensor:
        """The derivative by each count, `(..., 4)`; 0 where the whole is empty."""
        return self.with_slope(counts)[1]

    def with_slope(self, counts: Tensor, totals: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The rate and its derivative by each count.

        `totals` are the counts when every sample passes, `(4,)`. They give the size of a class where the soft counts
        do not, because above and below of the step do not add up to 1.
        """
        part, whole = constant_like(self.part, counts), constant_like(self.whole, counts)
        if totals is not None and self.has_fixed_whole:
            size = self.size(totals)
            return share(weigh(counts, self.part), size), share(part.expand_as(counts), size)
        size = self.size(counts)
        value = share(weigh(counts, self.part), size)
        return value, share(part - value.unsqueeze(-1) * whole, size.unsqueeze(-1))

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        return share(torch.ones_like(counts[..., 0]) * heaviest, self.size(counts))

    def identity(self) -> tuple[object, ...]:
        return (self.name, self.part, self.whole)

    @property
    def is_share(self) -> bool:
        return all(0 <= p <= w for p, w in zip(self.part, self.whole))

    @property
    def has_fixed_whole(self) -> bool:
        """Whether the denominator is the same at every threshold (a class, or everything)."""
        tp, fp, fn, tn = self.whole
        return tp == fn and fp == tn

    @property
    def direction(self) -> int:
        """+1 if the rate can only rise as more is flagged, -1 if it can only fall, 0 if it can do both."""
        if not self.has_fixed_whole:
            return 0
        tp, fp, fn, tn = self.part
        moves = (tp - fn, fp - tn)
        if min(moves) >= 0 and max(moves) > 0:
            return 1
        return -1 if max(moves) <= 0 and min(moves) < 0 else 0

    def between(self, low: float, high: float, points: int = 10) -> Range:
        """A range of this rate over which an objective is averaged: a full or partial area.

        Args:
            low: The lower end, a share.
            high: The upper end, a share.
            points: The number of thresholds that training looks at; the area itself is exact.

        Returns:
            The range, for `over=` of `sp.minimize` and `sp.maximize`.

        Example:
            >>> import setpoint as sp
            >>> print(sp.maximize(sp.recall, over=sp.fpr.between(0, 0.05)))
            maximize recall over fpr in [0%, 5%] with 10 points
        """
        return Range(self, low, high, points)

    @property
    def rows(self) -> FlaggedRows:
        """The number of flagged rows, for bounds such as `sp.flagged.rows == 100`; only `flagged` has it."""
        if self.identity() != flagged.identity():
            raise BadProblem(f"{self} is not counted in rows; only flagged is, as in sp.flagged.rows == 100")
        return FlaggedRows()

    def gap(self, group: str) -> Gap:
        """The largest difference of this rate between any two groups of a column.

        Args:
            group: The name of the column of groups.

        Returns:
            A quantity to bound from above, or to set to 0.

        Example:
            >>> import setpoint as sp
            >>> print(sp.minimize(sp.fnr, sp.recall.gap("sex") <= 0.05))
            minimize fnr where recall.gap(sex) <= 5%
        """
        return Gap(self, group)

    def __repr__(self) -> str:
        return f"Rate({self.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Metric(Quantity):
    """Any function of the four counts that torch can differentiate.

    Args:
        name: The name of the metric in an ask and in reports.
        function: A function of tp, fp, fn and tn, four tensors of one shape, made of torch operations.

    Example:
        >>> import setpoint as sp, torch
        >>> cost = sp.Metric("cost", lambda tp, fp, fn, tn: fp + 5 * fn)
        >>> float(cost(torch.tensor([30.0, 5.0, 10.0, 90.0])))
        55.0
    """

    name: str
    function: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

    def __call__(self, counts: Tensor) -> Tensor:
        return self.function(*counts.unbind(-1))

    def identity(self) -> tuple[object, ...]:
        return (self.name, self.function)

    def __repr__(self) -> str:
        return f"Metric({self.name})"


@dataclass(frozen=True, eq=False, repr=False)
class Gap(Quantity):
    """The largest difference of a rate between any two groups, from counts per group `(..., G, 4)`.

    Args:
        rate: The rate that is compared.
        group: The name of the column that holds the groups.

    Raises:
        BadProblem: If the name is empty.

    Example:
        >>> import setpoint as sp
        >>> print(sp.recall.gap("site") <= 0.02)
        recall.gap(site) <= 2%
    """

    rate: Rate
    group: str

    def __post_init__(self) -> None:
        if not isinstance(self.group, str) or not self.group:
            raise BadProblem(f"the gap of {self.rate} needs the name of a column of groups, got {self.group!r}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.rate.name}.gap({spelled(self.group)})"

    def __call__(self, counts: Tensor) -> Tensor:
        values = self.rate(counts)
        empty = self.rate.size(counts) <= 0
        highest = values.masked_fill(empty, -torch.inf).amax(-1)
        lowest = values.masked_fill(empty, torch.inf).amin(-1)
        return torch.where(empty.all(-1), torch.zeros_like(highest), highest - lowest)

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        """The change by one sample in the smallest group, where it is largest."""
        return self.rate.resolution(counts, heaviest).amax(-1)

    def identity(self) -> tuple[object, ...]:
        return (self.rate.identity(), self.group)

    @property
    def is_share(self) -> bool:
        return self.rate.is_share

    def __repr__(self) -> str:
        return f"Gap({self.name})"


def rate_within(quantity: Quantity) -> Rate:
    """The rate that a gap compares between groups or that is one of classes; otherwise the quantity, a rate itself."""
    rate = quantity if isinstance(quantity, Rate) else getattr(quantity, "rate", quantity)
    assert isinstance(rate, Rate)
    return rate


@dataclass(frozen=True)
class Range:
    """A range of a rate, over which an objective is averaged.

    Args:
        rate: The rate, one that only rises or only falls with the threshold.
        low: The lower end.
        high: The upper end, at most 1.
        points: The number of points of the range that training looks at.

    Raises:
        BadProblem: If the rate can both rise and fall, the range is empty, or there is no point.

    Example:
        >>> import setpoint as sp
        >>> print(sp.maximize(sp.recall, over=sp.fpr.between(0, 0.1)))
        maximize recall over fpr in [0%, 10%] with 10 points
    """

    rate: Rate
    low: float
    high: float
    points: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Rate) or self.rate.direction == 0:
            raise BadProblem(
                f"an area needs a rate that only rises or only falls with the threshold "
                f"(fpr, fnr, recall, tnr, flagged), but got {self.rate}"
            )
        if not 0 <= self.low < self.high <= 1:
            raise BadProblem(f"the range {self.low} ... {self.high} of {self.rate} must rise and lie within 0 ... 1")
        if isinstance(self.points, bool) or not isinstance(self.points, int) or self.points < 1:
            raise BadProblem(f"the range of {self.rate} needs at least one whole point, got {self.points!r}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def __str__(self) -> str:
        return f"{self.rate} in [{percent(self.low)}, {percent(self.high)}] with {self.points} points"

    @property
    def bounds(self) -> list[float]:
        """The midpoints of `points` equal bins: a bound of exactly 0 or 1 has no smooth root."""
        width = (self.high - self.low) / self.points
        return [self.low + width * (i + 0.5) for i in range(self.points)]


fpr = Rate("fpr", part=(0, 1, 0, 0), whole=(0, 1, 0, 1))
"""The false positive rate, fp / (fp + tn): the share of negatives that are flagged."""
fnr = Rate("fnr", part=(0, 0, 1, 0), whole=(1, 0, 1, 0))
"""The false negative rate, fn / (tp + fn): the share of positives that are missed."""
recall = Rate("recall", part=(1, 0, 0, 0), whole=(1, 0, 1, 0))
"""The true positive rate, tp / (tp + fn): the share of positives that are found.

An ask may also call it `tpr` or `sensitivity`.
"""
tnr = Rate("tnr", part=(0, 0, 0, 1), whole=(0, 1, 0, 1))
"""The true negative rate, tn / (fp + tn): the share of negatives that are not flagged.

An ask may also call it `specificity`.
"""
precision = Rate("precision", part=(1, 0, 0, 0), whole=(1, 1, 0, 0))
"""Precision, tp / (tp + fp): the share of flagged samples that are positive; 0 when nothing is flagged."""
npv = Rate("npv", part=(0, 0, 0, 1), whole=(0, 0, 1, 1))
"""The negative predictive value, tn / (fn + tn): of samples not flagged, the share that is negative."""
fdr = Rate("fdr", part=(0, 1, 0, 0), whole=(1, 1, 0, 0))
"""The false discovery rate, fp / (tp + fp): of flagged samples, the share that is negative; 0 if none is flagged."""
false_omission = Rate("for", part=(0, 0, 1, 0), whole=(0, 0, 1, 1))
"""The false omission rate, fn / (fn + tn): of samples not flagged, the share that is positive. In an ask: `for`."""
flagged = Rate("flagged", part=(1, 1, 0, 0), whole=(1, 1, 1, 1))
"""The flagged share, (tp + fp) / (tp + fp + fn + tn); `sp.flagged.rows` counts rows instead."""
accuracy = Rate("accuracy", part=(1, 0, 0, 1), whole=(1, 1, 1, 1))
"""Accuracy, (tp + tn) / (tp + fp + fn + tn): the share of samples that are decided correctly."""
error = Rate("error", part=(0, 1, 1, 0), whole=(1, 1, 1, 1))
"""The error rate, (fp + fn) / (tp + fp + fn + tn): the share of samples that are decided wrongly."""
jaccard = Rate("jaccard", part=(1, 0, 0, 0), whole=(1, 1, 1, 0))
"""The Jaccard index, tp / (tp + fp + fn): intersection over union. An ask may also call it `iou`."""


def f_score(beta: float = 1.0) -> Rate:
    """The F-score, (1 + b^2) tp / ((1 + b^2) tp + b^2 fn + fp) with b = `beta`.

    Args:
        beta: How many times as much recall counts as precision, from 1e-6 to 1e6.

    Returns:
        A rate; in an ask `f_score(2)`, or `f1` for a beta of 1.

    Raises:
        BadProblem: If beta lies outside its range.

    Example:
        >>> import setpoint as sp, torch
        >>> float(sp.f_score(1)(torch.tensor([30.0, 10.0, 10.0, 50.0])))
        0.75
    """
    if not 1e-6 <= beta <= 1e6:
        raise BadProblem(f"f_score needs a beta above 0, from 1e-6 to 1e6, got {beta:.6g}")
    squared = float(beta) ** 2
    name = f"f_score({repr(float(beta)).removesuffix('.0')})"
    return Rate(name, part=(1 + squared, 0, 0, 0), whole=(1 + squared, 1, squared, 0))


def _root(x: Tensor) -> Tensor:
    """A square root whose slope at 0 is 0 rather than infinite."""
    zero = x <= 0
    return torch.where(zero, torch.zeros_like(x), torch.where(zero, 1, x).sqrt())


def _g_mean(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    return _root(share(tp, tp + fn) * share(tn, tn + fp))


def _mcc(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    # The four roots are taken one by one: their product overflows no sooner than a count does.
    whole = _root(tp + fp) * _root(tp + fn) * _root(tn + fp) * _root(tn + fn)
    return share(tp * tn - fp * fn, whole)


def _kappa(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    return share(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def _balanced_accuracy(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    return (share(tp, tp + fn) + share(tn, tn + fp)) / 2


def _lift(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    return share(share(tp, tp + fp) * (tp + fp + fn + tn), tp + fn)


g_mean = Metric("g_mean", _g_mean)
"""The geometric mean of recall and tnr, from 0 to 1."""
mcc = Metric("mcc", _mcc)
"""Matthews' correlation between decisions and labels, from -1 to 1."""
kappa = Metric("kappa", _kappa)
"""Cohen's kappa: the agreement of decisions with labels beyond the agreement by chance, from -1 to 1."""

balanced_accuracy = Metric("balanced accuracy", _balanced_accuracy)
"""The mean of recall and tnr, from 0 to 1."""
lift = Metric("lift", _lift)
"""Precision over the share of positives: how many times as often a flagged sample is positive as any sample is."""

#: The rates and metrics that lie between -1 and 1.
CATALOGUE: dict[str, Rate | Metric] = {
    quantity.name: quantity
    for quantity in (
        fpr, fnr, recall, tnr, precision, npv, fdr, false_omission, flagged, accuracy, error, jaccard, g_mean, mcc,
        kappa, balanced_accuracy,
    )
}  # fmt: skip
#: All rates and metrics that an ask has a name for.
NAMED: dict[str, Rate | Metric] = {**CATALOGUE, lift.name: lift}
