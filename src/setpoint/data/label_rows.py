"""The rows of one of several labels: those of which the label is known, from any loader."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from setpoint.data.batch import Batches
from setpoint.data.rows import Rows, SparseRows, read_batch


def of_label(loader: Iterable[Any], place: int) -> Iterable[Any]:
    """The same loader with the rows of which the label in that column is known, and that label alone."""
    if not isinstance(loader, Batches):
        return _OfLabel(loader, place)
    own = copy.copy(loader)
    own.resident = replace(_known(loader.resident, place), index=None)
    own.resident = replace(own.resident, index=torch.arange(len(own.resident.labels)))
    own.content = None if loader.content is None else f"{loader.content}, label {place}"
    own.generator = torch.Generator()
    own.generator.set_state(loader.generator.get_state())
    return own


def _known(rows: Rows, place: int) -> Rows:
    label = rows.labels[:, place]
    known = ~label.isnan()
    if not bool(known.all()):
        numbers, sparse = known.nonzero().squeeze(-1), isinstance(rows.x, SparseRows)
        x = SparseRows(rows.x.rows[numbers.numpy()]) if sparse else rows.x
        rows = replace(rows, x=torch.zeros(len(label), 0) if sparse else x).take(numbers)
        rows, label = replace(rows, x=x) if sparse else rows, label[numbers]
    return replace(rows, labels=label)


class _OfLabel:
    """The batches of any loader, with one label alone."""

    def __init__(self, loader: Iterable[Any], place: int) -> None:
        self.loader, self.place = loader, place

    def __iter__(self) -> Iterator[Rows]:
        yield from (_known(read_batch(item), self.place) for item in self.loader)
