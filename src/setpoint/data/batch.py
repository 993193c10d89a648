"""Batches: whatever a loader yields, under fixed names; and a loader for tables that are in memory."""

from __future__ import annotations

import copy
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from setpoint.data.sparse import AT_ONCE, SparseRows, sparse_rows
from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.processes import ALONE, Processes, ProcessGroup

_NAMES = ("x", "labels", "weights", "groups", "index")
T = TypeVar("T")


@dataclass(frozen=True)
class Batch:
    """The input of the model and what is known of each of its rows."""

    x: Any
    labels: Tensor
    weights: Tensor | None = None
    groups: Tensor | None = None
    index: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with every tensor in it changed."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in _NAMES}
        return Batch(**{name: change(p) if isinstance(p, Tensor) else p for name, p in parts.items()})


class OnEach(list[Batch]):
    """Batches that each process holds by itself, so that nothing has to be gathered to judge them."""


class Coming(Iterator[T]):
    """An iterator whose next items can be looked at before they are taken."""

    def __init__(self, items: Iterable[T]) -> None:
        self.items = iter(items)
        self.read: deque[T] = deque()

    def __next__(self) -> T:
        return self.read.popleft() if self.read else next(self.items)

    def peek(self, number: int) -> list[T]:
        """The next items, so many or as many as there are."""
        self.read.extend(itertools.islice(self.items, max(number - len(self.read), 0)))
        return [*itertools.islice(self.read, number)]


def read_batches(loader: Iterable[Any], device: torch.device) -> Iterator[Batch]:
    """Batches of any loader: `(x, labels)`, `(x, labels, weights)`, or a mapping with the names of `Batch`."""
    for item in loader:
        batch = read_batch(item)
        for name in _NAMES[1:]:
            part = getattr(batch, name)
            if part is not None and not isinstance(part, Tensor):
                kind = type(part).__name__
                raise ShapeMismatch(
                    f"{name} in a batch must be a tensor, but are a {kind}; use torch.as_tensor({name})"
                )
        here = all(not isinstance(part, Tensor) or part.device == device for part in vars(batch).values())
        yield batch if here else batch.map(lambda part: part.to(device))


def read_batch(item: Any) -> Batch:
    """One item of a loader as a `Batch`."""
    if isinstance(item, Batch):
        return item
    if isinstance(item, Mapping):
        if not {"x", "labels"} <= item.keys() <= set(_NAMES):
            raise ShapeMismatch(
                f"a batch that is a mapping needs x and labels, and may hold {_NAMES[2:]}; got {list(item)}"
            )
        return Batch(**item)
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return Batch(*item)
    kind = f"{len(item)} parts" if isinstance(item, tuple | list) else type(item).__name__
    raise ShapeMismatch(f"a loader must yield (x, labels), (x, labels, weights) or a mapping, but yielded {kind}")


def join_batches(batches: list[Batch]) -> Batch:
    """One batch of several; weights are 1 where only others have them. Numbers of rows mean nothing any more."""
    if len(batches) == 1:
        return batches[0]
    weights = groups = None
    if any(batch.weights is not None for batch in batches):
        weights = torch.cat(
            [torch.ones(len(b.labels)).to(b.labels) if b.weights is None else b.weights for b in batches]
        )
    if all(batch.groups is not None for batch in batches):
        groups = torch.cat([batch.groups for batch in batches if batch.groups is not None])
    return Batch(torch.cat([b.x for b in batches]), torch.cat([b.labels for b in batches]), weights, groups)


def halves(loader: Iterable[Any]) -> tuple[list[Batch], list[Batch]]:
    """Two loaders, of one random half of the rows each, always the same ones; the batches are kept in memory."""
    draw = torch.Generator().manual_seed(0)
    first: list[Batch] = []
    second: list[Batch] = []
    seen = 0
    for batch in map(read_batch, loader):
        if not isinstance(batch.x, Tensor):
            kind = type(batch.x).__name__
            raise BadSetting(f"batches of {kind} cannot be split in two; pass calibration=, data that choose nothing")
        rows = torch.randperm(len(batch.labels), generator=draw)
        size = (seen + len(rows)) // 2 - seen // 2
        seen += len(rows)
        first.append(batch.map(partial(_take, rows[size:])))
        second.append(batch.map(partial(_take, rows[:size])))
    return [b for b in first if len(b.labels)], [b for b in second if len(b.labels)]


def _take(rows: Tensor, part: Tensor) -> Tensor:
    return part[rows]


def _cut(rows: slice, part: Tensor) -> Tensor:
    return part[rows]


class Batches:
    """A loader over tensors in memory: whole batches by index, no Python a row, no worker processes.

    `batch_size=None` yields everything at once. Each pass draws a new order when `shuffle` is set, from `seed`.
    With a `process_group` (True: the default one) each of its processes, all of which hold all rows, yields its share
    of every batch.
    Sparse `x`, of torch or of scipy, stays sparse, and each batch of it, of 4,096 rows if not told, is made dense.
    A checkpoint tells its data from others by a hash of all rows, or by `content`, if they have a name that does.
    """

    def __init__(
        self,
        x: Tensor | Any,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        batch_size: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        process_group: ProcessGroup = False,
        content: str | None = None,
    ) -> None:
        x = sparse_rows(x)
        if len(x) != len(labels):
            raise ShapeMismatch(f"x has {len(x)} rows but labels {len(labels)}")
        if batch_size is not None and (
            isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1
        ):
            raise BadSetting(f"batch_size must be a whole number from 1 up, got {batch_size!r}")
        self.whole = Batch(x, labels, weights, groups, torch.arange(len(x)))
        self.batch_size = batch_size or min(max(len(x), 1), AT_ONCE if isinstance(x, SparseRows) else len(x) or 1)
        self.shuffle = shuffle
        self.generator = torch.Generator().manual_seed(seed)
        self.processes = Processes.of(process_group)
        self.content = content

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.whole.labels)

    def whole_on_each(self) -> Batches:
        """The same for a process by itself, whichever others there are."""
        rows = copy.copy(self)
        rows.processes = ALONE
        return rows

    def in_order(self) -> Batches:
        """The same rows as they lie; all at once, and not copied, unless they are sparse."""
        rows = copy.copy(self)
        rows.shuffle = False
        if not isinstance(self.whole.x, SparseRows):
            rows.batch_size = max(len(self.whole.labels), 1)
        return rows

    def __len__(self) -> int:
        return math.ceil(len(self.whole.labels) / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        size = len(self.whole.labels)
        alone = self.processes.alone
        if not self.shuffle and alone and not isinstance(self.whole.x, SparseRows):
            if self.batch_size >= size:
                yield self.whole
                return
            for start in range(0, size, self.batch_size):
                yield self.whole.map(partial(_cut, slice(start, start + self.batch_size)))
            return
        order = torch.randperm(size, generator=self.generator) if self.shuffle else torch.arange(size)
        for rows in order.split(self.batch_size):
            yield self._batch(rows if alone else rows.tensor_split(self.processes.size)[self.processes.rank])

    def _batch(self, rows: Tensor) -> Batch:
        """The batch of these rows; their numbers are its index."""
        whole = self.whole
        weights, groups = (None if p is None else p.index_select(0, rows) for p in (whole.weights, whole.groups))
        return Batch(whole.x.index_select(0, rows), whole.labels.index_select(0, rows), weights, groups, rows)
