"""Loaders: what is known of them, `Batches`, the loader of rows in memory, and numbers for the rows of any loader."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

from setpoint.data.in_lists import batches_of_lists
from setpoint.data.rows import DENSE_AT_ONCE, Rows, SparseRows, content_hash, read_batch, sparse_rows
from setpoint.errors import BadGroups, BadSetting, ShapeMismatch
from setpoint.measure.sample import read_numbers
from setpoint.processes import ALONE, Processes, ProcessGroup


class Loader(Protocol):
    """Batches with what is known of them. Any other iterable of batches is taken as well: nothing is known of it.

    `rows` is the number of rows of one pass, `resident` all of them if they are in memory, and `fingerprint` tells
    their content from any other; each is None if it is not known.
    """

    @property
    def rows(self) -> int | None: ...

    @property
    def resident(self) -> Rows | None: ...

    @property
    def fingerprint(self) -> str | None: ...

    def __iter__(self) -> Iterator[Rows]: ...


def resident(loader: Loader | Iterable[Any]) -> Rows | None:
    """All rows of a loader that holds them in memory."""
    rows = getattr(loader, "resident", None)
    return rows if isinstance(rows, Rows) else None


class OnEach(list[Rows]):
    """Batches that each process holds by itself."""

    on_each = True


class Batches:
    """A loader of tensors in memory, without Python code per row and without worker processes.

    Args:
        x: The features, one row per sample. Sparse rows, of torch or SciPy, stay sparse; each batch is made dense.
        labels: Labels `(n,)` of 0 and 1.
        weights: Weights `(n,)`, if any.
        groups: The number of the group of each sample, if any.
        batch_size: The rows per batch. None gives all rows at once, or 4,096 sparse rows.
        shuffle: Whether each pass draws a new order.
        seed: The seed of that order.
        process_group: The processes that share every batch; each must hold all rows. True is the default group, False
            this process alone.

    Raises:
        ShapeMismatch: If `x` and `labels` differ in length.
        BadSetting: If the batch size is not a whole number from 1 up.

    Example:
        >>> import torch, setpoint as sp
        >>> loader = sp.Batches(torch.randn(10, 3), torch.arange(10) % 2, batch_size=4)
        >>> [len(batch.labels) for batch in loader]
        [4, 4, 2]
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
    ) -> None:
        x = sparse_rows(x)
        if len(x) != len(labels):
            raise ShapeMismatch(f"x has {len(x)} rows but labels {len(labels)}")
        if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
            raise BadSetting(f"batch_size must be a whole number from 1 up, got {batch_size!r}")
        self.resident = Rows(x, labels, weights, groups, index=torch.arange(len(x)))
        self.batch_size = batch_size or min(max(len(x), 1), DENSE_AT_ONCE if isinstance(x, SparseRows) else len(x) or 1)
        self.shuffle = shuffle
        self.generator = torch.Generator().manual_seed(seed)
        self.processes = Processes.of(process_group)
        self.content: str | None = None
        self.on_each = False

    def with_values(self, values: Tensor | None) -> Batches:
        """The same rows with the values of the columns that the ask names, `(n, C)`."""
        rows = copy.copy(self)
        rows.resident = replace(self.resident, values=values)
        return rows

    def with_clusters(self, clusters: Tensor | None) -> Batches:
        """The same rows with the number of the cluster of each, which folds keep together; None changes nothing."""
        rows = copy.copy(self)
        rows.resident = replace(self.resident, clusters=clusters)
        return rows

    def with_lists(self, lists: Any) -> Batches:
        """The same rows with the number of the list of each, for asks about lists; batches then hold whole lists.

        Args:
            lists: One whole number per row. A list has the same number in all loaders of a training.

        Returns:
            A loader of the same rows. A batch has about `batch_size` rows: as many whole lists as come to that.

        Raises:
            ShapeMismatch: If there is not one number per row.
            BadGroups: If lists are no whole numbers.
        """
        numbers = read_numbers(lists, "lists", BadGroups, "; number the lists first")
        if numbers.shape != self.resident.labels.shape[:1]:
            raise ShapeMismatch(f"{self.rows} rows came with lists of shape {tuple(numbers.shape)}")
        if numbers.is_floating_point() or numbers.dtype == torch.bool:
            raise BadGroups(
                f"lists must be whole numbers, one per row, but are {numbers.dtype}; number the lists first"
            )
        rows = copy.copy(self)
        rows.resident = replace(self.resident, lists=numbers.long())
        return rows

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.resident.labels)

    @property
    def fingerprint(self) -> str:
        """The name of the content, or else a hash of all rows."""
        return self.content or content_hash(self.resident)

    def known_as(self, content: str | None) -> Batches:
        """The same rows under a name that tells them from any others: a checkpoint then takes no hash of all rows."""
        rows = copy.copy(self)
        rows.content = content
        return rows

    def whole_on_each(self) -> Batches:
        """The same for a process by itself, whichever others there are."""
        rows = copy.copy(self)
        rows.on_each = not self.processes.alone
        rows.processes = ALONE
        return rows

    def in_order(self) -> Batches:
        """The same rows as they lie; all at once, and not copied, unless they are sparse."""
        rows = copy.copy(self)
        rows.shuffle = False
        if not isinstance(self.resident.x, SparseRows):
            rows.batch_size = max(self.rows, 1)
        return rows

    def __len__(self) -> int:
        return math.ceil(self.rows / self.batch_size)

    def __iter__(self) -> Iterator[Rows]:
        size, alone, lists = self.rows, self.processes.alone, self.resident.lists
        if lists is not None and self.batch_size < size:
            yield from map(
                self.resident.take, batches_of_lists(lists, self.batch_size, self.generator if self.shuffle else None)
            )
            return
        if not self.shuffle and alone and not isinstance(self.resident.x, SparseRows):
            for start in range(0, max(size, 1), self.batch_size):
                yield self.resident.take(slice(start, start + self.batch_size))
            return
        order = torch.randperm(size, generator=self.generator) if self.shuffle else torch.arange(size)
        for rows in order.split(self.batch_size):
            yield self.resident.take(rows if alone else rows.tensor_split(self.processes.size)[self.processes.rank])


def in_order(loader: Iterable[Any], *, whole: bool = False) -> Iterable[Any]:
    """The batches of a loader, rows in memory as they lie; if `whole`, all rows on each process that shares them."""
    if not isinstance(loader, Batches):
        return loader
    return (loader.whole_on_each() if whole else loader).in_order()


def is_on_each(loader: Iterable[Any]) -> bool:
    """Whether each process holds all rows of a loader by itself, so that nothing has to be gathered to judge them."""
    return bool(getattr(loader, "on_each", False))


def batches_like(loader: Iterable[Any], rows: Rows, seed: int) -> Batches:
    """A loader of other rows with the settings of one in memory, `Batches` or a list, in an order of its own."""
    if isinstance(loader, Batches):
        fresh = copy.copy(loader)
        fresh.content = None if loader.content is None else f"{loader.content}, split {seed}"
    else:
        fresh = Batches(rows.x, rows.labels, batch_size=max(len(read_batch(item).labels) for item in loader))
    fresh.resident = replace(rows, index=torch.arange(len(rows.labels)))
    fresh.generator = torch.Generator().manual_seed(seed)
    return fresh


def in_batches(loader: Iterable[Any], size: int, seed: int) -> Iterable[Any]:
    """The same rows in memory in shuffled batches of this size; another loader as it is."""
    if not isinstance(loader, Batches):
        return loader
    fresh = batches_like(loader, loader.resident, seed)
    fresh.batch_size, fresh.shuffle, fresh.content = size, True, loader.content
    return fresh


class _Numbered(Dataset[tuple[int, Any]]):
    """A dataset whose items carry their own place."""

    def __init__(self, items: Dataset[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def __getitem__(self, place: int) -> tuple[int, Any]:
        return place, self.items[place]


@dataclass(frozen=True)
class _Collate:
    """The loader's own way to make a batch of items, with the places put beside it."""

    own: Callable[[list[Any]], Any]

    def __call__(self, rows: list[tuple[int, Any]]) -> Rows:
        places, items = zip(*rows)
        return replace(read_batch(self.own(list(items))), index=torch.tensor(places))


class _InOrder:
    """Batches in a fixed order, numbered one after the other."""

    def __init__(self, batches: Sequence[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Rows]:
        first = 0
        for item in self.batches:
            batch = read_batch(item)
            size = len(batch.labels)
            yield batch if batch.index is not None else replace(batch, index=torch.arange(first, first + size))
            first += size

    def __len__(self) -> int:
        return len(self.batches)


class _From:
    """Batches whose samples are numbered from a first place on."""

    def __init__(self, items: Iterable[Rows], first: int) -> None:
        self.items, self.first = items, first

    def __iter__(self) -> Iterator[Rows]:
        for item in self.items:
            batch = read_batch(item)
            yield batch if batch.index is None else replace(batch, index=batch.index + self.first)


def index_across(loader: Iterable[Any], processes: Processes) -> Iterable[Any]:
    """`with_index` where each process has rows of its own: those of the first come first.

    A `Batches` that is shared out and a `DistributedSampler` number the rows of all processes by themselves.
    """
    numbered = with_index(loader)
    sampler = getattr(loader, "sampler", None)
    shared_out = isinstance(loader, Batches) and not loader.processes.alone
    if processes.alone or shared_out or isinstance(sampler, DistributedSampler):
        return numbered
    sizes = processes.all_objects(sum(len(read_batch(item).labels) for item in loader))
    return _From(numbered, sum(sizes[: processes.rank]))


def with_index(loader: Iterable[Any]) -> Iterable[Any]:
    """Number the samples of a loader, for solvers that keep one price per sample.

    Args:
        loader: A `DataLoader`, or a list or tuple of batches. `sp.Batches` numbers its samples already.

    Returns:
        A loader of the same batches, each with `index`: the place of each sample in the dataset, or in the list. Any
        other loader, such as a stream, has no lasting places and is given back as it is.

    Example:
        >>> import torch, setpoint as sp
        >>> batches = [(torch.randn(2, 3), torch.tensor([0, 1])), (torch.randn(2, 3), torch.tensor([1, 0]))]
        >>> [batch.index.tolist() for batch in sp.methods.with_index(batches)]
        [[0, 1], [2, 3]]
    """
    if isinstance(loader, Batches) or not isinstance(loader, DataLoader | list | tuple):
        return loader
    if isinstance(loader, list | tuple):
        return _InOrder(loader)
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return loader
    return DataLoader(
        _Numbered(loader.dataset),
        batch_sampler=loader.batch_sampler,
        collate_fn=_Collate(loader.collate_fn),
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
    )
