"""The best shifts for an objective: the best of all cuts of one class at a time, until no move improves it.

A class k is predicted where its margin over its best rival, s_k - max_j(s_j - t_j), lies above t_k. All n + 1 cuts
of that margin are counted from one sort and one cumulative sum, whatever the objective.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.decide.by_rank import EQUAL
from setpoint.decide.coverage import true_correction
from setpoint.measure.classes import count_classes
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem


@torch.no_grad()
def search_shifts(problem: Problem, sample: Sample, start: Tensor | None = None, sweeps: int = 20) -> Tensor:
    """The best shifts `(K,)` found for the objective, bounds aside, in float64.

    The search begins at `start`. Without one it begins three times: with no shifts, with those at which each class is
    predicted as often as it occurs, and with those at which all classes are predicted equally often; the best end is
    taken. No move of a single shift improves the result (unless `sweeps` ran out), which for two classes makes it the
    optimum; for more classes it may be a local one.
    """
    wide = replace(sample.double(), labels=sample.labels)
    n_classes = wide.scores.shape[1]
    if start is None:
        weights = torch.ones_like(wide.scores[:, 0]) if wide.weights is None else wide.weights
        shares = weights @ F.one_hot(wide.labels, n_classes).double() / weights.sum()
        even = torch.full_like(shares, 1 / n_classes)
        starts = [torch.zeros_like(shares)]
        starts += [true_correction(wide.scores, asked, asked, wide.weights) for asked in (shares, even)]
    else:
        starts = [start.double()]
    ends = [_descend(problem, wide, shifts, sweeps) for shifts in starts]
    return min(ends, key=lambda end: end[0])[1]


def _descend(problem: Problem, sample: Sample, shifts: Tensor, sweeps: int) -> tuple[float, Tensor]:
    shifts = shifts.clone()
    counts = count_classes(sample.scores, sample.labels, shifts, weights=sample.weights)
    lowest = float(problem.cost(counts.unsqueeze(0)))
    for _ in range(sweeps):
        before = lowest
        for k in range(len(shifts)):
            thresholds, counts = class_cuts(sample, shifts, k)
            costs = problem.costs(counts)
            if float(costs.min()) < lowest - EQUAL:
                equal = costs <= costs.min() + EQUAL
                # Among equally good cuts the nearest.
                distance = (thresholds - shifts[k]).abs().masked_fill(~equal, torch.inf)
                shifts[k] = thresholds[distance.argmin()]
                lowest = float(costs.min())
        if lowest >= before:
            break
    return lowest, shifts


def class_cuts(sample: Sample, shifts: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All cuts of class k, the other shifts held: its shift at each, `(c,)`, and the counts there, `(c, K, 4)`.

    Cut 0 predicts the class nowhere, the last one everywhere. A shift lies half way between two margins, so that
    no sample is tied.
    """
    scores, labels = sample.scores, sample.labels
    n_classes = scores.shape[1]
    rivals = (scores - shifts).index_fill(1, torch.tensor([k], device=scores.device), -torch.inf)
    strongest, rival = rivals.max(-1)
    margin, order = (scores[:, k] - strongest).sort(descending=True)
    rival, labels = rival[order], labels[order]
    weights = torch.ones_like(margin) if sample.weights is None else sample.weights[order]
    mass = weights.unsqueeze(-1)
    members = mass * F.one_hot(labels, n_classes)
    to_rival = mass * F.one_hot(rival, n_classes)
    to_class = torch.zeros_like(to_rival)
    to_class[:, k] = weights
    truly = (members > 0).to(mass.dtype)
    # A sample that passes the cut leaves its rival for class k.
    flagged = to_rival.sum(0) + F.pad((to_class - to_rival).cumsum(0), (0, 0, 1, 0))
    hits = (to_rival * truly).sum(0) + F.pad(((to_class - to_rival) * truly).cumsum(0), (0, 0, 1, 0))
    size, whole = members.sum(0), weights.sum()
    counts = torch.stack([hits, flagged - hits, size - hits, whole - size - flagged + hits], dim=-1)
    step = (margin[:1] - margin[-1:]) / len(margin) + 1e-6 * margin.abs().max() + 1e-12
    padded = torch.cat([margin[:1] + 2 * step, margin, margin[-1:] - 2 * step])
    thresholds = padded[1:] / 2 + padded[:-1] / 2
    apart = padded[1:] < padded[:-1]
    return thresholds[apart], counts.clamp(min=0)[apart]
