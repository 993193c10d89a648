"""The cuts of some rows, with exact counts at each, and the part of each axis that shows those that matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.measure.count import count_sorted
from setpoint.measure.curve import curve
from setpoint.measure.rate import fnr, fpr, precision, recall, tnr
from setpoint.measure.sample import Sample
from setpoint.problem.legible import digits_between
from setpoint.problem.problem import Problem

#: More cuts than this are thinned: a slider has no more steps than a screen has pixels.
MOST = 2000
#: The axis that shows a rate, and whether it is shown upside down there.
AXES = {str(fpr): ("fpr", False), str(tnr): ("fpr", True), str(recall): ("recall", False), str(fnr): ("recall", True)}
AXES[str(precision)] = ("precision", False)


@dataclass(frozen=True)
class Positions:
    """Thresholds in rising order and the true counts at each, `(m, 4)`, also by group, `(m, G, 4)`.

    `own` are the places of the run's own thresholds; `kept` of the `cuts` that the rows have are there. `digits` is how
    many digits of each threshold decide the rows in the same way, 0 for all.
    """

    thresholds: Tensor
    counts: Tensor
    by_group: Tensor | None
    own: list[int]
    digits: list[int]
    kept: int
    cuts: int
    #: Counts of the rows and of the values of each column, `(m, 1 + C, 4)`, where the ask names columns.
    of_values: Tensor | None = None


def find_positions(sample: Sample, own: Sequence[float], most: int = MOST) -> Positions:
    """The run's own thresholds, and a threshold for each other cut: for all, or near the own ones and ever fewer
    further away."""
    everything = curve(sample.scores, sample.labels)
    mine = torch.tensor(own, dtype=torch.float64)
    cuts = len(everything.tp)
    # Cut k flags the k highest values, so that a threshold stands at as many as lie above it.
    own_cuts = cuts - 1 - torch.searchsorted(everything.values.flip(0), mine, right=True)
    kept = spread(cuts, own_cuts, most)
    others = kept[~torch.isin(kept, own_cuts)]
    thresholds = torch.cat([everything.thresholds(others), mine]).unique()
    groups = sample.groups
    by_group = None
    if groups is not None:
        within = [groups == g for g in range(sample.n_groups or 0)]
        by_group = torch.stack([count_sorted(sample.scores[w], sample.labels[w], thresholds) for w in within], dim=1)
    counts = count_sorted(sample.scores, sample.labels, thresholds)
    places = torch.searchsorted(thresholds, mine).tolist()
    of_values = None
    if sample.values is not None:
        each = [count_sorted(sample.scores, sample.labels, thresholds, own) for own in sample.values.unbind(1)]
        of_values = torch.stack([counts, *each], dim=1)
    ordered = everything.values.flip(0).double().numpy()
    digits = [digits_between(value, near) for value, near in zip(thresholds.tolist(), _neighbours(ordered, thresholds))]
    return Positions(thresholds, counts, by_group, places, digits, len(kept), cuts, of_values)


def _neighbours(ordered: NDArray[np.float64], thresholds: Tensor) -> list[NDArray[np.float64]]:
    """The score below each threshold, or at it, and the score above it, where there are such scores."""
    places = np.searchsorted(ordered, thresholds.numpy(), side="right").tolist()
    return [ordered[max(place - 1, 0) : place + 1] for place in places]


def spread(cuts: int, centres: Tensor, most: int) -> Tensor:
    """At most `most` of the whole numbers below `cuts`: all near each centre, then in steps that grow by a factor."""
    if cuts <= most:
        return torch.arange(cuts)
    reach = (most - 2) // len(centres) // 2 - 1
    dense = max(reach // 2, 1)
    far = dense * (cuts / dense) ** torch.linspace(0, 1, reach - dense + 1, dtype=torch.float64)[1:]
    away = torch.cat([torch.arange(dense + 1), far.round().long()])
    around = torch.cat([centres.unsqueeze(-1) + away, centres.unsqueeze(-1) - away]).flatten()
    kept: Tensor = torch.cat([torch.tensor([0, cuts - 1]), around[(around > 0) & (around < cuts)]]).unique()
    return kept


def limits(problem: Problem) -> list[dict[str, Any]]:
    """The lines to draw: each bound on its axis and the side that breaks it, and the ends of the stretch of an area.

    A rate that is shown upside down is about the rows below a cut: of two cuts the lower one breaks its bound.
    """
    lines = []
    for c in problem.constraints:
        axis, turned = AXES.get(str(c.quantity), (None, False))
        if axis is not None:
            side = {"<=": 1, ">=": -1, "==": 0}[c.relation] * (-1 if turned else 1)
            at = 1 - c.bound if turned else c.bound
            lines.append({"axis": axis, "at": at, "broken": side, "text": str(c), "lower": turned})
    if problem.over is not None and str(problem.over.rate) in AXES:
        axis, turned = AXES[str(problem.over.rate)]
        ends = sorted(1 - end if turned else end for end in (problem.over.low, problem.over.high))
        for at, side in zip(ends, (-1, 1)):
            if 0 < at < 1:
                lines.append({"axis": axis, "at": at, "broken": side, "text": str(problem.over), "lower": turned})
    return lines


def view(problem: Problem, seen: list[Positions]) -> dict[str, list[float]]:
    """The range of each axis, `[low, high]`, in which every run's own points lie with some room around them."""
    own = torch.cat([positions.counts[positions.own] for positions in seen])
    own_fpr, own_recall = fpr(own), recall(own)
    lines = limits(problem)
    widest = max((line["at"] for line in lines if line["axis"] == "fpr"), default=None)
    lowest = min((line["at"] for line in lines if line["axis"] == "recall"), default=None)
    room = 1.5 if problem.over is not None else 4.0
    if problem.over is not None and AXES.get(str(problem.over.rate), ("",))[0] == "fpr":
        widest = problem.over.high if problem.over.rate == fpr else 1 - problem.over.low
    if widest is None and lowest is not None:
        # As far to the right as it takes to come three quarters of the way from the bound to a recall of 1.
        level = lowest + 0.75 * (1 - lowest)
        right = max(_first(fpr(p.counts), recall(p.counts) >= level) for p in seen)
    else:
        right = room * (widest if widest is not None else max(float(own_fpr.max()), 0.005))
    right = min(max(right, 1.25 * float(own_fpr.max()), 0.001), 1.0)
    if lowest is not None:
        bottom, top = 1 - min(room, 3.0) * (1 - lowest), 1.0
    else:
        bottom = min(_first(recall(p.counts), fpr(p.counts) >= right / 10) for p in seen)
        top = max(float(recall(p.counts)[fpr(p.counts) <= right].max()) for p in seen)
    bottom, top = min(bottom, float(own_recall.min())), max(top, float(own_recall.max()))
    span = _round(max(bottom, 0.0), top)
    heights = [_precisions(p.counts, span) for p in seen] + [precision(own)]
    heights += [own.new_tensor([line["at"] for line in lines if line["axis"] == "precision"])]
    every = torch.cat(heights)
    return {
        "fpr": _round(0.0, right, pad=0.0),
        "recall": span,
        "precision": _round(float(every.min()), float(every.max())),
    }


def _first(values: Tensor, reached: Tensor) -> float:
    """The value at the highest threshold that reaches: positions come in rising order of the threshold."""
    where = reached.nonzero()
    return float(values[where[-1, 0]]) if len(where) else 1.0


def _precisions(counts: Tensor, span: list[float]) -> Tensor:
    inside = (recall(counts) >= span[0]) & (recall(counts) <= span[1]) & (counts[:, :2].sum(-1) > 0)
    return precision(counts)[inside]


def _round(low: float, high: float, pad: float = 0.06) -> list[float]:
    """A range with some room, from one round number to another, within 0 ... 1."""
    width = max(high - low, 1e-3)
    low, high = low - pad * width, high + pad * width
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    # Whole steps divided once: 3 * 0.1 would be 0.30000000000000004.
    ends = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{min(max(end * step, 0.0), 1.0):.10g}") for end in ends]
