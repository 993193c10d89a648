"""A table on disk, read a chunk at a time: no more of it than one chunk is ever in memory.

A chunk is a range of rows of a Parquet file, or a range of whole lines of a text file. Chunks can be read in any
order, and hold the very values that `read_table` would have given: every value of a text file is text.
"""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl

from setpoint.data.frame import Column, Frame, no_rows, unreadable, unreadable_text, without_rows
from setpoint.data.many_files import Paths, common_schema, open_files
from setpoint.data.opened import ARROW, ARROW_STREAM, JSON, TEXT, Opened
from setpoint.data.reading import Guess, Reading
from setpoint.data.text import blank_rows_of, column_names
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadTable

#: Bytes of a chunk: of its numbers in Parquet, of its lines in text, which take about twice as much when read.
CHUNK = 16_000_000
#: Places of a file at which the size of rows is looked at, and rows at each.
LOOKS, SEEN = 3, 50


Result = TypeVar("Result")


@dataclass(frozen=True)
class Chunk:
    """Rows `first` to `first + rows` of the table; in text, the bytes and the line they start at, and empty lines."""

    first: int
    rows: int
    start: int = 0
    end: int = 0
    line: int = 0
    blank: tuple[int, ...] = ()


class Workers(Protocol):
    """Processes that work on chunks, on this machine or on others."""

    def map(
        self, function: Callable[[Chunk, Frame], Result], readers: Iterable[tuple[Chunk, Callable[[], Frame]]]
    ) -> Iterator[Result]:
        """The result of the function for every chunk, in the order given."""


class Scan(ABC):
    """A table in chunks."""

    paths: list[Path]
    schema: pl.Schema
    chunks: list[Chunk]
    #: The processes that `map` works in; None is this process.
    workers: Workers | None = None

    @abstractmethod
    def read(self, chunk: Chunk) -> Frame:
        """The rows of one chunk, as they stand in the file."""

    @property
    def columns(self) -> list[str]:
        return self.schema.names()

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process reads chunks that it is given."""
        return {**self.__dict__, "chunks": [], "workers": None}

    def reader(self, chunk: Chunk) -> Callable[[], Frame]:
        """A function that reads one chunk, small enough to be sent to another process."""
        return partial(self.read, chunk)

    def map(self, function: Callable[[Chunk, Frame], Result]) -> Iterator[Result]:
        """The result of a function for every chunk, in the order of the file, wherever chunks are worked on.

        So sums of these results are the same, to the last bit, on one machine and on many.
        """
        if self.workers is None:
            return (function(chunk, self.read(chunk)) for chunk in self.chunks)
        return self.workers.map(function, ((chunk, self.reader(chunk)) for chunk in self.chunks))

    def frames(self) -> Iterator[tuple[Chunk, Frame]]:
        """Every chunk, with its rows, in the order of the file."""
        return zip(self.chunks, self)

    def __iter__(self) -> Iterator[Frame]:
        return map(self.read, self.chunks)

    def fingerprint(self) -> dict[str, Any]:
        """The number of rows and columns, and a SHA-256 of the files one after the other."""
        return {"rows": self.rows, "columns": len(self.columns), "sha256": hash_of_files(self.paths)}


def hash_of_files(paths: Iterable[Path]) -> str:
    """A SHA-256 of files, one after the other."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(CHUNK):
                found.update(block)
    return found.hexdigest()


def scan_table(
    path: Paths, chunk: int = CHUNK, *, layout: TextFormat | None = None, notes: list[str] | None = None
) -> Scan:
    """Divide the files that `read_table` takes into chunks of about `chunk` bytes; text is read once for it.

    A compressed text file is unpacked to a temporary file, and JSON lines are written to a temporary Parquet file.
    """
    files = open_files(path, layout or TextFormat(), notes, lean=True)
    scans: list[Scan] = [_Text(file, chunk) if file.kind == TEXT else _Typed(file, chunk) for file in files]
    scan = scans[0] if len(scans) == 1 else _Several(scans, common_schema([one.schema for one in scans], files))
    if scan.rows == 0:
        raise no_rows(files)
    return scan


class _Typed(Scan):
    """A Parquet or Arrow file, or JSON lines."""

    def __init__(self, file: Opened, chunk: int) -> None:
        self.file, self.paths = file, [file.path]
        try:
            self.lazy = self._open(file)
            self.schema = self.lazy.collect_schema()
            rows = int(self.lazy.select(pl.len()).collect().item())
            size = max(chunk // self._bytes_per_row(rows), 1)
        except pl.exceptions.PolarsError as cause:
            raise unreadable(file, cause) from cause
        self.chunks = [Chunk(first, min(size, rows - first)) for first in range(0, rows, size)]

    def _bytes_per_row(self, rows: int) -> int:
        """The memory that a row takes: 8 bytes per value; where lists, texts and the like take more, what they take."""
        plain = 8 * max(len(self.schema), 1)
        if not any(kind.is_nested() or kind in (pl.String, pl.Binary) for kind in self.schema.values()):
            return plain
        places = {rows * part // LOOKS for part in range(LOOKS)}
        looks = [self.lazy.slice(place, max(rows // LOOKS, 1)).head(SEEN).collect() for place in sorted(places)]
        seen = max((int(look.estimated_size()) // look.height for look in looks if look.height), default=0)
        return seen if seen > 2 * plain else plain

    @staticmethod
    def _open(file: Opened) -> pl.LazyFrame:
        if file.kind == JSON:
            plain = file.aside()
            pl.scan_ndjson(file.path, infer_schema_length=None).sink_parquet(plain)
            return pl.scan_parquet(plain, glob=False)
        if file.kind == ARROW_STREAM:
            raise BadTable(f"{file.name} is an Arrow stream, which is not read in chunks; write it as Parquet")
        return pl.scan_ipc(file.path) if file.kind == ARROW else pl.scan_parquet(file.path, glob=False)

    def read(self, chunk: Chunk) -> Frame:
        try:
            return self.lazy.slice(chunk.first, chunk.rows).collect()
        except pl.exceptions.PolarsError as cause:
            raise unreadable(self.file, cause) from cause


class _Text(Scan):
    def __init__(self, file: Opened, chunk: int) -> None:
        self.file, self.paths, self.chunks = file, [file.path], []
        self.schema = pl.Schema(dict.fromkeys(column_names(file), pl.String()))
        names, *ranges = _line_ranges(file.path, chunk)
        self.head = self._bytes(names)
        first = 0
        for place in ranges:
            frame = self.read(place)
            blank: list[int] = []
            if frame.height and frame[self.columns[-1]].null_count():
                lines = io.StringIO(self._bytes(place).decode(), newline="")
                blank = blank_rows_of(lines, file, len(self.columns), place.line)
            whole = replace(place, first=first, rows=frame.height - len(blank), blank=tuple(blank))
            self.chunks.append(whole)
            first += whole.rows

    def _bytes(self, chunk: Chunk) -> bytes:
        with self.file.path.open("rb") as file:
            file.seek(chunk.start)
            return file.read(chunk.end - chunk.start)

    def read(self, chunk: Chunk) -> Frame:
        text = io.BytesIO(self.head + self._bytes(chunk))
        try:
            frame = pl.read_csv(text, separator=self.file.head.separator, infer_schema=False)
        except pl.exceptions.PolarsError as cause:
            raise unreadable_text(self.file, len(self.columns), cause) from cause
        return without_rows(frame.rename(dict(zip(frame.columns, self.columns))), chunk.blank)


class _Several(Scan):
    """Several tables one after the other."""

    def __init__(self, scans: list[Scan], schema: pl.Schema) -> None:
        self.paths = [path for scan in scans for path in scan.paths]
        self.schema, self.places, first = schema, [(scan, chunk) for scan in scans for chunk in scan.chunks], 0
        self.chunks = []
        for _, chunk in self.places:
            self.chunks.append(Chunk(first, chunk.rows))
            first += chunk.rows
        self.numbers = {chunk: number for number, chunk in enumerate(self.chunks)}

    def read(self, chunk: Chunk) -> Frame:
        return self.reader(chunk)()

    def reader(self, chunk: Chunk) -> Callable[[], Frame]:
        scan, place = self.places[self.numbers[chunk]]
        return partial(_with_schema, scan.reader(place), self.schema)


def _with_schema(read: Callable[[], Frame], schema: pl.Schema) -> Frame:
    return read().select(schema.names()).cast(schema)


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
    for here in scan.map(_guess):
        guesses = {name: guesses[name].merge(own) for name, own in here.items()} if guesses else here
        if not any(guess.open for guess in guesses.values()):
            break
    found = {name: guess.found() for name, guess in guesses.items()}
    return {name: reading for name, reading in found.items() if reading is not None}


def _guess(chunk: Chunk, frame: Frame) -> dict[str, Guess]:
    """The kinds of values that each column of a chunk may hold."""
    guesses = {column.name: Guess() for column in frame}
    for column in frame:
        guesses[column.name].add(column)
    return guesses


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
    kind, missing = column.dtype, _bytes(column.is_null()) if column.null_count() else bytes(len(column))
    if isinstance(kind, pl.Float64) and not column.null_count():
        return [missing, _bytes(column)]
    if kind.is_temporal():
        column = column.to_physical()
    if kind == pl.Boolean:
        column = column.cast(pl.UInt8)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        text = column.cast(pl.String).fill_null("")
        return [missing, _bytes(text.str.len_bytes()), str(text.str.join("").item()).encode()]
    if (column.dtype.is_integer() and column.dtype not in (pl.Int128, pl.UInt128)) or column.dtype.is_float():
        return [missing, _bytes(column.fill_null(0))]
    return [missing, repr(column.to_list()).encode()]


def _bytes(column: Column) -> memoryview:
    return np.ascontiguousarray(column.to_numpy()).view(np.uint8).data
