"""Mangasarian's rule for the epsilon of the exterior penalty."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.studies.lp_training.losses import program_of
from setpoint.lp.penalty import descend, stacked

EPSILONS = tuple(10.0**-power for power in range(7))
SAME = 1e-6


@torch.no_grad()
def by_rule(form: str, scores: Tensor, labels: Tensor, margin: float) -> float | None:
    """The first epsilon whose prices are as long as those of the next smaller one; None if no two are.

    Prices that no longer change with epsilon are the shortest optimal prices of the program itself.
    """
    if not 0 < float(labels.sum()) < len(labels):
        return None
    parts = stacked(program_of(form, scores.double(), labels, margin))
    norms: list[float] = []
    for epsilon in EPSILONS:
        _, pushed = descend(*parts, epsilon, 1e-9, 100, line_search=True)
        norms.append(float(pushed.norm()) / epsilon)
        if len(norms) > 1 and abs(norms[-1] - norms[-2]) <= SAME * norms[-1]:
            return EPSILONS[len(norms) - 2]
    return None
