"""Candidates of a choice, and the rule that chooses one of them without choosing noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from setpoint.data.split import split, strata
from setpoint.decide.calibrate import evaluate
from setpoint.decide.cut import Finder
from setpoint.decide.order import BROKEN_PRICE, merit, worth
from setpoint.decide.shifts import find_shifts
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT
from setpoint.measure.count import count
from setpoint.measure.labels import LABELS
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import read_sample, weights_of

#: The number of random halves of the rows, in pairs, from which the noise of a difference is estimated.
HALVES = 40


@dataclass(frozen=True)
class Trial:
    """One candidate of a choice, such as that of `Auto`.

    Attributes:
        name: The name of the candidate.
        point: The best threshold on the held-out rows and its rates. None if the candidate was left out.
        seconds: The time that its training took.
        chosen: Whether the candidate was chosen.
        note: The gain over plain cross-entropy, or the reason why the candidate was left out.

    Example:
        >>> import setpoint as sp
        >>> trial = sp.methods.Trial("PairwiseArea", None, 0.1, note="left out: the problem is no ROC area")
        >>> trial.to_dict()["objective"], trial.chosen
        (None, False)
    """

    name: str
    point: OperatingPoint | None
    seconds: float
    chosen: bool = False
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        point = self.point
        return {
            "name": self.name,
            "objective": None if point is None else point.objective,
            "feasible": None if point is None else point.feasible,
            "chosen": self.chosen,
            "seconds": round(self.seconds, 3),
            "note": self.note,
        }


@dataclass(frozen=True)
class Gain:
    """How much better a candidate is than the first, and the standard error of that difference.

    If only one of the two meets the bounds, that decides: the noise is 0 or infinite. Where the objective is a share,
    people read the gain in points.
    """

    value: float
    noise: float
    share: bool = True

    def exceeds(self, caution: float) -> bool:
        return self.value > 0 and (self.noise == 0 or self.value > caution * self.noise)

    def __str__(self) -> str:
        if self.noise == float("inf"):
            return "breaks a bound"
        if not self.share:
            return f"{self.value:+.4g} ± {self.noise:.2g}"
        return f"{100 * self.value:+.2f} ± {100 * self.noise:.2f} points"


def judge(problem: Problem, sample: Sample, rows: Tensor | None = None) -> OperatingPoint:
    """The operating point at the best threshold of a sample, or of some of its rows.

    Shifts of several classes are found by a quick search: it is made after every epoch.
    """
    sample = sample if rows is None else sample.take(rows)
    if problem.kind == CLASSES:
        wide = read_sample(problem, sample.scores, sample.labels, sample.weights)
        return OperatingPoint.at(problem, find_shifts(problem, wide, quick=True), wide)
    weights = weights_of(problem, sample)
    return evaluate(problem, sample.scores, sample.labels, weights=weights, groups=sample.groups, lists=sample.lists)


def halves(sample: Sample) -> list[Tensor]:
    """Random halves of the rows, stratum by stratum, the same at every call."""
    draw = torch.Generator().manual_seed(0)
    if sample.lists is not None:
        each = (split(sample.labels, (0.5, 0.5), seed, lists=sample.lists) for seed in range(HALVES // 2))
        return [half for both in each for half in both]
    found, kinds = [], strata(sample.labels, sample.groups)
    for _ in range(HALVES // 2):
        shuffled = [rows[torch.randperm(len(rows), generator=draw).to(rows.device)] for rows in kinds]
        # A stratum of one row is in both halves, because every half needs it.
        found += [torch.cat([rows[side::2] if len(rows) > 1 else rows for rows in shuffled]) for side in (0, 1)]
    return found


class Judged:
    """The scores of a candidate, judged by a problem: what comparisons with others share is computed once."""

    def __init__(self, problem: Problem, sample: Sample) -> None:
        self.problem, self.sample = problem, sample

    @cached_property
    def point(self) -> OperatingPoint:
        """The operating point at the best threshold."""
        return judge(self.problem, self.sample)

    @cached_property
    def merits(self) -> Tensor:
        """The merit of the best threshold of each random half of the rows."""
        rows = halves(self.sample)
        if self.problem.kind in (CLASSES, LABELS):
            # The decision of all rows: shifts are costly to search for, and a half may lack a rare label.
            shifts, wide = self.point.thresholds, self.sample.double()
            found = [merit(OperatingPoint.at(self.problem, shifts, wide.take(half))) for half in rows]
        else:
            finder = Finder(self.problem) if self.problem.kind == CUT else None
            found = [_merit(self.problem, self.sample.take(half), finder) for half in rows]
        return torch.tensor(found, dtype=torch.float64)


def choose(problem: Problem, candidates: Sequence[Sample], caution: float) -> tuple[int, list[Gain]]:
    """The place of the candidate to keep, and the gain of each over the first, which is the simplest.

    The best candidate is kept if its gain over the first is above `caution` standard errors, or if it meets bounds that
    the first breaks; otherwise the first is kept. Between equals the earlier wins.
    """
    judged = [Judged(problem, sample) for sample in candidates]
    gains = [Gain(0.0, 0.0), *(gain_over(judged[0], other) for other in judged[1:])]
    points = [one.point for one in judged]
    best = max(range(len(points)), key=lambda i: (points[i].feasible, merit(points[i]), -i))
    return (best if gains[best].exceeds(caution) else 0), gains


def gain_over(first: Judged, other: Judged) -> Gain:
    """The gain of the second candidate over the first, on the same rows.

    A half of the rows has twice the variance of all rows and shares its rows with them, so the mean square of (gain on
    a half - gain on all rows) estimates the variance of the gain on all rows.
    """
    one, two, share = first.point, other.point, first.problem.objective.is_share
    value = merit(two) - merit(one)
    if two.feasible != one.feasible:
        return Gain(abs(value), 0.0, share) if two.feasible else Gain(value, float("inf"), share)
    spread = other.merits - first.merits - value
    return Gain(value, float(spread.square().mean().sqrt()), share)


def _merit(problem: Problem, sample: Sample, finder: Finder | None) -> float:
    """The merit of the best threshold; for one threshold without all the rates of an operating point."""
    if problem.over is not None or problem.group is not None or finder is None:
        return merit(judge(problem, sample))
    counts = count(sample.scores.double(), sample.labels, finder(sample).thresholds, weights=sample.weights)
    heaviest = 1.0 if sample.weights is None else float(sample.weights.max())
    value = worth(problem, float(problem.objective(counts)[0]))
    broken = 0.0 if problem.holds(counts, heaviest) else max(problem.violations(counts))
    return value - BROKEN_PRICE * broken
