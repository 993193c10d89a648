"""Number the samples of a loader that does not: solvers with a price a sample look it up by that number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

from setpoint.data.batch import Batches
from setpoint.data.rows import Rows, read_batch
from setpoint.processes import Processes


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
