"""Whether rows of one loader are among those of others: a threshold is to be set on rows of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from setpoint.data.batch import resident
from setpoint.data.rows import read_batch
from setpoint.data.sketch import Hashes, row_hashes

#: A smaller share of rows that are known changes little.
LEAST = 0.01


def shared_rows(loader: Iterable[Any], others: Sequence[Iterable[Any]], *, look: bool) -> str:
    """How many rows of a loader are among those of others, such as "all"; empty if none are, or nobody knows.

    Rows are compared by their features where they are in memory. As many as chance explains do not count: as many as
    the others repeat among themselves.

    Args:
        loader: The rows that are to be new.
        others: Loaders that have other rows.
        look: Whether to compare rows, and not only loaders and datasets.
    """
    if any(_is_same(loader, other) for other in others):
        return "all"
    own, theirs = (_hashes([loader]), _hashes(others)) if look else (None, None)
    if own is None or theirs is None:
        return ""
    times = np.unique(theirs, return_counts=True)[1]
    known, by_chance = int(np.isin(own, theirs).sum()), len(own) * (times[times > 1].sum() + 3) / len(theirs)
    return f"{known} of {len(own)}" if known > max(by_chance + 5 * by_chance**0.5, LEAST * len(own)) else ""


def _is_same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether two loaders are one, or give all rows of one dataset."""
    if one is other:
        return True
    both = [loader for loader in (one, other) if isinstance(loader, DataLoader)]
    whole = all(type(loader.sampler) in (SequentialSampler, RandomSampler) for loader in both)
    return len(both) == 2 and whole and both[0].dataset is both[1].dataset


def _hashes(loaders: Sequence[Iterable[Any]]) -> Hashes | None:
    """A hash of the features of each row that is in memory as a tensor; None if no rows are."""
    found = []
    for loader in loaders:
        rows = resident(loader)
        batches = [rows] if rows is not None else map(read_batch, loader) if isinstance(loader, list | tuple) else []
        for x in (batch.x for batch in batches):
            if isinstance(x, Tensor) and x.numel():
                found.append(row_hashes(x.detach().cpu().reshape(len(x), -1), torch.zeros(len(x))))
    return np.concatenate(found) if found else None
