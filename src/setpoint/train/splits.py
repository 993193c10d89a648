"""The members of an ensemble: how many there are, and which rows each is trained on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.data.batch import Batches, batches_like, resident
from setpoint.data.rows import Rows, read_batch
from setpoint.data.split import deal, split
from setpoint.errors import BadSetting


@dataclass(frozen=True)
class Seeds:
    """An ensemble of `members` that differ only by their seeds; `fit(ensemble=10)` means `Seeds(10)`.

    Args:
        members: The number of models to train.

    Raises:
        BadSetting: If `members` is not a whole number from 1 up.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.randn(90, 2), torch.arange(90) % 2
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> one = sp.methods.FullBatch(lambda: torch.nn.Linear(2, 1), sp.Ridge())
        >>> method = sp.methods.Ensembled(one, sp.methods.Seeds(3))
        >>> result = sp.fit(None, "minimize fnr where fpr <= 20%", train, held_out, method, calibration=rest)
        >>> len(result.model.members)
        3
    """

    members: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.members, bool) or not isinstance(self.members, int) or self.members < 1:
            raise BadSetting(f"an ensemble has a whole number of members from 1 up, got {self.members!r}")

    def deal(
        self, train: Iterable[Any], held_out: Iterable[Any], seed: int, member: int
    ) -> tuple[Iterable[Any], Iterable[Any]]:
        """The training and held-out rows of a member: the given ones."""
        return train, held_out


@dataclass(frozen=True)
class Splits(Seeds):
    """An ensemble of `members`, each trained on another random split into training and held-out rows.

    For each member, the training and held-out rows of `fit` are joined and split anew, into parts of the same sizes and
    with the same shares of every class (and group). Members also have different seeds. Every row is a training row of
    some member, so the threshold needs `calibration` rows.

    Args:
        members: The number of models to train.

    Raises:
        BadSetting: If `members` is not a whole number from 1 up.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.randn(90, 2), torch.arange(90) % 2
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> result = sp.fit(torch.nn.Linear(2, 1), "minimize fnr where fpr <= 20%", train, held_out,
        ...                 calibration=rest, ensemble=sp.methods.Splits(3))
        >>> len(result.model.members)
        3
    """

    def deal(self, train: Iterable[Any], held_out: Iterable[Any], seed: int, member: int) -> tuple[Batches, Batches]:
        """Split the rows for one member.

        Args:
            train: Batches in memory, as `sp.Batches` or a list.
            held_out: Batches in memory, as `train`.
            seed: The seed of the ensemble; the same seed gives the same split.
            member: The number of the member, from 0 up.

        Returns:
            The training and held-out loaders, with the sizes and settings of the given ones.

        Raises:
            BadSetting: If the rows are not in memory, or not tensors.
        """
        rows, size = Rows.join([_in_memory(train), _in_memory(held_out)]), len(_in_memory(held_out).labels)
        kept, out = self._rows_of(rows, size, seed, member)
        drawn = seed + member
        return batches_like(train, rows.take(kept), drawn), batches_like(held_out, rows.take(out), drawn)

    def _rows_of(self, rows: Rows, size: int, seed: int, member: int) -> tuple[Tensor, Tensor]:
        if rows.lists is not None:
            share = size / len(rows.labels)
            kept, out = split(rows.labels, (1 - share, share), seed + member, lists=rows.lists)
            return kept, out
        return deal(rows.labels, rows.groups, size, seed + member)


@dataclass(frozen=True)
class Folds(Splits):
    """An ensemble by cross-fitting: each member is trained on all folds of the rows but one, which is held out.

    The training and held-out rows of `fit` are joined and cut into one fold per member, with the same shares of every
    class (and group). Every row is held out exactly once, so the threshold needs `calibration` rows.

    Args:
        members: The number of folds, from 2 up.

    Raises:
        BadSetting: If `members` is not a whole number from 2 up.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.randn(90, 2), torch.arange(90) % 2
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> result = sp.fit(torch.nn.Linear(2, 1), "minimize fnr where fpr <= 20%", train, held_out,
        ...                 calibration=rest, ensemble=sp.methods.Folds(5))
        >>> len(result.model.members)
        5
    """

    members: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.members < 2:
            raise BadSetting("cross-fitting needs 2 folds or more: one of them is held out from each member")

    def _rows_of(self, rows: Rows, size: int, seed: int, member: int) -> tuple[Tensor, Tensor]:
        folds = split(rows.labels, (1 / self.members,) * self.members, seed, rows.groups, lists=rows.lists)
        return torch.cat([fold for place, fold in enumerate(folds) if place != member]).sort().values, folds[member]


def _in_memory(loader: Iterable[Any]) -> Rows:
    """All rows of a loader."""
    whole = resident(loader)
    if isinstance(loader, list | tuple) and loader:
        whole = Rows.join([read_batch(item) for item in loader])
    if whole is None:
        raise BadSetting(
            f"an ensemble over splits needs all rows in memory, as sp.Batches or a list of batches, not as "
            f"{type(loader).__name__}; or pass a number, ensemble=10, for members that differ by their seeds"
        )
    if not isinstance(whole.x, Tensor):
        raise BadSetting(f"an ensemble over splits takes dense tensors, but x is a {type(whole.x).__name__}")
    return whole
