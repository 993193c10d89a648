"""Whether rows of one loader are among those of others: a threshold is to be set on rows of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from setpoint.data.batch import resident
from setpoint.data.rows import SparseRows, read_batch
from setpoint.data.sketch import Hashes, row_hashes

#: A smaller share of rows that are known changes little.
LEAST = 0.01
#: Sparse rows that are made dense at a time.
SPARSE = 1024


def shared_rows(loader: Iterable[Any], others: Sequence[Iterable[Any]], *, look: bool) -> str:
    """How many rows of a loader are among those of others, such as "all"; empty if none are, or nobody knows.

    Rows are compared by their features where they are in memory. As many as chance explains do not count: features with
    few values repeat.

    Args:
        loader: The rows that are to be new.
        others: Loaders that have other rows.
        look: Whether to compare rows, and not only loaders and datasets.
    """
    if any(_is_same(loader, other) for other in others):
        return "all"
    own = _hashes(loader) if look else None
    if own is None:
        return ""
    theirs = [found for found in map(_hashes, others) if found is not None]
    beyond_chance = [_known(own, rows) > _most_by_chance(len(own), place, theirs) for place, rows in enumerate(theirs)]
    return f"{_known(own, np.concatenate(theirs))} of {len(own)}" if any(beyond_chance) else ""


def _known(own: Hashes, theirs: Hashes) -> int:
    return int(np.isin(own, theirs).sum())


def _most_by_chance(rows: int, place: int, theirs: Sequence[Hashes]) -> float:
    """How many of so many new rows chance may put among those of a loader.

    The share is that of the rows that repeat there, or of the rows of another loader that are there, whichever is
    smaller: rows that training repeats on purpose, and loaders that are one, say nothing on chance.
    """
    times = np.unique(theirs[place], return_counts=True)[1]
    # Rows that repeat come in pairs, which are counted once.
    shares = [2 * _most(int(times[times > 1].sum()) / 2) / len(theirs[place])]
    shares += [_most(_known(other, theirs[place])) / len(other) for k, other in enumerate(theirs) if k != place]
    expected = rows * min(shares)
    return max(expected + 5 * math.sqrt(expected), LEAST * rows)


def _most(found: float) -> float:
    """The most that may be expected where so many were found; in 1 of 1,000 cases of none, 7 were expected."""
    return found + 7 + 5 * math.sqrt(found)


def _is_same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two loaders are one, or give all rows of one dataset."""
    if one is other:
        return True
    both = [loader for loader in (one, other) if isinstance(loader, DataLoader)]
    return len(both) == 2 and all(map(_gives_all, both)) and both[0].dataset is both[1].dataset


def _gives_all(loader: DataLoader[Any]) -> bool:
    """Whether a loader gives all rows of its dataset; a batch sampler of one's own may give any."""
    sampler, batches = loader.sampler, loader.batch_sampler
    if batches is not None and (type(batches) is not BatchSampler or batches.sampler is not sampler):
        return False
    if type(sampler) is RandomSampler:
        return sampler.num_samples >= len(sampler.data_source)
    return type(sampler) is SequentialSampler


def _hashes(loader: Iterable[Any]) -> Hashes | None:
    """A hash of the features of each row that is in memory as a tensor or sparse; None if no rows are."""
    rows = resident(loader)
    batches = [rows] if rows is not None else map(read_batch, loader) if isinstance(loader, list | tuple) else []
    found = []
    for x in (batch.x for batch in batches):
        if isinstance(x, SparseRows):
            found += [_hashed(x.index_select(0, part)) for part in torch.arange(len(x)).split(SPARSE)]
        elif isinstance(x, Tensor) and x.numel():
            found.append(_hashed(x.detach().cpu()))
    return np.concatenate(found) if found else None


def _hashed(x: Tensor) -> Hashes:
    return row_hashes(x.reshape(len(x), -1), torch.zeros(len(x)))
