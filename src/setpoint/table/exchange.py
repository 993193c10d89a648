"""Tables that come from a file or a pipe and go to one: what `predict` reads and writes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.errors import BadFile, BadTable
from setpoint.table.frame import Frame, read_table

#: The path that stands for standard input and output.
PIPE = Path("-")
WRITERS = {
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


def write_anywhere(frame: Frame, keep: list[str], answers: dict[str, NDArray[np.generic]], path: Path) -> None:
    """The kept columns of a frame and the answers beside them, as the ending says; to `-` as CSV.

    A file appears only once it is whole.
    """
    for name in keep:
        if name not in frame.columns:
            raise BadTable(f"no column {name!r} to keep; there are {', '.join(map(repr, frame.columns[:20]))}")
        if name in answers:
            raise BadTable(f"a kept column cannot be named {name!r}, as the answer is; rename it first")
    answer = pl.DataFrame({**{name: frame[name] for name in keep}, **answers})
    if path == PIPE:
        print(answer.write_csv(), end="")
        return
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise BadFile(f"{path} ends in {path.suffix or 'nothing'}; setpoint writes .csv, .tsv and .parquet")
    if not path.parent.is_dir():
        raise BadFile(f"no directory {path.parent} to write {path.name} to; make it first")
    fresh = path.with_name(f".{path.name}.new")
    try:
        write(answer, fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
