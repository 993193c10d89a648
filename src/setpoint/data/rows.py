"""Rows: features and what is known of each row. The one container from the loaders to the solvers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from setpoint.errors import BadLabels, ShapeMismatch
from setpoint.measure.sample import Sample, present_values

#: Names of a batch that is a mapping.
_NAMES = ("x", "labels", "weights", "groups", "lists", "index", "values")
#: Rows that are made dense together, unless told.
DENSE_AT_ONCE = 4096


class SparseRows:
    """A sparse matrix that gives its rows by number, dense and float32."""

    def __init__(self, rows: scipy.sparse.csr_array) -> None:
        self.rows = rows
        self.shape = rows.shape

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        """These rows as a dense tensor, as `Tensor.index_select` gives them."""
        assert dim == 0
        return torch.from_numpy(self.rows[rows.numpy()].toarray())

    @property
    def parts(self) -> list[Tensor]:
        """The stored arrays."""
        return [torch.from_numpy(np.asarray(part)) for part in (self.rows.data, self.rows.indices, self.rows.indptr)]


def sparse_rows(x: Any) -> Any:
    """Sparse matrices of torch and scipy as `SparseRows`; anything else as it is."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        coo = x.detach().cpu().to_sparse_coo().coalesce()
        x = scipy.sparse.coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
    if scipy.sparse.issparse(x):
        return SparseRows(scipy.sparse.csr_array(x).astype(np.float32))
    return x


@dataclass(frozen=True)
class Rows:
    """The input of a model and what is known of each of its rows: a batch, a part of a table, or all of it.

    Weights are 1 where there are none. Groups and lists are numbered from 0 up. `index` is the number of each row among
    all rows of its loader. `values` has one column per column that the ask counts the values of. Rows of one number in
    `clusters` depend on each other, so folds keep them together.
    """

    x: Any
    labels: Tensor
    weights: Tensor | None = None
    groups: Tensor | None = None
    lists: Tensor | None = None
    index: Tensor | None = None
    values: Tensor | None = None
    clusters: Tensor | None = None

    @property
    def weights_or_ones(self) -> Tensor:
        """The weight of each row."""
        if self.weights is not None:
            return self.weights
        number = self.labels.dtype if self.labels.is_floating_point() else torch.get_default_dtype()
        return self.labels.new_ones(len(self.labels), dtype=number)

    @property
    def n_groups(self) -> int | None:
        """The number of groups, if rows have groups."""
        return None if self.groups is None else int(self.groups.max()) + 1

    def sample(self, scores: Tensor) -> Sample:
        """The scores of these rows, with their labels, weights, groups and lists."""
        return Sample(scores, self.labels, self.weights, self.groups, values=self.values, lists=self.lists)

    def map(self, change: Callable[[Tensor], Tensor]) -> Rows:
        """The same with every tensor changed."""
        return Rows(*(change(part) if isinstance(part, Tensor) else part for part in vars(self).values()))

    def take(self, rows: Tensor | slice) -> Rows:
        """Some of the rows, by their numbers, by true and false per row, or by a slice (which copies nothing)."""
        if isinstance(rows, slice) and not isinstance(self.x, SparseRows):
            return self.map(lambda part: part[rows])
        chosen = torch.arange(len(self.labels))[rows] if isinstance(rows, slice) else rows
        numbers = chosen.nonzero().squeeze(-1) if chosen.dtype == torch.bool else chosen
        taken = self.map(lambda part: part.index_select(0, numbers.to(part.device)))
        return replace(taken, x=self.x.index_select(0, numbers)) if isinstance(self.x, SparseRows) else taken

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        """All rows of several parts.

        Rows of parts without weights weigh 1 beside others. Groups, lists and clusters are kept if all parts
        have them. The index is not, for parts may number their rows alike; that of a single part stays.
        """
        if len(parts) == 1:
            return parts[0]

        def cat(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            return None if any(column is None for column in columns) else torch.cat(columns)

        weighted = any(part.weights is not None for part in parts)
        weights = torch.cat([part.weights_or_ones for part in parts]) if weighted else None
        return Rows(cat("x"), cat("labels"), weights, cat("groups"), cat("lists"), values=cat("values"),
                    clusters=cat("clusters"))  # fmt: skip


def read_batches(loader: Iterable[Any], device: torch.device) -> Iterator[Rows]:
    """Batches of any loader: `(x, labels)`, `(x, labels, weights)`, or a mapping with some of the names of `Rows`."""
    for item in loader:
        batch = read_batch(item)
        for name in _NAMES[1:]:
            part = getattr(batch, name)
            if part is not None and not isinstance(part, Tensor):
                kind = type(part).__name__
                present_values(part, name, "drop those samples", BadLabels if name == "labels" else ShapeMismatch)
                raise ShapeMismatch(
                    f"{name} in a batch must be a tensor, but are a {kind}; use torch.as_tensor({name})"
                )
        here = all(not isinstance(part, Tensor) or part.device == device for part in vars(batch).values())
        yield batch if here else batch.map(lambda part: part.to(device))


def read_batch(item: Any) -> Rows:
    """One item of a loader as `Rows`."""
    if isinstance(item, Rows):
        return item
    if isinstance(item, Mapping):
        if not {"x", "labels"} <= item.keys() <= set(_NAMES):
            raise ShapeMismatch(
                f"a batch that is a mapping needs x and labels, and may hold {_NAMES[2:]}; got {list(item)}"
            )
        return Rows(**item)
    if isinstance(item, tuple | list) and len(item) in (2, 3):
        return Rows(*item)
    kind = f"{len(item)} parts" if isinstance(item, tuple | list) else type(item).__name__
    raise ShapeMismatch(f"a loader must yield (x, labels), (x, labels, weights) or a mapping, but yielded {kind}")


def content_hash(value: Any) -> str:
    """A hash of all tensors in rows, a list or a mapping, in their order; numbers of rows do not count."""
    found = hashlib.blake2b(digest_size=16)
    for tensor in _walk(value):
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _walk(value: Any) -> Iterable[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, SparseRows):
        yield from value.parts
    elif isinstance(value, Rows):
        yield from _walk([value.x, value.labels, value.weights, value.groups, value.lists, value.values])
    elif isinstance(value, Mapping):
        yield from _walk(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _walk(part)
