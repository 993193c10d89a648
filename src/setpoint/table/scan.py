"""A table on disk, read a chunk at a time: no more of it than one chunk is ever in memory.

A chunk is a range of rows of a Parquet file, or a range of whole lines of a text file. Chunks can be read in any
order, and hold the very values that `read_table` would have given: what a text column holds is decided by all rows.
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

import polars as pl

from setpoint.errors import BadTable
from setpoint.table.frame import (
    Frame,
    check_table,
    inferred,
    separator_of,
    tidy,
    unreadable_parquet,
    unreadable_text,
)
from setpoint.table.text import blank_rows_of, column_names

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
    """A table in chunks; `kinds` are the types of its text columns as all rows decide them."""

    path: Path
    columns: list[str]
    chunks: list[Chunk]
    kinds: dict[str, pl.DataType]

    @abstractmethod
    def _raw(self, chunk: Chunk) -> Frame:
        """The values of a chunk as they stand in the file."""

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    def read(self, chunk: Chunk) -> Frame:
        """The rows of one chunk."""
        frame = self._raw(chunk)
        return frame.with_columns([_as(frame[name], kind) for name, kind in self.kinds.items()])

    def frames(self) -> Iterator[tuple[Chunk, Frame]]:
        """Every chunk in the order of the file."""
        for chunk in self.chunks:
            yield chunk, self.read(chunk)

    def fingerprint(self) -> dict[str, Any]:
        """The number of rows and columns, and a SHA-256 of the file."""
        found = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(CHUNK):
                found.update(block)
        return {"rows": self.rows, "columns": len(self.columns), "sha256": found.hexdigest()}


def scan_table(path: str | os.PathLike[str], chunk: int = CHUNK) -> Scan:
    """A .csv, .tsv or .parquet file in chunks of about so many bytes; it is read once if any of it is text."""
    path = check_table(path)
    scan: Scan = _Text(path, chunk) if "sv" in path.suffix.lower() else _Parquet(path, chunk)
    if scan.rows == 0:
        raise BadTable(f"{path} has column names but no rows")
    return scan


class _Parquet(Scan):
    def __init__(self, path: Path, chunk: int) -> None:
        self.path, self.kinds = path, {}
        try:
            self.lazy = pl.scan_parquet(path)
            schema = self.lazy.collect_schema()
            rows = int(self.lazy.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError as cause:
            raise unreadable_parquet(path, cause) from cause
        self.columns = list(schema)
        size = max(chunk // (8 * max(len(schema), 1)), 1)
        self.chunks = [Chunk(first, min(size, rows - first)) for first in range(0, rows, size)]
        words = [name for name, kind in schema.items() if kind == pl.String]
        if words:
            for part in self.chunks:
                _widen(self.kinds, self._raw(part).select(words))

    def _raw(self, chunk: Chunk) -> Frame:
        try:
            return self.lazy.slice(chunk.first, chunk.rows).collect()
        except pl.exceptions.PolarsError as cause:
            raise unreadable_parquet(self.path, cause) from cause


class _Text(Scan):
    def __init__(self, path: Path, chunk: int) -> None:
        self.path, self.kinds, self.chunks = path, {}, []
        self.separator = separator_of(path)
        self.columns = column_names(path, self.separator)
        names, *ranges = _line_ranges(path, chunk)
        self.head = self._bytes(names)
        first = 0
        for place in ranges:
            frame = self._raw(place)
            blank: list[int] = []
            if frame.height and frame[self.columns[-1]].null_count():
                lines = io.StringIO(self._bytes(place).decode(), newline="")
                blank = blank_rows_of(lines, path, self.separator, len(self.columns), place.line)
            whole = replace(place, first=first, rows=frame.height - len(blank), blank=tuple(blank))
            self.chunks.append(whole)
            _widen(self.kinds, _without(frame, blank))
            first += whole.rows

    def _bytes(self, chunk: Chunk) -> bytes:
        with self.path.open("rb") as file:
            file.seek(chunk.start)
            return file.read(chunk.end - chunk.start)

    def _raw(self, chunk: Chunk) -> Frame:
        try:
            frame = pl.read_csv(
                io.BytesIO(self.head + self._bytes(chunk)), separator=self.separator, infer_schema=False
            )
        except pl.exceptions.PolarsError as cause:
            raise unreadable_text(self.path, self.separator, len(self.columns), cause) from cause
        return _without(frame.rename(dict(zip(frame.columns, self.columns))), chunk.blank)


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
    """Where the last row that ends in this block ends, or, if that is asked for, the first; 0 if none does."""
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


def _without(frame: Frame, blank: list[int] | tuple[int, ...]) -> Frame:
    return frame.filter(~pl.int_range(pl.len()).is_in(list(blank))) if blank else frame


def _widen(kinds: dict[str, pl.DataType], frame: Frame) -> None:
    """Numbers or booleans as long as every value of every chunk reads as one, else words."""
    for column in frame:
        known = kinds.setdefault(column.name, pl.Null())
        if known == pl.String:
            continue
        here = inferred(column)
        kind = pl.Null() if here.null_count() == len(here) else here.dtype
        if kind != pl.Null():
            kinds[column.name] = kind if known in (pl.Null(), kind) else pl.String()


def _as(text: pl.Series, kind: pl.DataType) -> pl.Series:
    """A text column as what it was found to hold."""
    text = tidy(text)
    if kind == pl.Boolean:
        return text.str.to_lowercase() == "true"
    return text.cast(pl.Float64) if kind == pl.Float64 else text
