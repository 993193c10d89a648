"""Candidates side by side on held-out data, and the rule that chooses one of them without choosing noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.train.calibrate import evaluate
from setpoint.train.select import preference

#: Random halves of the held-out rows, in pairs that are each other's rest, from which noise is measured.
HALVES = 40
#: What a broken bound costs beside the objective, as in `ImplicitThreshold`.
BROKEN_PRICE = 10.0


@dataclass(frozen=True)
class Trial:
    """One candidate: its best cut on held-out data, how long it took, whether it was chosen, and what to know of it.

    `point` is None for a candidate that was left out; `note` then says why.
    """

    name: str
    point: OperatingPoint | None
    seconds: float
    chosen: bool = False
    note: str = ""


def merit(point: OperatingPoint) -> float:
    """One number, larger is better: the objective, less what the bounds are broken by at a flat price."""
    value = point.objective if point.problem.maximize else -point.objective
    return value if point.feasible else value - BROKEN_PRICE * point.violation


def judge(problem: Problem, sample: Sample, rows: Tensor | None = None) -> OperatingPoint:
    """The best cut of a sample, or of some of its rows."""
    parts = (sample.scores, sample.labels, sample.weights, sample.groups)
    scores, labels, weights, groups = (p if p is None or rows is None else p[rows] for p in parts)
    return evaluate(problem, scores, labels, weights=weights, groups=groups)


def halves(sample: Sample, seed: int = 0) -> list[Tensor]:
    """Random halves of the rows, class by class (and group by group): the noise of a figure is its spread over them."""
    draw = torch.Generator().manual_seed(seed)
    kinds = sample.labels.long().cpu() if sample.groups is None else (2 * sample.groups + sample.labels.long()).cpu()
    strata = [(kinds == kind).nonzero().squeeze(-1) for kind in kinds.unique()]
    found = []
    for _ in range(HALVES // 2):
        shuffled = [rows[torch.randperm(len(rows), generator=draw)] for rows in strata]
        found += [torch.cat([rows[side::2] for rows in shuffled]) for side in (0, 1)]
    return found


def choose(
    problem: Problem, candidates: Sequence[Sample], points: Sequence[OperatingPoint], caution: float, seed: int = 0
) -> int:
    """The place of the candidate to keep, of a list that goes from simple to bold.

    The first stands until another is feasible where it is not, or is better by more than `caution` standard errors
    of the paired difference, measured over random halves of the same held-out rows.
    """
    rows = halves(candidates[0], seed)
    merits = [torch.tensor([merit(judge(problem, sample, half)) for half in rows]) for sample in candidates]
    best = 0
    for place in range(1, len(points)):
        gain = merit(points[place]) - merit(points[best])
        if preference(points[place])[0] != preference(points[best])[0]:
            best = place if preference(points[place])[0] else best
            continue
        noise = float((merits[place] - merits[best] - gain).square().mean().sqrt())
        if gain > caution * noise:
            best = place
    return best
