"""The curve: counts at every threshold that makes a difference, from one sort and one cumulative sum.

Areas are exact means of an objective over a range of another rate. If the objective is a share of a fixed whole
(recall, fpr, ...), both rates are linear between neighbouring cuts and the trapezoid is exact; for the full ROC area
it is the share of correctly ordered pairs, ties counted half. Otherwise (precision, ...) the value at level r is that
of the first cut whose rate reaches r: a step function, whose full area over recall is the average precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from setpoint.errors import MissingClass
from setpoint.measure.constraint import Quantity
from setpoint.measure.rate import Range, Rate, fpr, precision, recall
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Curve:
    """All cuts of a set of scores, from flagging nothing to flagging everything.

    Cut k flags the k highest *distinct* scores, so there are K + 1 cuts. The form of fixed length has one cut per
    score instead: a cut that would part a tie, or flag a sample of weight 0, repeats the cut before it.

    Attributes:
        values: The K distinct scores, the highest first.
        tp: The weight of the positives that pass at each cut, float64.
        fp: The weight of the negatives that pass at each cut, float64.
        places: The number of the cut that each cut repeats, in the form of fixed length; None otherwise.

    Example:
        >>> import torch
        >>> from setpoint.measure.curve import curve
        >>> cuts = curve(torch.tensor([3.0, 2.0, 2.0]), torch.tensor([1, 0, 1]))
        >>> cuts.tp.tolist(), cuts.fp.tolist(), cuts.thresholds(torch.tensor([1])).tolist()
        ([0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [2.5])
    """

    values: Tensor
    tp: Tensor
    fp: Tensor
    places: Tensor | None = field(default=None, kw_only=True)

    @property
    def tops(self) -> Tensor:
        """The highest score of each value: here the value itself; a tally has ranges of scores."""
        return self.values

    @property
    def counts(self) -> Tensor:
        """The counts at each cut, `(K + 1, 4)`."""
        return torch.stack([self.tp, self.fp, self.tp[-1] - self.tp, self.fp[-1] - self.fp], dim=-1)

    def thresholds(self, cuts: Tensor) -> Tensor:
        """The threshold of each cut: half way to the next score below, so that neither neighbour is close.

        Where floating point has no number between the two, the lower score itself, which does not pass.
        """
        last = len(self.values) - 1
        upper = self.values[(cuts - 1).clamp(min=0)]
        lower = self.tops[cuts.clamp(max=last)]
        middle = upper / 2 + lower / 2
        between = torch.where((middle < upper) & (middle > lower), middle, lower)
        beyond_all = torch.nextafter(upper, torch.full_like(upper, -torch.inf))
        nothing_below = (cuts > last) | (lower == -torch.inf)
        return torch.where(nothing_below, beyond_all, torch.where(cuts == 0, self.tops[0], between))

    def beside(self, cut: Tensor) -> Tensor:
        """A cut and its neighbours, `(3,)`; at either end itself again."""
        last = len(self.values)
        if self.places is None:
            return torch.stack([(cut - 1).clamp(min=0), cut, (cut + 1).clamp(max=last)])
        after = torch.searchsorted(self.places, cut.view(1), right=True).squeeze(0).clamp(max=last)
        return self.places[torch.stack([(cut - 1).clamp(min=0), cut, after])]


@dataclass(frozen=True)
class RangedCurve(Curve):
    """Cuts between ranges of scores: `values` are the lowest, `highest` the highest that each range can hold."""

    highest: Tensor

    @property
    def tops(self) -> Tensor:
        return self.highest


def curve_of_top(scores: Tensor, labels: Tensor, edge: float) -> RangedCurve:
    """The cuts above the scores below `edge`, which count as one range: only the others are sorted."""
    values, classes = scores.detach().numpy(), labels.numpy()
    above = values >= edge
    rest = values[~above]
    top = curve(torch.from_numpy(values[above]), torch.from_numpy(classes[above]))
    positives = float(np.count_nonzero(classes))
    ends = (float(rest.min()), float(rest.max()), positives, len(values) - positives)
    parts = zip((top.values, top.values, top.tp, top.fp), ends)
    lowest, highest, tp, fp = (torch.cat([part, part.new_full((1,), end)]) for part, end in parts)
    return RangedCurve(lowest, tp, fp, highest)


def curve(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Curve:
    """Find the counts at all cuts; tied scores pass together, samples of weight 0 are ignored.

    Args:
        scores: One score per sample, `(n,)`.
        labels: 0 or 1 per sample, `(n,)`.
        weights: One weight per sample; all 1 if None.

    Returns:
        The curve, without gradient.

    Example:
        >>> import torch
        >>> from setpoint.measure.curve import curve
        >>> curve(torch.tensor([3.0, 1.0]), torch.tensor([1, 0])).counts
        tensor([[0., 0., 1., 1.],
                [1., 0., 0., 1.],
                [1., 1., 0., 0.]], dtype=torch.float64)
    """
    scores = scores.detach()
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    if weights is not None:
        present = weights > 0
        if not bool(present.all()):
            scores, labels, weights = scores[present], labels[present], weights[present]
        weights = weights.detach().double()
    values, order = torch.sort(scores, descending=True)
    positive = labels.to(torch.bool)[order]
    if weights is None:
        tp = positive.cumsum(0, dtype=torch.int32 if len(scores) < 2**31 else torch.int64)
        passed = torch.arange(1, len(scores) + 1, dtype=tp.dtype, device=scores.device)
        fp = passed - tp
    else:
        weight = weights[order]
        tp = torch.where(positive, weight, 0.0).cumsum(0)
        fp = torch.where(positive, 0.0, weight).cumsum(0)
    # A cut stands where the next score is lower; with no ties, everywhere.
    last_of_tie = torch.ones(len(values), dtype=torch.bool, device=values.device)
    torch.ne(values[1:], values[:-1], out=last_of_tie[:-1])
    if not bool(last_of_tie.all()):
        kept = last_of_tie.nonzero().squeeze(-1)
        values, tp, fp = values.index_select(0, kept), tp.index_select(0, kept), fp.index_select(0, kept)
    return Curve(values, _from_zero(tp), _from_zero(fp))


def curve_of_fixed_length(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> Curve:
    """The same cuts in a fixed length that does not depend on the scores, so that no device is waited for."""
    scores = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
    weight = torch.ones_like(scores, dtype=torch.float64) if weights is None else weights.detach().double()
    # Samples of weight 0 come last.
    values, order = torch.sort(scores.masked_fill(weight <= 0, -torch.inf), descending=True)
    positive, weight = labels.to(torch.bool)[order], weight[order]
    tp = _from_zero(torch.where(positive, weight, 0.0).cumsum(0))
    fp = _from_zero(torch.where(positive, 0.0, weight).cumsum(0))
    real = torch.ones(len(values) + 1, dtype=torch.bool, device=values.device)
    real[1:-1] = values[:-1] > values[1:]
    real[-1] = values[-1] > -torch.inf
    places = torch.where(real, torch.arange(len(real), device=values.device), 0).cummax(0).values
    return Curve(values, tp[places], fp[places], places=places)


def _from_zero(passed: Tensor) -> Tensor:
    """The same numbers with a 0 in front, for the cut that flags nothing."""
    out = torch.zeros(len(passed) + 1, dtype=torch.float64, device=passed.device)
    out[1:] = passed
    return out


def mean_over(cuts: Curve, objective: Quantity, stretch: Range) -> Tensor:
    """The exact mean of an objective over a range of another rate.

    Args:
        cuts: All cuts of the scores.
        objective: The rate or metric whose mean is taken.
        stretch: The range, such as `fpr.between(0, 0.1)`.

    Returns:
        A 0-dimensional float64 tensor, on the scale of the objective.

    Raises:
        MissingClass: If there are no samples of the class that the rate of the range is a share of.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.measure.curve import curve, mean_over
        >>> cuts = curve(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1, 0, 1, 0]))
        >>> mean_over(cuts, sp.recall, sp.fpr.between(0, 0.5))
        tensor(0.5000, dtype=torch.float64)
    """
    counts = cuts.counts
    if float(stretch.rate.size(counts[0])) <= 0:
        raise MissingClass(f"the area over {stretch.rate} needs samples of the class that it is a share of")
    level, value = stretch.rate(counts), objective(counts)
    if stretch.rate.direction < 0:
        level, value = level.flip(0), value.flip(0)
    low, high = level.new_tensor(stretch.low), level.new_tensor(stretch.high)
    left, right = level[:-1].clamp(low, high), level[1:].clamp(low, high)
    if isinstance(objective, Rate) and objective.has_fixed_whole:
        rise = level[1:] - level[:-1]
        slope = torch.where(rise > 0, (value[1:] - value[:-1]) / torch.where(rise > 0, rise, 1), 0)
        middle = value[:-1] + slope * ((left + right) / 2 - level[:-1])
    else:
        # The cut that reaches the level is the one that flags more, wherever the list starts.
        middle = value[1:] if stretch.rate.direction > 0 else value[:-1]
    return ((right - left) * middle).sum() / (high - low)


def roc_area(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Mean recall over a range of the false positive rate; the AUC if the range is whole.

    Args:
        scores: One score per sample, `(n,)`.
        labels: 0 or 1 per sample, `(n,)`.
        weights: One weight per sample; all 1 if None.
        low: The lower end of the range.
        high: The upper end of the range.

    Returns:
        A 0-dimensional float64 tensor without gradient.

    Raises:
        MissingClass: If there are no negatives.

    Example:
        >>> import torch
        >>> from setpoint.measure.curve import roc_area
        >>> roc_area(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1, 0, 1, 0]))
        tensor(0.7500, dtype=torch.float64)
    """
    return mean_over(curve(scores, labels, weights), recall, fpr.between(low, high))


def pr_area(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Mean precision over a range of recall; the average precision if the range is whole.

    Args:
        scores: One score per sample, `(n,)`.
        labels: 0 or 1 per sample, `(n,)`.
        weights: One weight per sample; all 1 if None.
        low: The lower end of the range.
        high: The upper end of the range.

    Returns:
        A 0-dimensional float64 tensor without gradient.

    Raises:
        MissingClass: If there are no positives.

    Example:
        >>> import torch
        >>> from setpoint.measure.curve import pr_area
        >>> pr_area(torch.tensor([4.0, 3.0, 2.0, 1.0]), torch.tensor([1, 0, 1, 0]))
        tensor(0.8333, dtype=torch.float64)
    """
    return mean_over(curve(scores, labels, weights), precision, recall.between(low, high))


def mcclish(area: Tensor, low: float, high: float) -> Tensor:
    """Rescale a partial ROC area so that chance is 1/2 and perfection 1 (McClish's correction).

    The result is (1 + (a - c) / (1 - c)) / 2, where c, the middle of the range, is the area by chance.

    Args:
        area: The mean recall over the range, as `roc_area` gives it.
        low: The lower end of the range of the false positive rate.
        high: The upper end of the range.

    Returns:
        The rescaled area.

    Example:
        >>> import torch
        >>> from setpoint.measure.curve import mcclish
        >>> mcclish(torch.tensor(0.5), low=0.0, high=0.1)
        tensor(0.7368)
    """
    chance = (low + high) / 2
    return (1 + (area - chance) / (1 - chance)) / 2
