"""Splitting rows that are in memory: at random, with the same mix of classes (and of groups) in every part.

Rows of one cluster stay together where clusters are given, and rows are split by their time where that is given.
Rows of a stream are split by a hash of their numbers (`data/stream.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from setpoint.data.in_lists import labels_of_lists
from setpoint.data.rows import Rows, read_batch
from setpoint.errors import BadSetting, TooFewSamples

#: Smaller strata of rows with several labels are not split apart.
SMALLEST = 10


def strata(labels: Tensor, groups: Tensor | None = None) -> list[Tensor]:
    """The row numbers of each class, or of each class in each group; rows of several labels by their rarest one."""
    codes = _rarest(labels) if labels.dim() == 2 else labels.long()
    n_classes = max(2, int(codes.max()) + 1) if groups is not None and len(codes) else 2
    kinds = codes if groups is None else n_classes * groups.long() + codes
    return [(kinds == kind).nonzero().squeeze(-1) for kind in kinds.unique()]


def _rarest(labels: Tensor) -> Tensor:
    """Which of its labels, had or lacked, is the rarest one of each row; a stratum that is too small joins the largest.

    Parts that share each stratum fairly share each label about fairly.
    """
    kinds = torch.cat([labels == 1, labels == 0], dim=1)
    ranked = kinds[:, kinds.sum(0).argsort(stable=True)]
    codes = torch.where(ranked.any(1), ranked.long().argmax(1), ranked.shape[1])
    sizes = torch.bincount(codes, minlength=ranked.shape[1] + 1)
    return torch.where(sizes[codes] < SMALLEST, sizes.argmax(), codes)


def every_other(kinds: list[Tensor], side: int) -> Tensor:
    """Every second row of each stratum, from its first (side 0) or its second (side 1) row on."""
    return torch.cat([rows[side::2] for rows in kinds])


def split(
    labels: Tensor,
    shares: Sequence[float],
    seed: int,
    groups: Tensor | None = None,
    names: Sequence[str] = (),
    lists: Tensor | None = None,
    *,
    in_each: bool = True,
) -> list[Tensor]:
    """Row numbers of one part per share, in ascending order, drawn at random from each class (in each group) apart.

    A class (of a group) with too few rows for one `in_each` part that has a share is refused; by its name, if the
    classes have `names`. Rows of `lists` are drawn list by list: those with a positive row and those without apart,
    where both are many enough.

    Example:
        >>> import torch
        >>> from setpoint.data.split import split
        >>> [rows.tolist() for rows in split(torch.tensor([0, 0, 1, 1]), (0.5, 0.5), seed=0)]
        [[1, 2], [0, 3]]
    """
    if lists is not None:
        return _split_lists(*labels_of_lists(labels, lists), shares, seed)
    draw = torch.Generator().manual_seed(seed)
    edges = torch.tensor(shares, dtype=torch.float64).cumsum(0)
    part_of = torch.full((len(labels),), len(shares), dtype=torch.uint8)
    for kind in reversed(strata(labels, groups)):
        rows = kind[torch.randperm(len(kind), generator=draw)]
        ends = [0, *(edges * len(rows)).round().long().tolist()]
        for place, (start, end) in enumerate(pairwise(ends)):
            if in_each and start >= end and shares[place] > 0:
                held = f"{len(rows)} row{'' if len(rows) == 1 else 's'}{'' if groups is None else ' in one group'}"
                parts = [share for share in shares if share > 0]
                which = _which(labels[rows[0]], names)
                raise TooFewSamples(
                    f"{which} has {held}, too few to split into "
                    f"{len(parts)} parts with at least one in each; {math.ceil(1 / min(parts))} are enough"
                )
            part_of[rows[start:end]] = place
    found = [(part_of == place).nonzero().squeeze(-1) for place in range(len(shares))]
    if labels.dim() == 2:
        _refuse_rare_labels(labels, [rows for rows, share in zip(found, shares) if share > 0], names)
    return found


def _refuse_rare_labels(labels: Tensor, parts: Sequence[Tensor], names: Sequence[str]) -> None:
    """Refuse parts in which some label has no row that has it, or none that lacks it."""
    for place, column in enumerate(labels.unbind(1)):
        for value, told in ((1, "have"), (0, "lack")):
            if not all(bool((column[rows] == value).any()) for rows in parts):
                name = repr(names[place]) if names else str(place)
                rows_of_kind = f"{int((column == value).sum())} rows {told} label {name}"
                raise TooFewSamples(
                    f"{rows_of_kind}, too few to split into {len(parts)} parts with at least one in each; bring more "
                    "such rows, or leave the label out"
                )


def _which(label: Tensor, names: Sequence[str]) -> str:
    if label.dim():
        return "the table"
    return f"class {names[int(label)]!r}" if names else f"the {'positive' if label > 0 else 'negative'} class"


def _split_lists(found: Tensor, numbers: Tensor, shares: Sequence[float], seed: int) -> list[Tensor]:
    """Row numbers of one part per share that holds whole lists."""
    for labels in (found, torch.zeros_like(found)):
        try:
            parts = split(labels, shares, seed)
        except TooFewSamples:
            continue
        return [torch.isin(numbers, part).nonzero().squeeze(-1) for part in parts]
    some = [share for share in shares if share > 0]
    raise TooFewSamples(
        f"there are {len(found)} lists, too few to split into {len(some)} parts with at least one in each; "
        f"{math.ceil(1 / min(some))} are enough"
    )


def split_clusters(
    labels: Tensor, shares: Sequence[float], seed: int, clusters: Tensor, names: Sequence[str] = ()
) -> list[Tensor]:
    """Row numbers of one part per share, all rows of a cluster in one part; a share is one of the clusters.

    Clusters are drawn from those of each highest class apart, so that clusters with positives are in every part.

    Example:
        >>> import torch
        >>> from setpoint.data.split import split_clusters
        >>> labels, clusters = torch.tensor([0, 1, 0, 0, 1, 0]), torch.tensor([0, 0, 1, 1, 2, 3])
        >>> [rows.tolist() for rows in split_clusters(labels, (0.5, 0.5), 0, clusters)]
        [[0, 1, 5], [2, 3, 4]]
    """
    highest = torch.zeros(int(clusters.max()) + 1, dtype=labels.dtype).scatter_reduce_(0, clusters, labels, "amax")
    drawn = split(highest, shares, seed, in_each=False)
    parts = [torch.isin(clusters, own).nonzero().squeeze(-1) for own in drawn]
    return _with_all_classes(labels, shares, parts, "its clusters", names)


def folds_of_clusters(labels: Tensor, clusters: Tensor, most: int, seed: int) -> Tensor:
    """The number of the fold of each row, all rows of a cluster in one fold; fewer folds if one would lack a class.

    Raises:
        TooFewSamples: If two folds of whole clusters cannot hold all classes.

    Example:
        >>> import torch
        >>> from setpoint.data.split import folds_of_clusters
        >>> folds_of_clusters(torch.tensor([0, 1, 0, 1, 1, 0]), torch.tensor([7, 7, 8, 8, 9, 9]), 2, 0).tolist()
        [0, 0, 1, 1, 0, 0]
    """
    numbers = clusters.unique(return_inverse=True)[1]
    for folds in range(most, 1, -1):
        try:
            parts = split_clusters(labels, (1 / folds,) * folds, seed, numbers)
        except TooFewSamples:
            if folds == 2:
                raise
            continue
        number = torch.zeros(len(labels), dtype=torch.long)
        for place, own in enumerate(parts):
            number[own] = place
        return number
    return torch.zeros(len(labels), dtype=torch.long)


def split_by_time(labels: Tensor, shares: Sequence[float], times: Tensor, names: Sequence[str] = ()) -> list[Tensor]:
    """Row numbers of one part per share, in the order of time; rows of the same time stay together.

    Example:
        >>> import torch
        >>> from setpoint.data.split import split_by_time
        >>> labels, times = torch.tensor([0, 1, 0, 1]), torch.tensor([7, 1, 1, 9])
        >>> [rows.tolist() for rows in split_by_time(labels, (0.5, 0.5), times)]
        [[1, 2], [0, 3]]
    """
    rising = times.sort().values
    edges = (torch.tensor(shares, dtype=torch.float64).cumsum(0)[:-1] * len(times)).round().long()
    # A time belongs to the part of the last row before the edge.
    borders = rising[(edges - 1).clamp(min=0)]
    part_of = torch.searchsorted(borders, times)
    parts = [(part_of == place).nonzero().squeeze(-1) for place in range(len(shares))]
    return _with_all_classes(labels, shares, parts, "its time", names)


def _with_all_classes(
    labels: Tensor, shares: Sequence[float], parts: list[Tensor], why: str, names: Sequence[str]
) -> list[Tensor]:
    """The parts, refused if one with a share lacks a class."""
    for place, rows in enumerate(parts):
        absent = [kind for kind in labels.unique().tolist() if shares[place] > 0 and not (labels[rows] == kind).any()]
        if absent:
            two = "positive class" if absent[0] > 0 else "negative class"
            which = f"class {names[int(absent[0])]!r}" if names else f"the {two}"
            raise TooFewSamples(
                f"part {place + 1} of {len(parts)} has {len(rows)} rows by {why}, and none of {which}; choose other "
                "shares, or bring more rows"
            )
    return parts


def deal(labels: Tensor, groups: Tensor | None, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows dealt at random into two parts, of which the second has exactly `size`, each class in its share.

    The rows of each class in each group, shuffled, are laid in one line, and every n / size-th of the line is taken:
    a class of m rows gives m * size / n of them, rounded up or down.
    """
    draw = torch.Generator().manual_seed(seed)
    line = torch.cat([kind[torch.randperm(len(kind), generator=draw)] for kind in strata(labels.cpu(), groups)])
    taken = (torch.arange(len(line) + 1) * size // max(len(line), 1)).diff() > 0
    return line[~taken], line[taken]


def halves(loader: Iterable[Any]) -> tuple[list[Rows], list[Rows]]:
    """Two loaders, of one random half of the rows each, always the same ones; the batches are kept in memory."""
    draw = torch.Generator().manual_seed(0)
    first: list[Rows] = []
    second: list[Rows] = []
    seen = 0
    for batch in map(read_batch, loader):
        if not isinstance(batch.x, Tensor):
            kind = type(batch.x).__name__
            raise BadSetting(f"batches of {kind} cannot be split in two; pass calibration=, data that choose nothing")
        if batch.lists is not None:
            two = split(batch.labels, (0.5, 0.5), 0, lists=batch.lists)
            first.append(batch.take(two[0]))
            second.append(batch.take(two[1]))
            continue
        rows = torch.randperm(len(batch.labels), generator=draw)
        size = (seen + len(rows)) // 2 - seen // 2
        seen += len(rows)
        first.append(batch.take(rows[size:]))
        second.append(batch.take(rows[:size]))
    return [b for b in first if len(b.labels)], [b for b in second if len(b.labels)]
