"""Parts of the data that a training is given, and two parts pooled into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from setpoint.data.batch import Batches, resident
from setpoint.data.label_rows import of_label
from setpoint.data.layout import Block
from setpoint.data.rows import Rows, read_batch
from setpoint.errors import CannotPool
from setpoint.processes import ALONE, Processes


@dataclass(frozen=True)
class Data:
    """The loaders of a training.

    Args:
        train: Rows to learn from.
        held_out: Rows to choose by.
        calibration: Rows to set the threshold on; None sets it on the held-out rows.
        test: Rows to judge the result on.
        group_names: The names of the groups that the rows number.
        class_names: The names of the classes that the labels number, or of several labels per row; none where labels
            are 0 and 1.
        seen: Training rows to judge on, if `train` is too large to be kept; None judges on all of `train`.
        blocks: The features that come from one value of a row, as `Schema.blocks` gives them; none if all features are
            amounts.
        clusters: The number of the cluster of each calibration row, where rows of one cluster depend on each other.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(4.0).unsqueeze(-1), torch.tensor([0.0, 0.0, 1.0, 1.0])
        >>> data = sp.methods.Data(sp.Batches(x, labels), sp.Batches(x, labels))
        >>> data.comes_whole
        True
    """

    train: Iterable[Any]
    held_out: Iterable[Any]
    calibration: Iterable[Any] | None = None
    test: Iterable[Any] | None = None
    group_names: tuple[str, ...] = ()
    seen: Iterable[Any] | None = None
    blocks: tuple[Block, ...] = ()
    class_names: tuple[str, ...] = ()
    clusters: Tensor | None = None

    @property
    def outputs(self) -> int:
        """The number of scores per row that a model is to give: one, or one per class."""
        return len(self.class_names) or 1

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

    @property
    def in_memory(self) -> Iterable[Any]:
        """The training rows, or the sample of them that is kept, if they are read from a file in every pass."""
        return self.train if self.seen is None or resident(self.train) is not None else self.seen

    def on_each(self) -> Data:
        """The same with loaders that give each process all rows that it holds."""

        def alone(loader: Any) -> Any:
            return loader.whole_on_each() if isinstance(loader, Batches) else loader

        return replace(
            self, train=alone(self.train), held_out=alone(self.held_out), calibration=alone(self.calibration),
            test=alone(self.test),
        )  # fmt: skip

    def of_label(self, place: int) -> Data:
        """The same with the rows of which one of several labels is known, and that label alone."""
        parts = {name: getattr(self, name) for name in ("train", "held_out", "calibration", "test", "seen")}
        own: dict[str, Any] = {
            name: None if loader is None else of_label(loader, place) for name, loader in parts.items()
        }
        return replace(self, **own, class_names=())

    def pooled(self) -> Data:
        """The same with training and held-out rows together to learn from; held-out rows then choose nothing."""
        return replace(self, train=Pooled(self.train, self.held_out))


class Pooled:
    """The batches of one loader, each joined with its share of the rows of another loader.

    Every row comes once per pass. Only one batch of each loader is kept in memory. Rows of the other loader are
    shuffled within their batch. If processes share out both `Batches`, they also share out the added rows: together
    they make the steps of one process. `parts` are the two loaders as they were given.
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
        """The sampler of the first loader, if it has one."""
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
        # A process without batches of the first loader yields its share all the same.
        yield from others.take(other_size - dealt)

    def _own(self, piece: Rows, device: torch.device) -> Rows:
        """The share of a piece that this process takes, on the device of its batch."""
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
        """The next `size` rows, or all that are left, from one batch or several."""
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
    """The number of rows of a loader, on all processes that share it; batches other than tensors are refused."""
    if isinstance(loader, Batches) and (loader.processes.alone or not shared.alone):
        return loader.rows
    rows = 0
    for batch in map(read_batch, loader):
        if not isinstance(batch.x, Tensor):
            kind = type(batch.x).__name__
            raise CannotPool(f"training on all rows takes batches of tensors, but x is a {kind}; pass refit=False")
        rows += len(batch.labels)
    return rows
