"""A sketch of the rows of a table: hashes of a few of them, by which a later table is known to hold the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: The number of hashes that are kept: the smallest ones, so that any table that holds the rows has them too.
SIZE = 512
#: Tables in which more rows repeat each other are not sketched: new rows would be taken for old ones.
DISTINCT = 0.95
#: Fewer rows within reach of the sketch say nothing about a table.
FEWEST = 20
#: Rows that are hashed at a time, few enough for the cache, and the most numbers in them.
_CHUNK, _NUMBERS = 4_096, 2**20

Hashes = NDArray[np.uint64]


def row_hashes(x: Tensor, labels: Tensor) -> Hashes:
    """A hash of each row's features `(n, d)` and label, the same on any machine of the same byte order."""
    factors = np.random.default_rng(0x5E7).integers(1, 2**63, x.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    if labels.dim() == 2:
        # The labels of a row as one number; those that are not known are a third value.
        labels = labels.nan_to_num(2.0).long() @ 3 ** torch.arange(labels.shape[1]).clamp(max=30)
    parts, chunk = [], max(1, min(_CHUNK, _NUMBERS // max(1, x.shape[1])))
    for start in range(0, len(labels), chunk):
        # The sum with 0 makes a 0 of -0, which is equal and has other bits.
        bits = (x[start : start + chunk].float().numpy() + np.float32(0)).view(np.uint32).astype(np.uint64)
        own = labels[start : start + chunk].numpy().astype(np.uint64)
        parts.append(_mixed(_mixed(bits) @ factors[:-1] + own * factors[-1]))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def sketch_of(hashes: Hashes) -> tuple[int, ...]:
    """The smallest hashes in ascending order; none where rows repeat each other."""
    # By a sort: NumPy finds distinct whole numbers by a table of hashes, which takes ten times as long.
    ordered = np.sort(hashes)
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
    if len(distinct) < DISTINCT * len(hashes):
        return ()
    return tuple(distinct[:SIZE].tolist())


def share_known(hashes: Hashes, sketch: Sequence[int]) -> float:
    """About the share of the different rows that the sketched table holds; 0 where the sketch reaches too few of them.

    Rows that repeat count once: a frequent one is in every table.
    """
    if not sketch:
        return 0.0
    hashes = np.unique(hashes)
    within = hashes[hashes <= np.uint64(sketch[-1])] if len(sketch) == SIZE else hashes
    if len(within) < min(FEWEST, len(hashes)) or not len(within):
        return 0.0
    return float(np.isin(within, np.array(sketch, dtype=np.uint64)).mean())
