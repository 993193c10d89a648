"""The best shifts of three classes among all there are, for few rows.

With the shift of class 0 at 0, a row is decided by t_1, t_2 and t_2 - t_1: by three lines in the plane of (t_1, t_2).
All decisions of n rows are the cells between 3 n lines. Between two neighbouring values of t_1 at which lines cross,
the cells lie above one another in one order, so that the cuts of class 2 at one t_1 in between have them all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.decide.shift_search import PRICES, TIED, priced
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

#: The most rows whose cells are all looked at: there are up to n^2 (n + 1) of them.
MOST_ROWS = 100
#: Columns of cuts that are counted at once.
_COLUMNS = 2000


def all_cuts_fit(sample: Sample) -> bool:
    """Whether the rows are so few that the best shifts of three classes are looked for among all."""
    return sample.scores.shape[1] == 3 and len(sample.labels) <= MOST_ROWS


@torch.no_grad()
def best_of_all_shifts(problem: Problem, sample: Sample) -> Tensor:
    """The best shifts `(3,)` that meet all bounds; where none do, those that break the bounds least.

    Of equally good shifts those that move the scores least are taken.
    """
    first, second, third = sample.scores.double().unbind(1)
    crossings = ((third - first).unsqueeze(1) - (third - second)).flatten()
    columns = _between(torch.cat([second - first, crossings]).sort().values)
    best, found = torch.inf, torch.zeros(3, dtype=torch.float64)
    for shifts in columns.split(_COLUMNS):
        cuts, values = _column_values(problem, sample, shifts)
        lowest = float(values.min())
        if lowest > best + EQUAL:
            continue
        column, place = (values <= lowest + EQUAL).nonzero().unbind(1)
        pairs = torch.stack([torch.zeros_like(shifts[column]), shifts[column], cuts[column, place]], dim=1)
        moved = (pairs - pairs.median(1, keepdim=True).values).abs().sum(1)
        least = pairs[moved.argmin()]
        if lowest < best - EQUAL or float(moved.min()) < float((found - found.median()).abs().sum()):
            best, found = lowest, least
    return found


def _between(rising: Tensor) -> Tensor:
    """A value between any two neighbours that more than rounding tells apart, and one beyond each end."""
    apart = rising.diff() > TIED * rising.abs().max()
    middle = (rising[1:] + rising[:-1])[apart] / 2
    return torch.cat([rising[:1] - 1, middle, rising[-1:] + 1])


def _column_values(problem: Problem, sample: Sample, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """The cuts of class 2 at each shift of class 1, `(m, n + 1)`, and the loss at each; infinite where they tie."""
    scores, labels = sample.scores.double(), sample.labels
    weights = torch.ones_like(scores[:, 0]) if sample.weights is None else sample.weights.double()
    ahead = scores[:, 1] - shifts.unsqueeze(1)
    margin, order = (scores[:, 2] - torch.maximum(scores[:, 0], ahead)).sort(dim=1, descending=True)
    rival = (ahead > scores[:, 0]).long().gather(1, order)
    own, mass = labels[order], weights[order]
    flagged: list[Tensor] = []
    hits: list[Tensor] = []
    for k in range(3):
        given = mass if k == 2 else mass * (rival == k)
        for counted, each in ((flagged, given), (hits, given * (own == k))):
            passed = torch.nn.functional.pad(each.cumsum(1), (1, 0))
            # Rows above the cut are given class 2; the others stay with their rivals.
            counted.append(passed if k == 2 else passed[:, -1:] - passed)
    sizes = torch.bincount(labels, weights, 3)
    chosen, right = torch.stack(flagged, dim=-1), torch.stack(hits, dim=-1)
    counts = torch.stack([right, chosen - right, sizes - right, sizes.sum() - sizes - chosen + right], dim=-1)
    ends = torch.cat([margin[:, :1] + 1, margin, margin[:, -1:] - 1], dim=1)
    values = priced(problem, counts.clamp(min=0).flatten(0, 1), PRICES[-1]).view(len(shifts), -1)
    tied = ends[:, :-1] - ends[:, 1:] <= TIED * scores.abs().max()
    return (ends[:, :-1] + ends[:, 1:]) / 2, values.masked_fill(tied, torch.inf)
