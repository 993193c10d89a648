"""Tables that come from a file or a pipe and go to one: what `predict` reads and writes."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.errors import BadFile, BadTable
from setpoint.table.frame import Column, Frame, read_table
from setpoint.table.reading import is_text
from setpoint.table.scan import Scan, scan_table

#: The path that stands for standard input and output.
PIPE = Path("-")
WRITERS: dict[str, Callable[[Frame, Path], None]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".pq": lambda frame, path: frame.write_parquet(path),
}


def read_anywhere(path: Path) -> Frame:
    """The table in a file; of `-` the CSV on standard input."""
    if path != PIPE:
        return read_table(path)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "standard input.csv"
        copy.write_bytes(sys.stdin.buffer.read())
        try:
            return read_table(copy)
        except (BadFile, BadTable) as cause:
            raise type(cause)(str(cause).replace(str(copy), "standard input")) from cause


class Frames:
    """The rows of a table as they stand in it, in chunks; may be gone through more than once."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan

    def __iter__(self) -> Iterator[Frame]:
        return (frame for _, frame in self.scan.frames())


def frames_of(path: Path, *, stream: bool) -> Iterable[Frame]:
    """The table in a file or, for `-`, on standard input: whole, or chunk by chunk, as often as is wanted."""
    if not stream:
        return [read_anywhere(path)]
    if path == PIPE:
        raise BadFile("--stream reads a file in chunks, and standard input is none; leave out --stream or give a file")
    return Frames(scan_table(path))


def formulas(column: Column) -> int:
    """How many values are texts that a spreadsheet may run: those that start with =, +, - or @ and are no number."""
    if not is_text(column):
        return 0
    text = column.cast(pl.String)
    return int((text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()).sum())


class Writer:
    """Answers written a chunk at a time: CSV as it comes, Parquet in pieces that are joined at the end.

    As with `write_anywhere`, a file appears only once it is whole.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.begun = path, False
        self.text = path == PIPE or "sv" in path.suffix.lower()
        if path != PIPE:
            refuse_place(path)
        self.place = Path(tempfile.mkdtemp(prefix=".setpoint-", dir=None if path == PIPE else path.parent))
        self.fresh = self.place / f"whole{path.suffix}"

    def write(self, frame: Frame, keep: list[str], answers: dict[str, NDArray[np.generic]]) -> None:
        """The answers to the rows of one chunk."""
        answer = _beside(frame, keep, answers)
        if not self.text:
            answer.write_parquet(self.place / f"{len(list(self.place.iterdir())):09d}.parquet")
            return
        text = answer.write_csv(
            separator="\t" if self.path.suffix.lower() == ".tsv" else ",", include_header=not self.begun
        )
        self.begun = True
        if self.path == PIPE:
            print(text, end="")
            return
        with self.fresh.open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    def close(self, *, whole: bool) -> None:
        """Put the file in its place if it is whole; nothing else is left."""
        try:
            if whole and self.path != PIPE:
                if not self.text:
                    pieces = sorted(self.place.glob("*.parquet"))
                    pl.scan_parquet(pieces).sink_parquet(self.fresh)
                self.fresh.replace(self.path)
        finally:
            shutil.rmtree(self.place, ignore_errors=True)


def write_anywhere(frame: Frame, keep: list[str], answers: dict[str, NDArray[np.generic]], path: Path) -> None:
    """The kept columns of a frame and the answers beside them, as the ending says; to `-` as CSV.

    A file appears only once it is whole.
    """
    answer = _beside(frame, keep, answers)
    if path == PIPE:
        print(answer.write_csv(), end="")
        return
    refuse_place(path)
    write = WRITERS[path.suffix.lower()]
    fresh = path.with_name(f".{path.name}.new")
    try:
        write(answer, fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def refuse_place(path: Path) -> None:
    """A file of a kind that can be written, in a directory that is there."""
    if path.suffix.lower() not in WRITERS:
        raise BadFile(f"{path} ends in {path.suffix or 'nothing'}; setpoint writes .csv, .tsv and .parquet")
    if not path.parent.is_dir():
        raise BadFile(f"no directory {path.parent} to write {path.name} to; make it first")


def _beside(frame: Frame, keep: list[str], answers: dict[str, NDArray[np.generic]]) -> Frame:
    """The kept columns of a frame with the answers beside them."""
    for name in keep:
        if name not in frame.columns:
            raise BadTable(f"no column {name!r} to keep; there are {', '.join(map(repr, frame.columns[:20]))}")
        if name in answers:
            raise BadTable(f"a kept column cannot be named {name!r}, as the answer is; rename it first")
    return pl.DataFrame({**{name: frame[name] for name in keep}, **answers})
