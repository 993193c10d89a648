"""A table on disk, read a chunk at a time: no more of it than one chunk is ever in memory.

A chunk is a range of rows of a Parquet file, or a range of whole lines of a text file. Chunks can be read in any
order, and hold the very values that `read_table` would have given: every value of a text file is text.
"""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from setpoint.data.frame import (
    Column,
    Frame,
    check_table,
    separator_of,
    unreadable_parquet,
    unreadable_text,
    without_rows,
)
from setpoint.data.reading import Guess, Reading
from setpoint.data.text import blank_rows_of, column_names
from setpoint.errors import BadTable

#: Bytes of a chunk: of its numbers in Parquet, of its lines in text, which take about twice as much when read.
CHUNK = 16_000_000


@dataclass(frozen=True)
class Chunk:
    """Rows `first` to `first + rows` of the table; in text, the bytes and the line they start at, and empty lines."""

    first: int
    rows: int
    start: int = 0
    end: int = 0
    line: int = 0
    blank: tuple[int, ...] = ()


class Scan(ABC):
    """A table in chunks."""

    path: Path
    columns: list[str]
    chunks: list[Chunk]

    @abstractmethod
    def read(self, chunk: Chunk) -> Frame:
        """The rows of one chunk, as they stand in the file."""

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    def frames(self) -> Iterator[tuple[Chunk, Frame]]:
        """Every chunk, with its rows, in the order of the file."""
        return zip(self.chunks, self)

    def __iter__(self) -> Iterator[Frame]:
        return map(self.read, self.chunks)

    def fingerprint(self) -> dict[str, Any]:
        """The number of rows and columns, and a SHA-256 of the file."""
        found = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(CHUNK):
                found.update(block)
        return {"rows": self.rows, "columns": len(self.columns), "sha256": found.hexdigest()}


def scan_table(path: str | os.PathLike[str], chunk: int = CHUNK) -> Scan:
    """Divide a .csv, .tsv or .parquet file into chunks of about `chunk` bytes; a text file is read once for it."""
    path = check_table(path)
    scan: Scan = _Text(path, chunk) if "sv" in path.suffix.lower() else _Parquet(path, chunk)
    if scan.rows == 0:
        raise BadTable(f"{path} has column names but no rows")
    return scan


class _Parquet(Scan):
    def __init__(self, path: Path, chunk: int) -> None:
        self.path = path
        try:
            self.lazy = pl.scan_parquet(path)
            schema = self.lazy.collect_schema()
            rows = int(self.lazy.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError as cause:
            raise unreadable_parquet(path, cause) from cause
        self.columns = list(schema)
        size = max(chunk // (8 * max(len(schema), 1)), 1)
        self.chunks = [Chunk(first, min(size, rows - first)) for first in range(0, rows, size)]

    def read(self, chunk: Chunk) -> Frame:
        try:
            return self.lazy.slice(chunk.first, chunk.rows).collect()
        except pl.exceptions.PolarsError as cause:
            raise unreadable_parquet(self.path, cause) from cause


class _Text(Scan):
    def __init__(self, path: Path, chunk: int) -> None:
        self.path, self.chunks = path, []
        self.separator = separator_of(path)
        self.columns = column_names(path, self.separator)
        names, *ranges = _line_ranges(path, chunk)
        self.head = self._bytes(names)
        first = 0
        for place in ranges:
            frame = self.read(place)
            blank: list[int] = []
            if frame.height and frame[self.columns[-1]].null_count():
                lines = io.StringIO(self._bytes(place).decode(), newline="")
                blank = blank_rows_of(lines, path, self.separator, len(self.columns), place.line)
            whole = replace(place, first=first, rows=frame.height - len(blank), blank=tuple(blank))
            self.chunks.append(whole)
            first += whole.rows

    def _bytes(self, chunk: Chunk) -> bytes:
        with self.path.open("rb") as file:
            file.seek(chunk.start)
            return file.read(chunk.end - chunk.start)

    def read(self, chunk: Chunk) -> Frame:
        try:
            frame = pl.read_csv(
                io.BytesIO(self.head + self._bytes(chunk)), separator=self.separator, infer_schema=False
            )
        except pl.exceptions.PolarsError as cause:
            raise unreadable_text(self.path, self.separator, len(self.columns), cause) from cause
        return without_rows(frame.rename(dict(zip(frame.columns, self.columns))), chunk.blank)


def _line_ranges(path: Path, size: int) -> Iterator[Chunk]:
    """The line of names, then ranges of whole rows: a line that ends within quotes ends no row."""
    with path.open("rb") as file:
        start, line, names = 0, 1, True
        while True:
            file.seek(start)
            block, end = b"", 0
            while not end and (more := file.read(size)):
                block += more
                end = _last_row(block, first=names)
            if not block:
                return
            # The last line may end in nothing but the file.
            end = end or len(block)
            yield Chunk(0, 0, start, start + end, line)
            line += block.count(b"\n", 0, end)
            start, names = start + end, False


def _last_row(block: bytes, *, first: bool) -> int:
    """The end of the last whole row in a block, or with `first` of the first row; 0 if no row ends there."""
    if first:
        end = block.find(b"\n") + 1
        while end and block.count(b'"', 0, end) % 2:
            end = block.find(b"\n", end) + 1
        return end
    quotes, end = block.count(b'"'), len(block)
    while True:
        found = block.rfind(b"\n", 0, end) + 1
        quotes -= block.count(b'"', found, end)
        if not found or quotes % 2 == 0:
            return found
        end = found - 1


def learn_readings_of(scan: Scan) -> dict[str, Reading]:
    """Find the reading of every column that can be used, from all rows of the table."""
    guesses: dict[str, Guess] = {}
    for _, frame in scan.frames():
        for column in frame:
            guesses.setdefault(column.name, Guess()).add(column)
        if not any(guess.open for guess in guesses.values()):
            break
    found = {name: guess.found() for name, guess in guesses.items()}
    return {name: reading for name, reading in found.items() if reading is not None}


def fingerprint(frame: Frame) -> dict[str, Any]:
    """The number of rows and columns of a table in memory, and a SHA-256 of its names, types and values in order."""
    found = hashlib.sha256()
    for column in frame:
        for part in (column.name.encode(), str(column.dtype).encode(), *_values(column)):
            found.update(len(part).to_bytes(8, "little"))
            found.update(part)
    return {"rows": frame.height, "columns": frame.width, "sha256": found.hexdigest()}


def _values(column: Column) -> list[bytes | memoryview]:
    """Bytes of a column that no version of polars changes: which values are missing, and the others."""
    missing = column.is_null()
    kind = column.dtype
    if kind.is_temporal():
        column = column.to_physical()
    if kind == pl.Boolean:
        column = column.cast(pl.UInt8)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        text = column.cast(pl.String).fill_null("")
        return [_bytes(missing), _bytes(text.str.len_bytes()), str(text.str.join("").item()).encode()]
    if (column.dtype.is_integer() and column.dtype not in (pl.Int128, pl.UInt128)) or column.dtype.is_float():
        return [_bytes(missing), _bytes(column.fill_null(0))]
    return [_bytes(missing), repr(column.to_list()).encode()]


def _bytes(column: Column) -> memoryview:
    return np.ascontiguousarray(column.to_numpy()).view(np.uint8).data
