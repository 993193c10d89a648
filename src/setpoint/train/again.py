"""Once more, on all rows: what stopped the training early has done its work, and can be trained on too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.train.batch import Batch, Batches, read_batch


class AllRows:
    """The batches of one loader, each with its share of the rows of another, all of which come once in every pass.

    Nothing is kept in memory but one batch of each. The other loader's batches are shuffled within themselves.
    """

    def __init__(self, batches: Iterable[Any], others: Iterable[Any], seed: int = 0) -> None:
        self.batches, self.items = batches, others
        self.size, self.other_size = _rows_of(batches), _rows_of(others)
        if not self.size or not self.other_size:
            raise BadSetting("the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a generator")
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def sampler(self) -> Any:
        """What draws the order of the first loader, if it has such a thing."""
        return getattr(self.batches, "sampler", None)

    def __iter__(self) -> Iterator[Batch]:
        others = _Rows(self.items, self.generator)
        seen = dealt = 0
        for batch in map(read_batch, self.batches):
            seen += len(batch.labels)
            due = round(self.other_size * min(seen / self.size, 1.0))
            here = batch.labels.device
            yield _joined([batch, *(piece.map(partial(_moved, here)) for piece in others.take(due - dealt))])
            dealt = due


class _Rows:
    """The rows of a loader in pieces of any size."""

    def __init__(self, loader: Iterable[Any], generator: torch.Generator) -> None:
        self.left, self.generator = map(read_batch, loader), generator
        self.open: Batch | None = None

    def take(self, size: int) -> list[Batch]:
        """So many rows, or all that are left, of one batch or of several."""
        pieces: list[Batch] = []
        while size > 0:
            if self.open is None or not len(self.open.labels):
                fresh = next(self.left, None)
                if fresh is None:
                    break
                order = torch.randperm(len(fresh.labels), generator=self.generator)
                self.open = _picked(fresh, order)
            first = torch.arange(min(size, len(self.open.labels)))
            pieces.append(_picked(self.open, first))
            self.open = _picked(self.open, torch.arange(len(first), len(self.open.labels)))
            size -= len(first)
        return pieces


def _moved(device: torch.device, part: Tensor) -> Tensor:
    return part.to(device)


def _picked(batch: Batch, rows: Tensor) -> Batch:
    return batch.map(lambda part: part[rows.to(part.device)])


def _joined(batches: list[Batch]) -> Batch:
    """One batch of several; weights are 1 where only others have them. Numbers of rows mean nothing any more."""
    if not all(isinstance(batch.x, Tensor) for batch in batches):
        kind = next(type(batch.x).__name__ for batch in batches if not isinstance(batch.x, Tensor))
        raise ShapeMismatch(f"training on all rows takes batches of tensors, but x is a {kind}; pass refit=False")
    weights = None
    if any(batch.weights is not None for batch in batches):
        weights = torch.cat(
            [torch.ones(len(b.labels)).to(b.labels) if b.weights is None else b.weights for b in batches]
        )
    groups = None
    if all(batch.groups is not None for batch in batches):
        groups = torch.cat([batch.groups for batch in batches if batch.groups is not None])
    return Batch(torch.cat([b.x for b in batches]), torch.cat([b.labels for b in batches]), weights, groups)


def _rows_of(loader: Iterable[Any]) -> int:
    if isinstance(loader, Batches) and loader.processes.alone:
        return len(loader.whole.labels)
    return sum(len(read_batch(item).labels) for item in loader)
