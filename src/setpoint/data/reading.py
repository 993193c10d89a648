"""Readings: what each column of a table holds, found once when a model is trained and applied as found from then on.

A text file has no types, and a frame may have others than the frame that was trained on. Nothing is inferred from the
rows to be predicted, so a row is read in the same way whatever other rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import polars as pl

from setpoint.data.frame import Column, Frame, tidy
from setpoint.data.spelling import (
    COMMA,
    DAY_FIRST,
    DOTTED,
    MEANING,
    MONTH_FIRST,
    NAMED,
    POINT,
    UNITS,
    YEAR_FIRST,
    is_word,
    may_be_number,
    parse_boolean,
    parse_clock,
    parse_list,
    parse_number,
    parse_plain,
    parse_time,
    parse_zoned,
    to_iso,
)
from setpoint.errors import BadTable

_NUMBER, _BOOLEAN, _TIME, _ZONED, _CLOCK, _SPAN, _LIST, _WORDS, _BYTES = (
    "number", "boolean", "time", "time with a zone", "time of day", "duration", "list of numbers", "words", "bytes",
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
    _BYTES: ("bytes", "bytes, which text files do not hold; give a Parquet file or a frame"),
}
#: The forms in which numbers and dates may be written, apart from the usual one.
_FORMS = {_NUMBER: (POINT, COMMA), _TIME: (DOTTED, MONTH_FIRST, DAY_FIRST, YEAR_FIRST, NAMED)}
_LEADING_ZERO = r"^[^\d.,]*0\d"


@dataclass(frozen=True)
class Reading:
    """How one column is read.

    Attributes:
        kind: The kind of its values.
        length: The length of lists of numbers.
        form: An example of the form in which numbers or dates are written, such as "1.234,5"; empty for 1234.5 and for
            2024-12-31.
        unit: The sign or code of money, or "%", that numbers of a form may have.
    """

    kind: str
    length: int = 0
    form: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        odd = self.kind not in _SPOKEN or type(self.length) is not int or (self.length < 1) == (self.kind == _LIST)
        units = UNITS if self.kind == _NUMBER and self.form else ()
        if odd or self.form not in ("", *_FORMS.get(self.kind, ())) or self.unit not in ("", *units):
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
            return self._checked(text, self._parsed(text))
        if (_WORDS if is_text(column) else _kind_of(column.dtype)) != self.kind:
            raise BadTable(self.refusal(column.name, f"{spoken_kind(column)} here"))
        return self._checked(column, _as_read(column))

    def _parsed(self, text: Column) -> Column:
        if self.form and self.kind == _NUMBER:
            return parse_number(text, self.form, self.unit)[0]
        return _PARSERS[self.kind](to_iso(text, self.form) if self.form else text)

    def spelling(self, name: str) -> str:
        """A sentence on the form in which a column is written, or an empty text for the usual form."""
        if not self.form:
            return ""
        unit = {"": "", "%": ", and 5 % is 5"}.get(self.unit, f", with {self.unit} around it or not")
        return f"column {name!r} holds {_SPOKEN[self.kind][0]} written as {self.form}: {MEANING[self.form]}{unit}"

    def _checked(self, column: Column, values: Column) -> Column:
        """The values, if every one that is there could be read."""
        if values.null_count() > column.null_count():
            odd = repr(column.filter(values.is_null() & column.is_not_null())[0])
            raise BadTable(self.refusal(column.name, odd))
        if self.kind == _LIST:
            lengths = values.list.len().drop_nulls().unique()
            if not (lengths == self.length).all():
                odd = f"a list of {lengths.filter(lengths != self.length)[0]} here"
                raise BadTable(self.refusal(column.name, odd))
        return values

    def refusal(self, name: str, found: str) -> str:
        """The sentence on something in a column that is not of this kind."""
        spoken, written = _SPOKEN[self.kind]
        written = f"{spoken} such as {self.form}" if self.form else written
        if self.unit == "%":
            spoken, written = "percentages", f"percentages with their sign, such as {self.form[3:]} %"
        held = f"{spoken} of length {self.length}" if self.kind == _LIST else spoken
        return f"column {name!r} held {held} in training but holds {found}; give it as {written}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value}


class Guess:
    """Finds out what a column holds, from values that are given at once or chunk by chunk.

    Text is numbers, booleans, times or lists if each of its values spells one in the same form. Plain numbers and
    dates go before other forms, and commas between thousands before decimal commas. Digits that start with a zero, as
    in a postal code, are words; so are numbers of several units, and dates that may be read in two ways.
    """

    def __init__(self) -> None:
        self.possible = [*_POSSIBLE]
        self.units: set[str] = set()
        self.known, self.unusable = 0, False
        self.typed: str | None = None
        self.lengths: set[int] = set()

    def add(self, column: Column) -> Column:
        """Take the values into account; the column, read as the kind that looks right so far."""
        if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
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
        if is_word(first[0]):
            self.possible = []
            return column.cast(pl.String)
        read: Column | None = None
        fitted: Reading | None = None
        if parse_plain(first).null_count() == 0:
            # A number is nothing else, and need not be tried as anything else.
            self.possible = [reading for reading in self.possible if reading.kind == _NUMBER]
        for reading in list(self.possible):
            plain = fitted == Reading(_NUMBER) and reading.kind == _NUMBER
            if plain and _reads_plain(reading, text):
                self.units.add("")
                continue
            fits = may_be_number(first, reading.form) if plain else self._tried(reading, first) is not None
            values = self._tried(reading, text) if fits else None
            if values is None:
                self.possible.remove(reading)
            elif read is None:
                read, fitted = self._measured(values), reading
        return column.cast(pl.String) if read is None else read

    def _tried(self, reading: Reading, text: Column) -> Column | None:
        """The values, if the reading fits all of them."""
        if reading.kind == _NUMBER and text.str.contains(_LEADING_ZERO).any():
            return None
        if not (reading.kind == _NUMBER and reading.form):
            values = reading._parsed(text)
        else:
            values, units = parse_number(text, reading.form)
            self.units.update(units.filter(values.is_not_null()).unique())
        return values if values.null_count() == text.null_count() else None

    def _measured(self, values: Column) -> Column:
        if values.dtype == pl.List:
            self.lengths.update(values.list.len().drop_nulls().unique().to_list())
        return values

    def merge(self, other: Guess) -> Guess:
        """Take the guess at some rows more into account."""
        self.possible = [reading for reading in self.possible if reading in other.possible]
        self.units |= other.units
        self.lengths |= other.lengths
        self.known, self.unusable = self.known + other.known, self.unusable or other.unusable
        self.typed = self.typed or other.typed
        return self

    @property
    def open(self) -> bool:
        """Whether more values could change what the column is found to hold."""
        return self.typed in (None, _LIST) and bool(self.possible) and not self.unusable

    def found(self) -> Reading | None:
        """The reading, or None for values that cannot be used."""
        if self.unusable:
            return None
        if self.typed != _LIST and (self.typed or not (self.known and self.possible)):
            return Reading(self.typed or _WORDS)
        first = self.possible[0]
        if self.typed is None and first.kind != _LIST:
            either_way = {Reading(_TIME, form=form) for form in (DAY_FIRST, MONTH_FIRST)} <= set(self.possible)
            several = len(self.units - {""}) > 1 or {"", "%"} <= self.units
            if (first.form and several) or either_way:
                return Reading(_WORDS)
            unit = next(iter(self.units - {""}), "") if first.kind == _NUMBER and first.form else ""
            return Reading(first.kind, form=first.form, unit=unit)
        return Reading(_LIST, next(iter(self.lengths))) if len(self.lengths) == 1 and 0 not in self.lengths else None


def _reads_plain(reading: Reading, text: Column) -> bool:
    """Whether plain numbers are numbers of the form of a reading too, as far as that is seen at once."""
    return reading.form == POINT or not text.str.contains(".", literal=True).any()


Readings = Mapping[str, Reading]


def learn_readings(frame: Frame) -> tuple[dict[str, Reading], Frame]:
    """The reading of every column that can be used, and the frame as read."""
    readings: dict[str, Reading] = {}
    read: dict[str, Column] = {}
    # All at once, on all cores: of a large table this is most of the reading.
    for column in frame.with_columns(_spelled(pl.col(pl.Float32))):
        if _is_read(column):
            readings[column.name], read[column.name] = _PLAIN, column
            continue
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
    # Most of thousands of columns are read already, and to put each in its own place takes longer than to see that.
    other = [c for c in frame if c.name in readings and not (_is_read(c) and readings[c.name].kind == _NUMBER)]
    return frame.with_columns([readings[column.name].read(column) for column in other]) if other else frame


def _is_read(column: Column) -> bool:
    """Whether a column holds numbers as they are once read."""
    return isinstance(column.dtype, pl.Float64)


def is_text(column: Column) -> bool:
    """Whether the values are text."""
    return isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum))


def spoken_kind(column: Column) -> str:
    """The kind of values in a column, by its type, in a sentence."""
    kind = _WORDS if is_text(column) else _kind_of(column.dtype)
    return _SPOKEN[kind][0] if kind else f"values of type {column.dtype}"


def nearest_reading(column: Column) -> tuple[str, str | None, str | None]:
    """The kind of numbers, dates or times that most of some texts are; the first text that is one, and that is none.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.reading import nearest_reading
        >>> nearest_reading(pl.Series(["2024-03-01", "31.12.2024", "2024-03-02"]))[1:]
        ('2024-03-01', '31.12.2024')
    """
    text = tidy(column.cast(pl.String))
    orders = [reading for reading in _POSSIBLE if reading.kind in (_NUMBER, _TIME, _ZONED, _CLOCK)]
    found = {reading: reading._parsed(text).is_not_null() for reading in orders}
    reading = max(found, key=lambda reading: found[reading].sum())
    fits = found[reading]
    fitting, odd = (text.filter(own).head(1).to_list() for own in (fits, ~fits & text.is_not_null()))
    return _SPOKEN[reading.kind][0], *(fitting or [None]), *(odd or [None])


def _kind_of(dtype: pl.DataType) -> str | None:
    """The kind of the values of a type other than text, or None if they cannot be used."""
    if dtype.is_numeric():
        return _NUMBER
    if isinstance(dtype, pl.Datetime):
        return _ZONED if dtype.time_zone else _TIME
    if isinstance(dtype, (pl.List, pl.Array)):
        inner = dtype.inner
        return _LIST if isinstance(inner, pl.DataType) and inner.is_numeric() else None
    plain: dict[Any, str] = {
        pl.Boolean: _BOOLEAN,
        pl.Date: _TIME,
        pl.Time: _CLOCK,
        pl.Duration: _SPAN,
        pl.Binary: _BYTES,
    }
    return plain.get(dtype.base_type())


def _as_read(column: Column) -> Column:
    """A column of another type than text, in the one type of its kind."""
    if isinstance(column.dtype, pl.Float64):
        return column
    kind = _kind_of(column.dtype)
    assert kind is not None
    if kind == _ZONED:
        column = column.dt.convert_time_zone("UTC")
    if column.dtype == pl.Float32:
        column = _spelled(column)
    if kind == _LIST and isinstance(column.dtype, pl.Array):
        column = column.arr.to_list()
    return column.cast(_EMPTY[kind], strict=False)


C = TypeVar("C", pl.Series, pl.Expr)


def _spelled(column: C) -> C:
    """Single precision as a text file spells it: 0.1 is the number 0.1, in a CSV file and in a Parquet file."""
    return column.cast(pl.String).cast(pl.Float64, strict=False)


_PARSERS: dict[str, Callable[[Column], Column]] = {
    _NUMBER: parse_plain, _BOOLEAN: parse_boolean, _TIME: parse_time, _ZONED: parse_zoned, _CLOCK: parse_clock,
    _LIST: parse_list,
}  # fmt: skip
#: The type of each kind once read.
_EMPTY: dict[str, pl.DataType] = {
    _NUMBER: pl.Float64(), _BOOLEAN: pl.Boolean(), _TIME: pl.Datetime("us"), _ZONED: pl.Datetime("us", "UTC"),
    _CLOCK: pl.Time(), _SPAN: pl.Duration("us"), _LIST: pl.List(pl.Float64()), _WORDS: pl.String(),
    _BYTES: pl.Binary(),
}  # fmt: skip
#: The reading of numbers in their usual form.
_PLAIN = Reading(_NUMBER)
#: Everything that text may be read as.
_POSSIBLE = [
    *(Reading(kind, length=int(kind == _LIST)) for kind in _PARSERS),
    *(Reading(kind, form=form) for kind, forms in _FORMS.items() for form in forms),
]
