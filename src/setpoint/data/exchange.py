"""Tables that come from a file or a pipe and go to one: what `predict` reads and writes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.frame import Column, Frame, read_table
from setpoint.data.opened import PIPED
from setpoint.data.partitions import workers_at
from setpoint.data.reading import is_text
from setpoint.data.scan import Chunk, Result, Scan, scan_table
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadFile, BadTable
from setpoint.files import PENDING, is_stream, naming, whole

#: The path that stands for standard input and output.
PIPE = Path("-")
ENDINGS = (".csv", ".tsv", ".parquet", ".pq")
#: Rows up to which answers are given to polars as lists, and the types of numbers that lists keep to the last bit.
FEW = 1000
_LISTED = {"f4": pl.Float32, "f8": pl.Float64, "i8": pl.Int64}
#: The end of a polars error that comes from the operating system.
_CODE = re.compile(r"\(os error (\d+)\)")


def is_piped(paths: Sequence[Path]) -> bool:
    """Whether the table comes through standard input, which stands alone."""
    if PIPE in paths and len(paths) > 1:
        raise BadFile("- stands for all of the table, on standard input; give - alone, or files alone")
    return PIPE in paths


def copy_piped(copy: Path) -> None:
    """Write what comes through standard input to a file."""
    with naming(copy), copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)


def read_anywhere(paths: Sequence[Path], layout: TextFormat | None = None, notes: list[str] | None = None) -> Frame:
    """The table in some files; of `-` the table on standard input."""
    if not is_piped(paths):
        return read_table(paths, layout, notes)
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / PIPED
        copy_piped(copy)
        return read_table(copy, layout, notes)


def frames_of(
    paths: Sequence[Path], *, stream: bool, layout: TextFormat | None = None, notes: list[str] | None = None
) -> Iterable[Frame]:
    """The table in some files or, for `-`, on standard input: whole, or chunk by chunk, as often as is wanted."""
    if not stream:
        return [read_anywhere(paths, layout, notes)]
    if is_piped(paths):
        raise BadFile("--stream reads a file in chunks, and standard input is none; leave out --stream or give a file")
    return scan_table(paths, layout=layout, notes=notes)


@contextlib.contextmanager
def frames_at(
    paths: Sequence[Path], *, stream: bool, workers: str | None, layout: TextFormat, notes: list[str]
) -> Iterator[Iterable[Frame]]:
    """The table as `frames_of` gives it, worked on by `workers` if there are any, which implies a stream."""
    frames = frames_of(paths, stream=stream or workers is not None, layout=layout, notes=notes)
    if workers is None or not isinstance(frames, Scan):
        yield frames
        return
    with workers_at(workers) as frames.workers:
        yield frames


def on_each(frames: Iterable[Frame], function: Callable[[int, Frame], Result]) -> Iterator[Result]:
    """The result of a function of the first row's number and the rows, for the table or for each of its chunks."""
    if isinstance(frames, Scan):
        return frames.map(partial(_from_first, function))
    return (function(0, frame) for frame in frames)


def _from_first(function: Callable[[int, Frame], Result], chunk: Chunk, frame: Frame) -> Result:
    return function(chunk.first, frame)


def formulas(column: Column) -> int:
    """How many values are texts that a spreadsheet may run: those that start with =, +, - or @ and are no number."""
    if not is_text(column):
        return 0
    text = column.cast(pl.String)
    return int((text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()).sum())


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Callable[[Frame], None]]:
    """A function that adds the rows of a frame to a file, whose ending says of what kind; to `-` as CSV.

    CSV is written as it comes, Parquet in pieces that are joined at the end. The file appears once it is whole.
    """
    if path != PIPE:
        refuse_place(path)
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    if path == PIPE:
        yield _text_writer(_print, separator)
    elif "sv" in path.suffix.lower():
        with whole(path) as file:
            yield _text_writer(lambda text: file.write(text.encode()), separator)
    else:
        with _pieces(path) as (place, pieces):

            def write(frame: Frame) -> None:
                pieces.append(place / f"{len(pieces)}.parquet")
                with _naming(path):
                    frame.write_parquet(pieces[-1])

            yield write
            with _naming(path):
                joined = pieces[0]
                if len(pieces) > 1:
                    joined = place / "whole.parquet"
                    pl.scan_parquet(pieces).sink_parquet(joined)
                with joined.open("rb") as copied, whole(path) as file:
                    shutil.copyfileobj(copied, file)


@contextlib.contextmanager
def _pieces(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """A directory of our own beside a file, which has room if there is room for the file, and the files in it."""
    with naming(path):
        place = Path(tempfile.mkdtemp(prefix=PENDING, dir=None if is_stream(path) else path.parent))
    pieces: list[Path] = []
    try:
        yield place, pieces
    finally:
        # By name: whatever failed before, removing needs no other call that could fail.
        for piece in [*pieces, place / "whole.parquet"]:
            piece.unlink(missing_ok=True)
        place.rmdir()


def _text_writer(put: Callable[[str], object], separator: str) -> Callable[[Frame], None]:
    header = True

    def write(frame: Frame) -> None:
        nonlocal header
        try:
            text = frame.write_csv(separator=separator, include_header=header)
        except pl.exceptions.PolarsError as cause:
            raise BadTable(f"{str(cause).splitlines()[0]}; write a .parquet file, or leave out that column") from cause
        put(text)
        header = False

    return write


def _print(text: str) -> None:
    with naming("standard output"):
        print(text, end="", flush=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """As `naming`; polars tells of a full disk in an error of its own."""
    try:
        with naming(path):
            yield
    except pl.exceptions.PolarsError as cause:
        code = _CODE.search(str(cause))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from cause


def refuse_place(path: Path) -> None:
    """A file of a kind that can be written, in a directory that is there."""
    if path.suffix.lower() not in ENDINGS:
        raise BadFile(f"{path} ends in {path.suffix or 'nothing'}; setpoint writes .csv, .tsv and .parquet")
    if not path.parent.is_dir():
        raise BadFile(f"no directory {path.parent} to write {path.name} to; make it first")


def refuse_kept(keep: Iterable[str], answers: Iterable[str]) -> None:
    """Refuse kept columns that are named as an answer is."""
    if same := [name for name in keep if name in set(answers)]:
        raise BadTable(f"a kept column cannot be named {same[0]!r}, as the answer is; rename it first")


def beside(frame: Frame, keep: list[str], answers: dict[str, NDArray[np.generic]]) -> Frame:
    """The kept columns of a frame with the answers beside them."""
    refuse_kept(keep, answers)
    return pl.DataFrame([*(frame[name] for name in keep), *(_column(name, one) for name, one in answers.items())])


def _column(name: str, answer: NDArray[np.generic]) -> Column:
    """An answer as a column; polars loads `numpy.ma` for an array, a twentieth of the start, so few rows are a list."""
    kind = _LISTED.get(answer.dtype.kind + str(answer.dtype.itemsize))
    if kind is None or len(answer) > FEW:
        return pl.Series(name, answer)
    return pl.Series(name, answer.tolist(), dtype=kind)
