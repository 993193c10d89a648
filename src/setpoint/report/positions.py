"""Where a threshold can stand: every cut of some rows, or enough of them, with exact counts at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.measure.count import count_sorted
from setpoint.measure.curve import curve
from setpoint.measure.sample import Sample

#: More cuts than this are thinned: a slider has no more steps than a screen has pixels.
MOST = 2000


@dataclass(frozen=True)
class Positions:
    """Thresholds in rising order and the true counts at each, `(m, 4)`, also by group, `(m, G, 4)`.

    `own` are the places of the run's own thresholds; `kept` of the `cuts` that the rows have are there.
    """

    thresholds: Tensor
    counts: Tensor
    by_group: Tensor | None
    own: list[int]
    kept: int
    cuts: int


def find_positions(sample: Sample, own: Sequence[float], most: int = MOST) -> Positions:
    """The run's own thresholds, and a threshold for each other cut: for all, or near the own ones and ever fewer
    further away."""
    everything = curve(sample.scores, sample.labels)
    mine = torch.tensor(own, dtype=torch.float64)
    cuts = len(everything.tp)
    # Cut k flags the k highest values, so that a threshold stands at as many as lie above it.
    own_cuts = cuts - 1 - torch.searchsorted(everything.values.flip(0), mine, right=True)
    kept = _spread(cuts, own_cuts, most)
    others = kept[~torch.isin(kept, own_cuts)]
    thresholds = torch.cat([everything.thresholds(others), mine]).unique()
    groups = sample.groups
    by_group = None
    if groups is not None:
        within = [groups == g for g in range(sample.n_groups or 0)]
        by_group = torch.stack([count_sorted(sample.scores[w], sample.labels[w], thresholds) for w in within], dim=1)
    counts = count_sorted(sample.scores, sample.labels, thresholds)
    places = torch.searchsorted(thresholds, mine).tolist()
    return Positions(thresholds, counts, by_group, places, len(kept), cuts)


def _spread(cuts: int, centres: Tensor, most: int) -> Tensor:
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
