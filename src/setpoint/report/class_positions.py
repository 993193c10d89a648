"""The slider of the page of several classes: the shift of one class moves, the others stay; each step has a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.shift_search import TIED
from setpoint.measure.classes import OfClass
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts
from setpoint.report.positions import spread

#: The steps of the sliders of all classes together, and the fewest of one of them.
MOST, FEWEST = 4000, 60


@dataclass(frozen=True)
class ClassPositions:
    """Shifts of one class in rising order, and the table of each: rows of class j that are given class i.

    Args:
        shifts: The shifts, `(m,)`.
        tables: The tables, `(m, K, K)`.
        own: The place of the run's own shift.
        cuts: The number of different cuts that the rows have.
    """

    shifts: Tensor
    tables: Tensor
    own: int
    cuts: int


def find_class_positions(sample: Sample, own: Shifts, k: int, most: int) -> ClassPositions:
    """The cuts of class k while the other classes keep their own shifts: all cuts, or ever fewer further away."""
    size, mine = len(own.names), own.shifts[k]
    others = sample.scores.double() - own.tensor()
    others[:, k] = -torch.inf
    strongest, rival = others.max(1)
    margin, order = (sample.scores[:, k].double() - strongest).sort(descending=True)
    labels, rival = sample.labels.long()[order], rival[order]
    # Cut c gives class k to the first c rows; a cut that would part margins that rounding alone tells apart is none.
    ends = torch.cat([margin[:1] + 1, margin, margin[-1:] - 1])
    cuts = (ends[:-1] - ends[1:] > TIED * ends.abs().max()).nonzero().squeeze(-1)
    between = (ends[cuts] + ends[cuts + 1]) / 2
    there = int((between > mine).sum().clamp(max=len(cuts) - 1))
    kept = spread(len(cuts), torch.tensor([there]), most)
    kept = kept[kept != there]
    # A row that a cut passes leaves its rival for class k.
    first = torch.searchsorted(cuts[kept], torch.arange(1, len(labels) + 1))
    moves = torch.zeros(len(kept) + 1, size * size, dtype=torch.long)
    for to, sign in ((torch.full_like(rival, k), 1), (rival, -1)):
        moves.index_put_((first, labels * size + to), torch.full_like(labels, sign), accumulate=True)
    before = torch.bincount(labels * size + rival, minlength=size * size)
    tables = (before + moves.cumsum(0)[:-1]).view(-1, size, size)
    at_own = own.kinds(sample).round().long().view(1, size, size)
    shifts = torch.cat([between[kept], torch.tensor([mine], dtype=torch.float64)])
    rising = shifts.argsort()
    place = int((rising == len(kept)).nonzero())
    return ClassPositions(shifts[rising], torch.cat([tables, at_own])[rising], place, len(cuts))


def counts_of(tables: Tensor) -> Tensor:
    """The counts of each class against the rest, `(m, K, 4)`, from tables `(m, K, K)`."""
    hits = tables.diagonal(dim1=1, dim2=2)
    given, sizes = tables.sum(1), tables.sum(2)
    total = sizes.sum(1, keepdim=True)
    return torch.stack([hits, given - hits, sizes - hits, total - given - sizes + hits], dim=-1).double()


def class_data(problem: Problem, own: Shifts, samples: dict[str, Sample], names: dict[str, str]) -> dict[str, Any]:
    """The numbers of the slider: for each part and class the shifts, the tables, and the quantities of the ask.

    Args:
        problem: The problem.
        own: The run's shifts.
        samples: The rows of each part.
        names: The name of each part for people.
    """
    most = max(FEWEST, MOST // len(own.names))
    asked = [q.k for q in problem.quantities if isinstance(q, OfClass)]
    return {
        "classes": list(own.names),
        "own": list(own.shifts),
        "digits": own.digits,
        "first": asked[0] if asked else 0,
        "objective": {"name": str(problem.objective), "share": problem.objective.is_share},
        "bounds": [{"text": str(c), "share": c.quantity.is_share} for c in problem.constraints],
        "parts": [
            {"key": part, "name": names[part],
             "cuts": [_line(problem, find_class_positions(sample, own, k, most)) for k in range(len(own.names))]}
            for part, sample in samples.items()
        ],
    }  # fmt: skip


def _line(problem: Problem, found: ClassPositions) -> dict[str, Any]:
    counts = counts_of(found.tables)
    flat = found.tables.flatten(1)
    steps = flat.diff(dim=0)
    return {
        "shifts": _short(found.shifts),
        "own": found.own,
        "cuts": found.cuts,
        "first": flat[0].tolist(),
        # Between two steps few cells of the table change: each as its number and the change.
        "changes": [[[int(cell), int(step[cell])] for cell in step.nonzero().squeeze(-1)] for step in steps],
        "objective": _short(problem.objective(counts)),
        "values": [_short(c.quantity(counts)) for c in problem.constraints],
        "holds": ["".join("01"[bool(held)] for held in c.holds(counts)) for c in problem.constraints],
    }


def _short(values: Tensor) -> list[float]:
    """Numbers with more digits than the page shows, and no more bytes than that takes."""
    return [float(f"{value:.7g}") for value in values.tolist()]
