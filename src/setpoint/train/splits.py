"""Ensembles over random splits: each member is trained on other rows of the table."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from setpoint.data.batch import Batch, Batches, join_batches, read_batch
from setpoint.errors import BadSetting
from setpoint.train.trial import strata


@dataclass(frozen=True)
class Seeds:
    """An ensemble of `members` that differ by their seeds alone: what a plain number stands for."""

    members: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.members, bool) or not isinstance(self.members, int) or self.members < 1:
            raise BadSetting(f"an ensemble has a whole number of members from 1 up, got {self.members!r}")

    def deal(self, train: Iterable[Any], held_out: Iterable[Any], seed: int) -> tuple[Iterable[Any], Iterable[Any]]:
        """The training and the held-out rows of a member: those given."""
        return train, held_out


@dataclass(frozen=True)
class Splits(Seeds):
    """An ensemble of `members`, each trained on another random split into training and held-out rows.

    The training and held-out rows that `fit` is given are put together and dealt out anew for each member, as many to
    either part as before, every class (and every group) in the same shares. Members also start from other seeds, as
    those of `ensemble=10` do. Every row is a training row of some member, so the threshold needs `calibration` rows.

    Args:
        members: how many models to train, from 1 up.

    Raises:
        BadSetting: `members` is not a whole number from 1 up.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.randn(90, 2), torch.arange(90) % 2
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> result = sp.fit(torch.nn.Linear(2, 1), "minimize fnr where fpr <= 20%", train, held_out,
        ...                 calibration=rest, ensemble=sp.methods.Splits(3))
        >>> len(result.model.members)
        3
    """

    def deal(self, train: Iterable[Any], held_out: Iterable[Any], seed: int) -> tuple[Batches, Batches]:
        """The training and the held-out rows of the member that `seed` belongs to.

        Args:
            train: batches in memory, `sp.Batches` or a list.
            held_out: as `train`.
            seed: which split; the same seed gives the same rows.

        Returns:
            Loaders of the same sizes and settings as those given.

        Raises:
            BadSetting: the rows are not in memory, or not tensors.
        """
        rows, size = join_batches([_in_memory(train), _in_memory(held_out)]), len(_in_memory(held_out).labels)
        kept, out = stratified(rows.labels, rows.groups, size, seed)
        return _like(train, rows, kept, seed), _like(held_out, rows, out, seed)


def stratified(labels: Tensor, groups: Tensor | None, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows dealt at random into two parts, of which the second has exactly `size`, each class in its share.

    The rows of each class in each group, shuffled, are laid in one line, and every n / size-th of the line is taken:
    a class of m rows gives m * size / n of them, rounded up or down.
    """
    draw = torch.Generator().manual_seed(seed)
    line = torch.cat([kind[torch.randperm(len(kind), generator=draw)] for kind in strata(labels.cpu(), groups)])
    taken = (torch.arange(len(line) + 1) * size // max(len(line), 1)).diff() > 0
    return line[~taken], line[taken]


def _in_memory(loader: Iterable[Any]) -> Batch:
    """All rows of a loader."""
    if isinstance(loader, Batches):
        whole = loader.whole
    elif isinstance(loader, list | tuple) and loader:
        whole = join_batches([read_batch(item) for item in loader])
    else:
        raise BadSetting(
            f"an ensemble over splits deals the rows out anew, so it takes them in memory, as sp.Batches or a list of "
            f"batches, not as {type(loader).__name__}; or name a number, ensemble=10, for one over seeds"
        )
    if not isinstance(whole.x, Tensor):
        raise BadSetting(f"an ensemble over splits takes dense tensors, but x is a {type(whole.x).__name__}")
    return whole


def _like(loader: Iterable[Any], rows: Batch, chosen: Tensor, seed: int) -> Batches:
    """A loader of the chosen rows in batches of the same size, in an order of its own."""
    if isinstance(loader, Batches):
        fresh = copy.copy(loader)
        fresh.content = None if loader.content is None else f"{loader.content}, split {seed}"
    else:
        sizes = [len(read_batch(item).labels) for item in loader]
        fresh = Batches(rows.x, rows.labels, batch_size=max(sizes))
    picked = rows.map(partial(_pick, chosen))
    fresh.whole = Batch(picked.x, picked.labels, picked.weights, picked.groups, torch.arange(len(chosen)))
    fresh.generator = torch.Generator().manual_seed(seed)
    return fresh


def _pick(chosen: Tensor, part: Tensor) -> Tensor:
    return part[chosen.to(part.device)]
