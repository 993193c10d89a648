"""Tables: files read into a frame, and its columns as numbers or as levels.

`Frame` and `Column` are the data frame and the series of polars.
"""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadTable, missing

try:
    import polars as pl
except ImportError as cause:
    raise missing("polars", "table", cause) from None

from setpoint.data.many_files import Paths, common_schema, open_files
from setpoint.data.opened import ARROW_STREAM, JSON, PARQUET, TEXT, Opened
from setpoint.data.text import blank_rows, column_names, why_unreadable
from setpoint.data.text_format import TextFormat

Frame = pl.DataFrame
Column = pl.Series

#: Texts that stand for a missing value, in any mix of upper and lower case.
MISSING = ("", "?", "na", "n/a", "nan", "null")


def read_table(path: Paths, layout: TextFormat | None = None, notes: list[str] | None = None) -> Frame:
    """Read the table in a file or in several, as it stands there: every value of a text file is text.

    Args:
        path: A file of text (.csv, .tsv, .txt), Parquet, Arrow (.arrow, .feather) or JSON lines (.jsonl), also
            compressed, or NumPy (.npy, .npz); or several, or a folder of files with the same columns.
        layout: How text files are written; None finds out.
        notes: Takes a sentence on each thing that was found out.

    Returns:
        The table as a polars frame.

    Raises:
        BadFile: If there is no such file, or its ending is another.
        BadTable: If the file cannot be read as a table, or has no rows.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from setpoint.data.frame import read_table
        >>> with tempfile.TemporaryDirectory() as place:
        ...     size = Path(place, "loans.csv").write_text("amount;repaid\\n1,5;yes\\n80;no\\n")
        ...     read_table(f"{place}/loans.csv").to_dict(as_series=False)
        {'amount': ['1,5', '80'], 'repaid': ['yes', 'no']}
    """
    files = open_files(path, layout or TextFormat(), notes)
    frames = [_read(file) for file in files]
    if len(frames) > 1:
        schema = common_schema([frame.schema for frame in frames], files)
        frames = [frame.select(schema.names()).cast(schema) for frame in frames]
    whole = pl.concat(frames) if len(frames) > 1 else frames[0]
    if whole.height == 0:
        raise no_rows(files)
    return whole


def no_rows(files: Sequence[Opened]) -> BadTable:
    """The error for a table without rows."""
    return BadTable(f"{files[0].name} has column names but no rows")


def _read(file: Opened) -> Frame:
    if file.kind == TEXT:
        return _read_text(file)
    try:
        if file.kind == PARQUET:
            return pl.read_parquet(file.path, glob=False)
        if file.kind == JSON:
            return pl.read_ndjson(file.path, infer_schema_length=None)
        return (pl.read_ipc_stream if file.kind == ARROW_STREAM else pl.read_ipc)(file.path)
    except pl.exceptions.PolarsError as cause:
        raise unreadable(file, cause) from cause


def unreadable(file: Opened, cause: Exception) -> BadTable:
    """The error for a file, other than text, that cannot be read."""
    why = str(cause).splitlines()[0].replace(str(file.path), file.name)
    return BadTable(f"{file.name} cannot be read as {file.kind}: {why}; write it again")


def as_frame(data: Any) -> Frame:
    """A polars frame of a polars, pandas or Arrow one, of columns by name, or of rows.

    Args:
        data: A polars or pandas data frame, an Arrow table, a mapping from the name of a column to its values (or to
            the one value of a single row), or a list of rows, each a mapping from the name of a column to its value.

    Returns:
        The same rows and columns as a polars frame.

    Raises:
        BadTable: If the data are of another kind, or a column mixes kinds.
    """
    if isinstance(data, pl.DataFrame):
        return data
    try:
        if isinstance(data, Mapping):
            return pl.DataFrame(dict(data))
        if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
            names = dict.fromkeys(name for row in data for name in row)
            return pl.DataFrame({name: [row.get(name) for row in data] for name in names})
        if type(data).__module__.partition(".")[0] == "pandas":
            _refuse_same_names([str(name) for name in data.columns])
            return pl.DataFrame({str(name): _of_pandas(str(name), column) for name, column in data.items()})
        if hasattr(data, "__arrow_c_stream__"):
            return pl.DataFrame(data)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as cause:
        why = str(cause).splitlines()[0]
        raise BadTable(f"the frame cannot be read: {why}; give each column one kind of value") from cause
    raise BadTable(
        "expected a data frame of polars, pandas or Arrow, columns by name, or a list of rows, got "
        f"{type(data).__name__}"
    )


def _refuse_same_names(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise BadTable(f"the frame has more than one column named {twice!r}; rename them")


def _of_pandas(name: str, column: Any) -> Column:
    """A column of a pandas frame; polars itself would need pyarrow for words and mixed columns."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufmM":
        return pl.Series(name, column.to_numpy())
    absent = column.isna()
    values = pl.Series(name, [None if gone else value for value, gone in zip(column.tolist(), absent)])
    return levels(values).cast(pl.Categorical) if str(column.dtype) == "category" else values


def _read_text(file: Opened) -> Frame:
    names = column_names(file)
    try:
        # Read as text, since blanks after a comma and words for "missing" would hide the numbers.
        frame = pl.read_csv(file.path, separator=file.head.separator, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as cause:
        raise unreadable_text(file, len(names), cause) from cause
    frame = frame.rename(dict(zip(frame.columns, names)))
    # To the parser, an empty line and a line that ends early look like missing values at the end of a row.
    if frame.height and frame[names[-1]].null_count():
        frame = without_rows(frame, blank_rows(file, len(names)))
    return frame


def without_rows(frame: Frame, numbers: Sequence[int]) -> Frame:
    """The frame without the rows of these numbers."""
    return frame.filter(~pl.int_range(pl.len()).is_in(list(numbers))) if numbers else frame


def unreadable_text(file: Opened, columns: int, cause: Exception) -> BadTable:
    """The error for a text file that cannot be read; it names the line, if that can be found."""
    reason = why_unreadable(file, columns) or str(cause).splitlines()[0]
    return BadTable(f"{file.name} cannot be read as a table: {reason}")


def with_labels(frame: Frame, *targets: str) -> Frame:
    """The rows in which one of the targets at least is there; all of them if there is no such column."""
    there = [levels(frame[target]).is_not_null() for target in targets if target in frame.columns]
    return frame.filter(functools.reduce(operator.or_, there)) if there else frame


def nearest(name: str, columns: Sequence[str]) -> str:
    """The column that a name which is not there may stand for, or else the columns there are."""
    same = [column for column in columns if column.lower() == name.strip().lower()]
    near = same or difflib.get_close_matches(name, columns, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are {', '.join(map(repr, columns[:20]))}{', ...' if len(columns) > 20 else ''}"


def named_columns(texts: Iterable[str], names: Sequence[str], option: str) -> list[str]:
    """The columns that texts name, each once; a text that is no column is several with commas between."""
    found = [name for text in texts for name in ([text] if text in names else map(str.strip, text.split(",")))]
    unknown = [name for name in found if name and name not in names]
    if unknown:
        raise BadTable(f"no column {unknown[0]!r} for --{option}; {nearest(unknown[0], names)}")
    return list(dict.fromkeys(filter(None, found)))


def tidy(text: Column) -> Column:
    """Text without surrounding blanks, null where it stands for a missing value."""
    text = text.str.strip_chars()
    missing = text.str.to_lowercase().is_in(list(MISSING)).fill_null(True)
    return text.set(missing, None)


def holds_numbers(column: Column) -> bool:
    """Whether a column holds amounts; dates and times do, counted from 1970."""
    return column.dtype.is_numeric() or column.dtype.is_temporal()


def holds_levels(column: Column) -> bool:
    """Whether a column holds words or booleans."""
    return isinstance(column.dtype, (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null))


def numbers(column: Column) -> NDArray[np.float64]:
    """Float64, NaN where missing, infinities as they are; times in the unit of their type."""
    if not isinstance(column.dtype, pl.Float64):
        column = (column.to_physical() if column.dtype.is_temporal() else column).cast(pl.Float64)
    return np.array(column.to_numpy(), dtype=np.float64)


def matrix(column: Column, length: int) -> NDArray[np.float64]:
    """Lists of numbers of this length as `(n, length)`, NaN where missing."""
    values = np.full((len(column), length), np.nan)
    if column.null_count() < len(column):
        values[column.is_not_null().to_numpy()] = column.drop_nulls().list.to_array(length).to_numpy()
    return values


def levels(column: Column) -> Column:
    """Levels as text, null where missing; 1 and 1.0 are the same level."""
    return _as_levels(_plain(column))


def _plain(column: Column) -> Column:
    """Numbers, null where they are not finite, or the text as it stands."""
    if not column.dtype.is_numeric():
        return column.cast(pl.String)
    values = column.cast(pl.Float64)
    return values.set(~values.is_finite(), None)


def _as_levels(plain: Column) -> Column:
    if plain.dtype == pl.String:
        return tidy(plain)
    whole = plain.cast(pl.Int64, strict=False)
    is_whole = (whole.cast(pl.Float64) == plain).fill_null(False)
    return whole.cast(pl.String).zip_with(is_whole, plain.cast(pl.String))


def count_levels(column: Column) -> Frame:
    """How often each level occurs, as columns `level` and `times`; missing values are not among them."""
    # Values are counted before they are read as levels: a value that occurs often is read once.
    plain = _plain(column).alias("level").value_counts(name="times").cast({"times": pl.Int64})
    return plain.with_columns(_as_levels(plain["level"])).drop_nulls("level")


def level_codes(column: Column, known: tuple[str, ...]) -> NDArray[np.int64]:
    """The place of each value among the known levels; len(known) where missing, -1 where it is none of them."""
    plain = _plain(column)
    different = plain.unique().drop_nulls()
    if different.is_empty():
        return np.full(len(plain), len(known))
    text = _as_levels(different)
    codes = text.replace_strict(list(known), list(range(len(known))), default=-1, return_dtype=pl.Int64)
    codes = codes.set(text.is_null(), len(known))
    return plain.replace_strict(different, codes, return_dtype=pl.Int64).fill_null(len(known)).to_numpy(writable=True)
