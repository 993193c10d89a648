"""Join the batches of all processes into one, by rank: one round for the sizes, one for the numbers."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from setpoint.errors import BadIndex, ShapeMismatch
from setpoint.measure.sample import Sample
from setpoint.processes import ALONE

_NAMES = ("scores", "labels", "weights", "groups", "index", "values")


def joined(part: Sample, index: Tensor | None = None) -> tuple[Sample, Tensor | None]:
    """The samples of all processes and their `index`; with a single process, its own.

    Only the scores of this process keep their gradient. A process without samples needs no groups and no index; weights
    that a process does not give are 1. The sizes of the parts decide the shapes, so a device is waited for once.
    """
    processes = part.processes
    if processes.alone:
        return part, index
    if index is not None and (index.shape != part.scores.shape[:1] or index.is_floating_point()):
        raise BadIndex(f"{len(part.scores)} samples came with an index {tuple(index.shape)} of {index.dtype}")
    part = part.widened()
    columns = (part.scores, part.labels, part.weights, part.groups, index, part.values)
    size, device = len(part.scores), part.scores.device
    widths = [0 if column is None else column.shape[1:].numel() for column in columns]
    facts = torch.tensor([size, part.dtype == torch.float64, *widths], device=device)
    table: list[list[int]] = torch.stack(processes.all(facts)).tolist()
    sizes, precision = [row[0] for row in table], torch.float64 if any(row[1] for row in table) else torch.float32
    widest = _widest(table)
    # Whole numbers and values of columns need all their digits.
    carried = torch.float64 if any(widest[3:]) else precision
    packed = torch.ones(max(sizes), sum(widest), dtype=carried, device=device)
    for column, place in zip(columns, packed.split(widest, dim=1)):
        if column is not None:
            place[:size] = column.detach().reshape(size, -1 if size else place.shape[1])
    parts = processes.all(packed) if len(packed) else [packed] * len(sizes)
    rows = torch.cat([other[:length] for other, length in zip(parts, sizes)])
    scores, labels, weights, groups, places, values = rows.split(widest, dim=1)
    first = sum(sizes[: processes.rank])
    scores = scores.to(precision).reshape(-1, *part.scores.shape[1:])
    own = processes.felt(part.scores).to(precision)
    weighed = part.labels if part.weights is None else part.weights
    whole = replace(
        part,
        scores=torch.cat([scores[:first], own, scores[first + size :]]),
        labels=labels.to(part.labels.dtype).reshape(-1, *part.labels.shape[1:]),
        weights=weights.to(precision).reshape(-1, *weighed.shape[1:]) if widest[2] else None,
        groups=groups.long().squeeze(-1) if widest[3] else None,
        values=values if widest[5] else None,
        processes=ALONE,
    )
    return whole, places.long().squeeze(-1) if widest[4] else None


def _widest(table: list[list[int]]) -> list[int]:
    """The width of each column; processes with samples must agree on all but weights."""
    widest = [max(column) for column in list(zip(*table))[2:]]
    for rank, (size, _, *widths) in enumerate(table):
        for name, own, width in zip(_NAMES, widths, widest):
            if size and own != width and not (name == "weights" and own == 0):
                raise ShapeMismatch(
                    f"process {rank} has {own} numbers per sample for {name}, another has {width}; let all processes "
                    f"pass the same, or keep this solver to its own process with across(False)"
                )
    return widest
