"""Parts of the data that a training is given, and two parts pooled into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from setpoint.data.batch import Batches, resident
from setpoint.data.rows import Rows, read_batch
from setpoint.errors import CannotPool
from setpoint.processes import ALONE, Processes


@dataclass(frozen=True)
class Data:
    """Loaders of rows to learn from, to choose by, to set the threshold on, and to judge the result on.

    `group_names` are the names of the groups that the rows number, where they have any. `seen` are training rows to
    judge the result on, where `train` is too large to be kept; None judges on all of them.
    """

    train: Iterable[Any]
    held_out: Iterable[Any]
    calibration: Iterable[Any] | None = None
    test: Iterable[Any] | None = None
    group_names: tuple[str, ...] = ()
    seen: Iterable[Any] | None = None

    @property
    def comes_whole(self) -> bool:
        """Whether all training rows come in one batch, as far as their loader says."""
        size = getattr(self.train, "batch_size", None)
        rows = getattr(self.train, "rows", None)
        return size is not None and rows is not None and size >= rows

    @property
    def is_on_each(self) -> bool:
        """Whether several processes each hold all training rows, and share out every batch."""
        return isinstance(self.train, Batches) and not self.train.processes.alone

    def on_each(self) -> Data:
        """The same where a process holds all rows and keeps them to itself."""

        def alone(loader: Any) -> Any:
            return loader.whole_on_each() if isinstance(loader, Batches) else loader

        return replace(
            self, train=alone(self.train), held_out=alone(self.held_out), calibration=alone(self.calibration),
            test=alone(self.test),
        )  # fmt: skip

    def pooled(self) -> Data:
        """Training and held-out rows together to learn from; the held-out rows choose nothing any more."""
        return replace(self, train=Pooled(self.train, self.held_out))


class Pooled:
    """The batches of one loader, each with its share of the rows of another, all of which come once in every pass.

    Nothing is kept in memory but one batch of each. The other loader's batches are shuffled within themselves. Of two
    `Batches` that processes share out, what is dealt is shared out too: together they make the steps of one process.
    `parts` are the two loaders as they were given.
    """

    fingerprint: str | None = None

    def __init__(self, batches: Iterable[Any], others: Iterable[Any], seed: int = 0) -> None:
        self.parts = (batches, others)
        self.shared, self.step = ALONE, 0
        if isinstance(batches, Batches) and isinstance(others, Batches) and not others.processes.alone:
            self.shared, self.step = batches.processes, batches.batch_size
        if isinstance(others, Batches) and not self.shared.alone:
            others = others.whole_on_each()
        self.batches, self.items = batches, others
        self.generator = torch.Generator().manual_seed(seed)

    @property
    def sampler(self) -> Any:
        """What draws the order of the first loader, if it has such a thing."""
        return getattr(self.batches, "sampler", None)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """The rows of the two loaders; to count them takes a pass over loaders that are not in memory."""
        return rows_of(self.batches, self.shared), rows_of(self.items)

    @property
    def rows(self) -> int:
        """The rows of both loaders."""
        return sum(self.sizes)

    @property
    def resident(self) -> Rows | None:
        """All rows, those of the first loader first, if both hold theirs in memory as tensors."""
        parts = [rows for loader in self.parts if (rows := resident(loader)) and isinstance(rows.x, Tensor)]
        return Rows.join(parts) if len(parts) == 2 else None

    def __iter__(self) -> Iterator[Rows]:
        size, other_size = self.sizes
        others = _Pieces(self.items, self.generator)
        seen = dealt = 0
        for batch in map(read_batch, self.batches):
            seen += len(batch.labels) if self.shared.alone else min(self.step, size - seen)
            due = round(other_size * min(seen / size, 1.0))
            pieces = [batch, *(self._own(piece, batch.labels.device) for piece in others.take(due - dealt))]
            dealt = due
            if len({piece.x.shape[1:] for piece in pieces}) == 1:
                yield Rows.join(pieces)
            else:
                # Rows that were padded to different lengths: a step each.
                yield from pieces
        # Of a process that has no others.
        yield from others.take(other_size - dealt)

    def _own(self, piece: Rows, device: torch.device) -> Rows:
        """The part of a piece that is this process's to take, where the batch is that it goes with."""
        if not self.shared.alone:
            rows = torch.arange(len(piece.labels)).tensor_split(self.shared.size)[self.shared.rank]
            piece = piece.take(rows)
        return piece.map(lambda part: part.to(device))


class _Pieces:
    """The rows of a loader in pieces of any size."""

    def __init__(self, loader: Iterable[Any], generator: torch.Generator) -> None:
        self.left, self.generator = map(read_batch, loader), generator
        self.open: Rows | None = None

    def take(self, size: int) -> list[Rows]:
        """So many rows, or all that are left, of one batch or of several."""
        pieces: list[Rows] = []
        while size > 0:
            if self.open is None or not len(self.open.labels):
                fresh = next(self.left, None)
                if fresh is None:
                    break
                order = torch.randperm(len(fresh.labels), generator=self.generator)
                self.open = fresh.take(order)
            pieces.append(self.open.take(slice(size)))
            self.open = self.open.take(slice(size, None))
            size -= len(pieces[-1].labels)
        return pieces


def rows_of(loader: Iterable[Any], shared: Processes = ALONE) -> int:
    """How many rows a loader yields, all of them tensors; on all processes that share it."""
    if isinstance(loader, Batches) and (loader.processes.alone or not shared.alone):
        return loader.rows
    rows = 0
    for batch in map(read_batch, loader):
        if not isinstance(batch.x, Tensor):
            kind = type(batch.x).__name__
            raise CannotPool(f"training on all rows takes batches of tensors, but x is a {kind}; pass refit=False")
        rows += len(batch.labels)
    return rows
