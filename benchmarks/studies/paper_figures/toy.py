"""Figure 1 of paper 003: ten samples in a row, and two swaps that raise the area by as much but cost less unequally.

The paper's text gives what each swap saves: 39 mu / 50 + 3 price / 25 for the leftmost positive, 19 mu / 50 + 3 price /
25 for the rightmost negative, in units of the distance. Where the samples stand is in the picture alone; of the 252
rows of five positives and five negatives this looks for those of which both figures are true.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

import setpoint as sp

SAMPLES, PUBLISHED = 10, ((39 / 50, 3 / 25), (19 / 50, 3 / 25))
Row = tuple[int, ...]


def charge(row: Row) -> tuple[float, float]:
    """What our augmented Lagrangian adds to its base loss, by its own loss: the factor of mu and that of the price."""
    scores, labels = torch.arange(float(len(row))), torch.tensor(row, dtype=torch.float32)
    found = []
    for mu, price in ((1.0, 0.0), (1e-9, 1.0)):
        growth = sp.losses.Growth(price=price)
        solver = sp.AugmentedLagrangian(
            sp.CrossEntropy(), n_samples=len(row), margin=0.0, mu=mu, growth=growth, output=torch.clone
        )
        with torch.no_grad():
            whole = solver(scores, labels, index=torch.arange(len(row)))
            found.append(float(whole - sp.CrossEntropy()(scores, labels)))
    return found[0], found[1]


def swapped(row: Row, left: int) -> Row:
    return (*row[:left], row[left + 1], row[left], *row[left + 2 :])


def savings(row: Row) -> list[tuple[float, float]]:
    """By the swap of the leftmost positive with the negative on its right, and of the rightmost negative; if any."""
    first, last = row.index(1), len(row) - 1 - row[::-1].index(0)
    if first + 1 >= len(row) or row[first + 1] or last == 0 or not row[last - 1]:
        return []
    before = charge(row)
    after = [charge(swapped(row, first)), charge(swapped(row, last - 1))]
    return [(before[0] - one[0], before[1] - one[1]) for one in after]


def found() -> dict[str, Any]:
    """The rows of which both published figures are true, and what the swaps save there."""
    rows = [tuple(int(place in chosen) for place in range(SAMPLES))
            for chosen in itertools.combinations(range(SAMPLES), SAMPLES // 2)]  # fmt: skip
    told = torch.tensor(PUBLISHED)
    good = [(row, own) for row in rows if (own := savings(row)) and torch.tensor(own).allclose(told, atol=1e-4)]
    return {"rows": len(rows), "published": PUBLISHED, "true of": [{"row": row, "saved": saved} for row, saved in good]}
