"""Ways to read a partial PR area over recall 95 % to 100 % off scores: papers seldom say which is theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.common.data import Part
from setpoint.measure.count import count
from setpoint.measure.curve import curve
from setpoint.measure.rate import precision, recall

LOW = 0.95


@dataclass(frozen=True)
class Area:
    """One way to read the area over recall 95 % to 100 % off: the exact mean of precision, or that at some levels.

    The precision at a level of recall is that of the first cut that reaches it, or the best of it and all cuts beyond.
    """

    name: str
    levels: tuple[float, ...] = ()
    best_beyond: bool = False
    trapezoid: bool = False
    thresholds_from: str = "test"

    def __call__(self, scored: dict[str, Part]) -> float:
        cuts = curve(*scored[self.thresholds_from])
        reach, value = recall(cuts.counts), precision(cuts.counts)
        if self.best_beyond:
            value = value.flip(0).cummax(0).values.flip(0)
        if not self.levels:
            left, right = reach[:-1].clamp(min=LOW), reach[1:].clamp(min=LOW)
            height = value[1:]
            if self.trapezoid:
                rise = reach[1:] - reach[:-1]
                slope = (value[1:] - value[:-1]) / torch.where(rise > 0, rise, 1)
                height = height - slope * (reach[1:] - (left + right) / 2)
            return float(((right - left) * height).sum() / (1 - LOW))
        levels = torch.tensor(self.levels, dtype=torch.float64)
        first = torch.searchsorted(reach, levels - 1e-12)
        found = value[first]
        if self.thresholds_from != "test":
            found = torch.stack([precision(count(*scored["test"], cut)) for cut in cuts.thresholds(first)])
        if self.trapezoid:
            return float(torch.trapezoid(found, levels) / (levels[-1] - levels[0]))
        return float(found.mean())


def points(number: int, first: float = 0.0, last: float = 1.0) -> tuple[float, ...]:
    """Evenly spread levels, from `first` to `last` as shares of the range."""
    return tuple(LOW + (1 - LOW) * share for share in np.linspace(first, last, number).tolist())


EXACT = Area("exact mean")
AREAS = (
    EXACT,
    Area("exact, trapezoid", trapezoid=True),
    Area("exact, best beyond", best_beyond=True),
    Area("5 points, 95 to 100 %", points(5)),
    Area("5 points, 95 to 99 %", points(5, last=0.8)),
    Area("5 points, 96 to 100 %", points(5, first=0.2)),
    Area("5 points, middles", points(5, first=0.1, last=0.9)),
    Area("5 points, trapezoid", points(5), trapezoid=True),
    Area("5 points, best beyond", points(5), best_beyond=True),
    Area("10 points, 95 to 100 %", points(10)),
    Area("10 points, 95 to 99.5 %", points(10, last=0.9)),
    Area("100 points, 95 to 100 %", points(100)),
    Area("5 middles, thresholds of validation rows", points(5, first=0.1, last=0.9), thresholds_from="validation"),
    Area("5 middles, thresholds of training rows", points(5, first=0.1, last=0.9), thresholds_from="train"),
)
