"""Tables: CSV and Parquet read into a frame, and its columns as numbers or as levels.

The only file that knows polars; `Frame` and `Column` are its data frame and its series.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.errors import BadFile, BadTable

Frame = pl.DataFrame
Column = pl.Series

#: Texts that stand for a missing value, in any mix of upper and lower case.
MISSING = ("", "?", "na", "n/a", "nan", "null")


def read_table(path: str | os.PathLike[str]) -> Frame:
    """The table in a .csv, .tsv or .parquet file; text columns that hold only numbers become numbers."""
    path = Path(path)
    if not path.is_file():
        raise BadFile(f"no file at {path}; give the path of a .csv, .tsv or .parquet file")
    ending = path.suffix.lower()
    if ending not in (".csv", ".tsv", ".parquet", ".pq"):
        raise BadFile(f"{path} ends in {ending or 'nothing'}; setpoint reads .csv, .tsv and .parquet")
    if path.stat().st_size == 0:
        raise BadTable(f"{path} is empty; it should hold column names and rows")
    try:
        frame = _read_text(path, "\t" if ending == ".tsv" else ",") if "sv" in ending else pl.read_parquet(path)
    except pl.exceptions.PolarsError as cause:
        reason = str(cause).splitlines()[0]
        if "utf-8" in reason:
            raise BadTable(f"{path} is not UTF-8 text; save it as UTF-8") from cause
        raise BadTable(f"{path} cannot be read as {ending.lstrip('.')}: {reason}") from cause
    if frame.height == 0:
        raise BadTable(f"{path} has column names but no rows")
    return frame.with_columns([_inferred(column) for column in frame if column.dtype == pl.String])


def _read_text(path: Path, separator: str) -> Frame:
    with path.open("rb") as file:
        if b"\0" in file.read(4096):
            raise BadTable(f"{path} is not UTF-8 text; save it as UTF-8")
    header = pl.read_csv(path, separator=separator, has_header=False, n_rows=1, infer_schema=False).row(0)
    names = [(name or "").strip() for name in header]
    if not any(names):
        raise BadTable(f"{path} is empty where the names of its columns should be, in the first line")
    if len(names) == 1:
        mark = next((mark for mark in (";", "\t", "|", ",") if mark in names[0]), None)
        hint = f"; it seems to be separated by {mark!r}, write it with {separator!r}" if mark else ""
        raise BadTable(f"{path} has everything in one column, {names[0]!r}{hint}")
    twice = [name or "(no name)" for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadTable(f"{path} has more than one column named {twice[0]!r}; rename them")
    # Read as text, since blanks after a comma and words for "missing" would hide the numbers.
    frame = pl.read_csv(path, separator=separator, infer_schema=False)
    return frame.rename(dict(zip(frame.columns, names)))


def write_csv(columns: dict[str, NDArray[np.generic]], path: Path | None) -> None:
    """A CSV file with these columns, or on standard output when there is no path."""
    frame = pl.DataFrame(columns)
    if path is None:
        print(frame.write_csv(), end="")
    else:
        frame.write_csv(path)


def _tidy(text: Column) -> Column:
    """Text without surrounding blanks, null where it stands for a missing value."""
    text = text.str.strip_chars()
    missing = text.str.to_lowercase().is_in(list(MISSING)).fill_null(True)
    return text.set(missing, None)


def _inferred(text: Column) -> Column:
    """Numbers or booleans if every value reads as one, else the tidied text."""
    text = _tidy(text)
    if text.null_count() == len(text):
        return text
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers
    lower = text.str.to_lowercase()
    return lower == "true" if lower.drop_nulls().is_in(["true", "false"]).all() else text


def holds_numbers(column: Column) -> bool:
    """Whether a column holds amounts; dates and times do, counted from 1970."""
    return column.dtype.is_numeric() or column.dtype.is_temporal()


def holds_levels(column: Column) -> bool:
    """Whether a column holds words or booleans."""
    return column.dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)


def numbers(column: Column) -> NDArray[np.float64]:
    """Float64, NaN where missing, infinities as they are; text that is no number is refused by name."""
    plain = _tidy(column) if column.dtype == pl.String else column
    plain = plain.to_physical() if column.dtype.is_temporal() else plain
    values = plain.cast(pl.Float64, strict=False)
    unread = plain.filter(values.is_null() & plain.is_not_null())
    if len(unread):
        raise BadTable(f"column {column.name!r} should hold numbers but holds {unread[0]!r}")
    return np.array(values.to_numpy(), dtype=np.float64)


def levels(column: Column) -> Column:
    """Levels as text, null where missing; 1 and 1.0 are the same level."""
    if not column.dtype.is_numeric():
        return _tidy(column.cast(pl.String))
    values = column.cast(pl.Float64)
    values = values.set(~values.is_finite(), None)
    whole = values.cast(pl.Int64, strict=False)
    is_whole = (whole.cast(pl.Float64) == values).fill_null(False)
    return whole.cast(pl.String).zip_with(is_whole, values.cast(pl.String))


def level_counts(column: Column) -> dict[str, int]:
    """How often each level occurs, the most frequent first; missing values are left out."""
    counts = levels(column).drop_nulls().alias("level").value_counts(name="times")
    return dict(counts.sort(["times", "level"], descending=[True, False]).iter_rows())


def level_codes(column: Column, known: tuple[str, ...]) -> NDArray[np.int64]:
    """The place of each value among the known levels; len(known) where missing, -1 where it is none of them."""
    text = levels(column)
    codes = text.replace_strict(list(known), list(range(len(known))), default=-1, return_dtype=pl.Int64)
    return np.where(text.is_null().to_numpy(), len(known), codes.to_numpy())
