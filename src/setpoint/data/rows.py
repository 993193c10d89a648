"""Rows: features and what is known of each row. The one container from the loaders to the solvers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.data.sparse import SparseRows
from setpoint.measure.sample import Sample


@dataclass(frozen=True)
class Rows:
    """The input of a model and what is known of each of its rows: a batch, a part of a table, or all of it.

    Weights are 1 where there are none. Groups and lists are numbered from 0 up. `index` is the number of each row among
    all rows of its loader.
    """

    x: Any
    labels: Tensor
    weights: Tensor | None = None
    groups: Tensor | None = None
    lists: Tensor | None = None
    index: Tensor | None = None

    @property
    def weights_or_ones(self) -> Tensor:
        """The weight of each row."""
        return self.labels.new_ones(len(self.labels)) if self.weights is None else self.weights

    @property
    def n_groups(self) -> int | None:
        """How many groups there are, where rows have any."""
        return None if self.groups is None else int(self.groups.max()) + 1

    def sample(self, scores: Tensor) -> Sample:
        """The scores of these rows, with their labels, weights and groups."""
        return Sample(scores, self.labels, self.weights, self.groups)

    def map(self, change: Callable[[Tensor], Tensor]) -> Rows:
        """The same with every tensor changed."""
        return Rows(*(change(part) if isinstance(part, Tensor) else part for part in vars(self).values()))

    def take(self, rows: Tensor | slice) -> Rows:
        """Some of the rows, by their numbers, by true and false per row, or by a slice (which copies nothing)."""
        if isinstance(rows, slice):
            return self.map(lambda part: part[rows])
        numbers = rows.nonzero().squeeze(-1) if rows.dtype == torch.bool else rows
        taken = self.map(lambda part: part.index_select(0, numbers.to(part.device)))
        return replace(taken, x=self.x.index_select(0, numbers)) if isinstance(self.x, SparseRows) else taken

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        """All rows of several parts.

        Rows of parts without weights weigh 1 beside others. Groups and lists are kept if all parts have them. The index
        is not, for parts may number their rows alike; that of a single part stays.
        """
        if len(parts) == 1:
            return parts[0]
        weights = None
        if any(part.weights is not None for part in parts):
            weights = torch.cat([part.weights_or_ones for part in parts])
        x, labels, groups, lists = (
            None if any(column is None for column in columns) else torch.cat(columns)
            for columns in ([getattr(part, name) for part in parts] for name in ("x", "labels", "groups", "lists"))
        )
        assert labels is not None
        return Rows(x, labels, weights, groups, lists)


def content_hash(value: Any) -> str:
    """A hash of all tensors in rows, a list or a mapping, in their order; numbers of rows do not count."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in _walk(value):
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _walk(value: Any) -> Iterable[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, SparseRows):
        yield from value.parts
    elif isinstance(value, Rows):
        yield from _walk([value.x, value.labels, value.weights, value.groups, value.lists])
    elif isinstance(value, Mapping):
        yield from _walk(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _walk(part)
