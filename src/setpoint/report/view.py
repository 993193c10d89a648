"""Where on the curves the ask lives: the stretch of each axis that is worth looking at, and what to draw there."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from setpoint.measure.rate import fnr, fpr, precision, recall, tnr
from setpoint.problem.problem import Problem
from setpoint.report.positions import Positions

#: The axis that shows a rate, and whether it is shown upside down there.
AXES = {str(fpr): ("fpr", False), str(tnr): ("fpr", True), str(recall): ("recall", False), str(fnr): ("recall", True)}
AXES[str(precision)] = ("precision", False)


def limits(problem: Problem) -> list[dict[str, Any]]:
    """The lines to draw: each bound on its axis and the side that breaks it, and the ends of the stretch of an area."""
    lines = []
    for c in problem.constraints:
        axis, turned = AXES.get(str(c.quantity), (None, False))
        if axis is not None:
            side = {"<=": 1, ">=": -1, "==": 0}[c.relation] * (-1 if turned else 1)
            lines.append({"axis": axis, "at": 1 - c.bound if turned else c.bound, "broken": side, "text": str(c)})
    if problem.over is not None and str(problem.over.rate) in AXES:
        axis, turned = AXES[str(problem.over.rate)]
        ends = sorted(1 - end if turned else end for end in (problem.over.low, problem.over.high))
        for at, side in zip(ends, (-1, 1)):
            if 0 < at < 1:
                lines.append({"axis": axis, "at": at, "broken": side, "text": str(problem.over)})
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
