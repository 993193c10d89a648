"""Readings: what each column of a table holds, found once when a model is trained and applied as found ever after.

A text file has no types, and a frame may have others than the one that was trained on. Nothing is inferred from the
rows to be predicted, so a row is read in the same way whatever other rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from setpoint.data.frame import Column, Frame, tidy
from setpoint.errors import BadTable

_NUMBER, _BOOLEAN, _TIME, _ZONED, _CLOCK, _SPAN, _LIST, _WORDS = (
    "number", "boolean", "time", "time with a zone", "time of day", "duration", "list of numbers", "words",
)  # fmt: skip
#: The name of each kind in a sentence, and its form in a text file.
_SPOKEN = {
    _NUMBER: ("numbers", "numbers such as 1234.5"),
    _BOOLEAN: ("booleans", "true or false"),
    _TIME: ("dates or times without a time zone", "dates or times such as 2024-03-01 or 2024-03-01 12:30:00"),
    _ZONED: ("times with a time zone", "times with their zone, such as 2024-03-01T12:30:00+01:00"),
    _CLOCK: ("times of day", "times of day such as 12:30:00"),
    _SPAN: ("durations", "durations, which text files do not hold; give a Parquet file or a frame"),
    _LIST: ("lists of numbers", "lists of numbers of one length, such as [0.5, 1.25]"),
    _WORDS: ("words", "words"),
}
_ZONE = r"(?:Z|[+-]\d{2}:?\d{2})$"
_LEADING_ZERO = r"^[+-]?0\d"


@dataclass(frozen=True)
class Reading:
    """How one column is read: its kind and, for lists of numbers, their length."""

    kind: str
    length: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _SPOKEN or type(self.length) is not int or (self.length < 1) == (self.kind == _LIST):
            raise TypeError(f"no such reading of a column: {self!r}")

    def read(self, column: Column) -> Column:
        """The column as values of this kind; other kinds, and text that does not spell this kind, are refused.

        Numbers become Float64, times microseconds since 1970 in UTC, lists lists of Float64. Words stay as they are
        spelled. Reading a column that was read already changes nothing.
        """
        if column.dtype == pl.Null:
            return column.cast(_EMPTY[self.kind])
        if is_text(column) and self.kind == _WORDS:
            return column.cast(pl.String)
        if is_text(column) and self.kind in _PARSERS:
            text = tidy(column.cast(pl.String))
            return self._checked(text, _PARSERS[self.kind](text))
        found = _WORDS if is_text(column) else _kind_of(column.dtype)
        if found != self.kind:
            raise self._refused(column.name, f"{_SPOKEN[found][0] if found else f'values of type {column.dtype}'} here")
        return self._checked(column, _as_read(column))

    def _checked(self, column: Column, values: Column) -> Column:
        """The values, if every one that is there could be read."""
        if values.null_count() > column.null_count():
            raise self._refused(column.name, repr(column.filter(values.is_null() & column.is_not_null())[0]))
        if self.kind == _LIST:
            lengths = values.list.len().drop_nulls().unique()
            if not (lengths == self.length).all():
                raise self._refused(column.name, f"a list of {lengths.filter(lengths != self.length)[0]} here")
        return values

    def _refused(self, name: str, found: str) -> BadTable:
        spoken, written = _SPOKEN[self.kind]
        held = f"{spoken} of length {self.length}" if self.kind == _LIST else spoken
        return BadTable(f"column {name!r} held {held} in training but holds {found}; give it as {written}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value}


class Guess:
    """Finds out what a column holds, from values that are given at once or chunk by chunk.

    Text is numbers, booleans, times or lists if each of its values spells one. Digits that start with a zero, as in
    a postal code, are words.
    """

    def __init__(self) -> None:
        self.possible = list(_PARSERS)
        self.known, self.unusable = 0, False
        self.typed: str | None = None
        self.lengths: set[int] = set()

    def add(self, column: Column) -> Column:
        """Take the values into account; the column, read as the kind that looks right so far."""
        if column.dtype in (pl.Categorical, pl.Enum):
            self.typed = _WORDS
            return column.cast(pl.String)
        if not is_text(column):
            self.typed = _kind_of(column.dtype)
            self.unusable = self.typed is None and column.dtype != pl.Null
            return self._measured(_as_read(column)) if self.typed else column
        text = tidy(column.cast(pl.String))
        known = len(text) - text.null_count()
        self.known += known
        if not known:
            return column
        first = text.filter(text.is_not_null())[:1]
        read = column.cast(pl.String)
        for kind in list(self.possible):
            values = _PARSERS[kind](text) if _PARSERS[kind](first).null_count() == 0 else None
            codes = kind == _NUMBER and text.str.contains(_LEADING_ZERO).any()
            if values is None or values.null_count() > text.null_count() or codes:
                self.possible.remove(kind)
            else:
                read = self._measured(values) if kind == _LIST else values
        return read

    def _measured(self, values: Column) -> Column:
        if values.dtype == pl.List:
            self.lengths.update(values.list.len().drop_nulls().unique().to_list())
        return values

    @property
    def open(self) -> bool:
        """Whether more values could change what the column is found to hold."""
        return self.typed in (None, _LIST) and bool(self.possible) and not self.unusable

    def found(self) -> Reading | None:
        """The reading, or None for values that cannot be used."""
        if self.unusable:
            return None
        kind = self.typed or (self.possible[0] if self.known and self.possible else _WORDS)
        if kind != _LIST:
            return Reading(kind)
        return Reading(_LIST, next(iter(self.lengths))) if len(self.lengths) == 1 and 0 not in self.lengths else None


Readings = Mapping[str, Reading]


def learn_readings(frame: Frame) -> tuple[dict[str, Reading], Frame]:
    """The reading of every column that can be used, and the frame as read."""
    readings: dict[str, Reading] = {}
    read: dict[str, Column] = {}
    for column in frame:
        guess = Guess()
        values = guess.add(column)
        reading = guess.found()
        read[column.name] = column if reading is None else values
        if reading is not None:
            readings[column.name] = reading
            if reading.kind == _WORDS:
                read[column.name] = reading.read(column)
    return readings, pl.DataFrame(read)


def apply_readings(frame: Frame, readings: Readings) -> Frame:
    """The frame with every column that has a reading read that way."""
    return frame.with_columns([readings[column.name].read(column) for column in frame if column.name in readings])


def is_text(column: Column) -> bool:
    """Whether the values are text."""
    return column.dtype in (pl.String, pl.Categorical, pl.Enum)


def _kind_of(dtype: pl.DataType) -> str | None:
    """The kind of the values of a type other than text, or None if they cannot be used."""
    if dtype.is_numeric():
        return _NUMBER
    if isinstance(dtype, pl.Datetime):
        return _ZONED if dtype.time_zone else _TIME
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = dtype.inner
        return _LIST if isinstance(inner, pl.DataType) and inner.is_numeric() else None
    plain: dict[Any, str] = {pl.Boolean: _BOOLEAN, pl.Date: _TIME, pl.Time: _CLOCK, pl.Duration: _SPAN}
    return plain.get(dtype.base_type())


def _as_read(column: Column) -> Column:
    """A column of another type than text, in the one type of its kind."""
    kind = _kind_of(column.dtype)
    assert kind is not None
    if kind == _ZONED:
        column = column.dt.convert_time_zone("UTC")
    if column.dtype == pl.Float32:
        # As a text file spells it: 0.1 in single precision is the number 0.1, in a CSV file and in a Parquet file.
        column = column.cast(pl.String)
    if kind == _LIST and isinstance(column.dtype, pl.Array):
        column = column.arr.to_list()
    return column.cast(_EMPTY[kind], strict=False)


def _parse_number(text: Column) -> Column:
    return text.cast(pl.Float64, strict=False)


def _parse_boolean(text: Column) -> Column:
    lower = text.str.to_lowercase()
    return (lower == "true").set(~lower.is_in(["true", "false"]).fill_null(False), None)


def _parse_time(text: Column) -> Column:
    """ISO 8601: a day, or a day and a time to the minute, second or fraction of it."""
    whole = _to_the_second(text)
    return whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def _parse_zoned(text: Column) -> Column:
    zone = text.str.extract(f"({_ZONE})").str.replace("Z", "+00:00", literal=True)
    whole = _to_the_second(text.str.replace(_ZONE, "")) + zone.str.replace(r"^(...)(\d\d)$", "${1}:${2}")
    return whole.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", strict=False)


def _to_the_second(text: Column) -> Column:
    spaced = text.str.replace(r"^(\d{4}-\d{2}-\d{2})[T ]", "${1} ").str.replace(r"^(.{10})$", "${1} 00:00")
    return spaced.str.replace(r"^(.{10} \d{2}:\d{2})$", "${1}:00")


def _parse_clock(text: Column) -> Column:
    return text.str.replace(r"^(\d{2}:\d{2})$", "${1}:00").str.to_time("%H:%M:%S%.f", strict=False)


def _parse_list(text: Column) -> Column:
    inside = text.str.extract(r"^\[(.*)\]$").str.split(",")
    values = inside.list.eval(pl.element().str.strip_chars().cast(pl.Float64, strict=False))
    # A list with anything in it that is no number is no list of numbers.
    odd = values.list.eval(pl.element().is_null()).list.any()
    return values.set(odd.fill_null(True), None)


_PARSERS: dict[str, Callable[[Column], Column]] = {
    _NUMBER: _parse_number, _BOOLEAN: _parse_boolean, _TIME: _parse_time, _ZONED: _parse_zoned, _CLOCK: _parse_clock,
    _LIST: _parse_list,
}  # fmt: skip
#: The type of each kind once read.
_EMPTY: dict[str, pl.DataType] = {
    _NUMBER: pl.Float64(), _BOOLEAN: pl.Boolean(), _TIME: pl.Datetime("us"), _ZONED: pl.Datetime("us", "UTC"),
    _CLOCK: pl.Time(), _SPAN: pl.Duration("us"), _LIST: pl.List(pl.Float64()), _WORDS: pl.String(),
}  # fmt: skip
