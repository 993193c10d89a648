"""Rows of a table that is larger than memory: split by a hash of their numbers, read in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.data.frame import Frame, with_labels
from setpoint.data.rows import Rows
from setpoint.data.scan import Chunk, Result, Scan
from setpoint.data.schema import Schema
from setpoint.errors import BadTable

#: The most rows of a part that are kept, but for those that are trained on.
MOST_ROWS = 131_072
#: Chunks that are mixed before they are cut into batches.
JOINED = 4


@dataclass(frozen=True)
class Division:
    """The part of each row: rows are hashed to numbers from 0 to 1, which `edges` divide into parts."""

    seed: int
    edges: tuple[float, ...]
    sample: float

    @classmethod
    def of(cls, rows: int, shares: tuple[float, ...], seed: int, most: int = MOST_ROWS) -> Division:
        """The division into shares, with at most `most` rows in each part but train."""
        kept = [min(share, most / rows) for share in shares[1:]]
        train = 1 - sum(kept)
        edges = np.cumsum([train, *kept[:-1]])
        return cls(seed, tuple(edges.tolist()), min(train, most / rows))

    def parts(self, chunk: Chunk) -> NDArray[np.int64]:
        """The number of the part of each row, train being 0."""
        return np.searchsorted(np.array(self.edges), self._place(chunk), side="right")

    def sampled(self, chunk: Chunk) -> NDArray[np.bool_]:
        """The training rows that are kept to judge by."""
        return self._place(chunk) < self.sample

    def _place(self, chunk: Chunk) -> NDArray[np.float64]:
        """One number from 0 to 1 per row, by the finaliser of SplitMix64."""
        rows = np.arange(chunk.first, chunk.first + chunk.rows, dtype=np.uint64)
        mixed = _mix(rows + _mix(np.array([(self.seed + 0x9E3779B97F4A7C15) % 2**64], dtype=np.uint64)))
        return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class Labelled(Scan):
    """The rows of a table in which the target is there."""

    def __init__(self, scan: Scan, target: str) -> None:
        self.scan, self.target, self.paths, self.schema = scan, target, scan.paths, scan.schema
        self.chunks, self.places, self.workers, first = [], {}, scan.workers, 0
        for chunk, rows in zip(scan.chunks, scan.map(partial(_labelled_rows, target))):
            if rows:
                self.chunks.append(Chunk(first, rows))
                self.places[self.chunks[-1]] = chunk
                first += rows
        if not self.chunks:
            raise BadTable(f"target {target!r} is missing in every row")

    def read(self, chunk: Chunk) -> Frame:
        return self.reader(chunk)()

    def reader(self, chunk: Chunk) -> Callable[[], Frame]:
        return partial(_with_labels, self.scan.reader(self.places[chunk]), self.target)

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the whole table."""
        return self.scan.fingerprint()


def _labelled_rows(target: str, chunk: Chunk, frame: Frame) -> int:
    return with_labels(frame, target).height


def _with_labels(read: Callable[[], Frame], target: str) -> Frame:
    return with_labels(read(), target)


class StreamedBatches:
    """A loader over the training rows of a table on disk.

    Each pass draws a new order of the chunks, and of the rows of every `JOINED` chunks together: rows that lie far
    apart in the file never meet in a batch, so a table sorted by its target should be shuffled once beforehand.
    """

    resident: Rows | None = None
    #: The run knows the file.
    fingerprint: str | None = None

    #: Whether linear models are to be trained by sums over all rows, instead of in batches.
    by_sums = False

    def __init__(self, scan: Scan, schema: Schema, division: Division, rows: int, batch_size: int, seed: int) -> None:
        self.scan, self.schema, self.division = scan, schema, division
        self.rows, self.batch_size = rows, batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return math.ceil(self.rows / self.batch_size)

    def __iter__(self) -> Iterator[Rows]:
        groups = torch.randperm(len(self.scan.chunks), generator=self.generator).split(JOINED)
        left: list[Rows] = []
        for place, group in enumerate(groups, start=1):
            read = [*left, *(self._read(self.scan.chunks[chunk]) for chunk in group.tolist())]
            mixed = Rows.join(read)
            order = torch.randperm(len(mixed.labels), generator=self.generator)
            whole = len(order) if place == len(groups) else len(order) // self.batch_size * self.batch_size
            for rows in order[:whole].split(self.batch_size):
                yield mixed.take(rows)
            left = [mixed.take(order[whole:])]

    def map(self, function: Callable[[Rows], Result]) -> Iterator[Result]:
        """The result of a function for the training rows of every chunk, in the order of the file."""
        return self.scan.map(partial(_on_training_rows, function, self.schema, self.division))

    @property
    def workers(self) -> Any:
        """The processes that work on the chunks; None is this process."""
        return self.scan.workers

    def parts(self, function: Callable[[Rows], Result]) -> list[tuple[Callable[[], Result], int]]:
        """For each chunk a function that gives the result for its training rows, and the number of these rows."""
        make = partial(_read_and_apply, function, self.schema, self.division)
        sized = ((chunk, int((self.division.parts(chunk) == 0).sum())) for chunk in self.scan.chunks)
        return [(partial(make, chunk, self.scan.reader(chunk)), size) for chunk, size in sized if size]

    def _read(self, chunk: Chunk) -> Rows:
        return training_rows(self.schema, self.division, chunk, self.scan.read(chunk))


def training_rows(schema: Schema, division: Division, chunk: Chunk, frame: Frame) -> Rows:
    """The training rows of a chunk, encoded."""
    own = frame.filter(division.parts(chunk) == 0)
    return Rows(schema.encode(own), schema.labels(own))


def _read_and_apply(
    function: Callable[[Rows], Result], schema: Schema, division: Division, chunk: Chunk, read: Callable[[], Frame]
) -> Result:
    return _on_training_rows(function, schema, division, chunk, read())


def _on_training_rows(
    function: Callable[[Rows], Result], schema: Schema, division: Division, chunk: Chunk, frame: Frame
) -> Result:
    return function(training_rows(schema, division, chunk, frame))
