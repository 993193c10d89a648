"""Rows that belong to lists, such as the documents of a query: whole lists in every batch and in every part."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from setpoint.data.rows import Rows, read_batch
from setpoint.errors import BadGroups, BadSetting
from setpoint.measure.in_first import LISTS
from setpoint.problem.problem import Problem


def batches_of_lists(lists: Tensor, size: int, generator: torch.Generator | None = None) -> list[Tensor]:
    """Row numbers of batches of about `size` rows that hold whole lists; in a random order with a `generator`.

    A list is in the batch that its last row falls into, so a batch may be larger by the rows of one list.

    Example:
        >>> import torch
        >>> from setpoint.data.in_lists import batches_of_lists
        >>> [rows.tolist() for rows in batches_of_lists(torch.tensor([5, 3, 5, 3, 9]), 2)]
        [[1, 3], [0, 2], [4]]
    """
    _, numbers, sizes = lists.unique(return_inverse=True, return_counts=True)
    order = torch.arange(len(sizes)) if generator is None else torch.randperm(len(sizes), generator=generator)
    turn = torch.empty_like(order)
    turn[order] = torch.arange(len(order))
    batch = (sizes[order].cumsum(0) - 1) // size
    held = torch.zeros(int(batch.max()) + 1 if len(batch) else 0, dtype=torch.long).index_add(0, batch, sizes[order])
    return list(turn[numbers].argsort(stable=True).split(held[held > 0].tolist()))


def labels_of_lists(labels: Tensor, lists: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each list has a positive row, 0 or 1, and the number of the list of each row, from 0 up."""
    numbers = lists.unique(return_inverse=True)[1]
    found = torch.zeros(int(numbers.max()) + 1 if len(numbers) else 0, device=labels.device)
    return found.scatter_reduce(0, numbers, (labels > 0).float(), "amax"), numbers


def refuse_odd_lists(problem: Problem, loaders: dict[str, Iterable[Any] | None]) -> None:
    """Refuse loaders whose rows have no lists though the ask is about lists, or share a list with another loader.

    Loaders that can be read only once are not looked at.
    """
    seen = {name: _lists(loader) for name, loader in loaders.items() if loader is not None}
    for name, (known, lists) in seen.items():
        if known and (lists is None) == (problem.kind == LISTS):
            if lists is not None:
                raise BadGroups(f"the {name} rows have lists, but '{problem}' is not about lists; leave them out")
            raise BadGroups(
                f"'{problem}' is about lists, but the {name} rows have none; pass sp.Batches(...).with_lists(lists)"
            )
    for (one, (_, first)), (other, (_, second)) in combinations(seen.items(), 2):
        if first is not None and second is not None and first is not second:
            shared = first[torch.isin(first, second)]
            if len(shared):
                raise BadGroups(
                    f"list {int(shared[0])} has rows among the {one} rows and among the {other} rows; give all rows of "
                    "a list to one of them, and different lists different numbers"
                )


def refuse_processes(problem: Problem, alone: bool) -> None:
    """Refuse several processes, which would each hold a part of a list."""
    if problem.kind == LISTS and not alone:
        raise BadSetting(f"'{problem}' is about lists, which one process trains; start without torchrun")


def _lists(loader: Iterable[Any]) -> tuple[bool, Tensor | None]:
    """Whether the rows of a loader are known, and the list of each."""
    rows = getattr(loader, "resident", None)
    if isinstance(rows, Rows):
        return True, rows.lists
    if not isinstance(loader, list | tuple) or not loader:
        return False, None
    each = [read_batch(item).lists for item in loader]
    found = [lists for lists in each if lists is not None]
    return True, torch.cat(found) if len(found) == len(each) else None
