"""The features of a single row, as a service is asked for: value by value, since a frame costs more than the row.

Numbers, dates and levels are encoded here, to the bit as `Columns.encoded` does; values of all other kinds are encoded
by their column.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.column import Categorical, Numeric
from setpoint.data.frame import MISSING
from setpoint.data.kinds import AnyColumn
from setpoint.data.reading import Readings
from setpoint.data.seen import Notes, Seen
from setpoint.data.several import DAY, Times
from setpoint.data.standardise import soften
from setpoint.data.target_mean import TargetMean

#: A column, and the place of its first feature.
Place: TypeAlias = tuple[AnyColumn, int]
#: The kinds of values of a row; a mapping with others, such as lists, may be columns.
_SCALARS = {
    float, int, bool, str, type(None), datetime.date, datetime.datetime, datetime.time, datetime.timedelta,
}  # fmt: skip
#: All that Unicode calls white space, which is cut off around words.
_BLANK = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"  # noqa: E501
#: Whole numbers from here on are not all whole numbers of 64 bits.
_LARGE = 2.0**63
_USUAL = Seen(rows=1)


class OneRow:
    """Encodes rows one by one.

    Args:
        columns: The columns that training used.
        readings: How each is read.
    """

    def __init__(self, columns: Sequence[AnyColumn], readings: Readings) -> None:
        self.columns = columns
        self.readings = readings
        self.names = frozenset(column.name for column in columns)
        self.percents = [name for name in self.names if readings[name].unit == "%"]
        self.width = sum(len(column.features) for column in columns)
        starts = np.cumsum([0, *(len(column.features) for column in columns)])[:-1].tolist()
        self.numeric: list[tuple[Numeric, int]] = []
        self.times: list[tuple[Times, int, str]] = []
        self.levels: list[tuple[Categorical | TargetMean, int, str, dict[str, int]]] = []
        self.others: list[Place] = []
        for column, start in zip(columns, starts):
            reading = readings[column.name]
            if isinstance(column, Numeric) and reading.kind == "number":
                self.numeric.append((column, start))
            elif isinstance(column, Times) and not reading.form:
                self.times.append((column, start, reading.kind))
            elif isinstance(column, (Categorical, TargetMean)) and reading.kind in ("words", "boolean", "number"):
                self.levels.append((column, start, reading.kind, {level: k for k, level in enumerate(column.levels)}))
            else:
                self.others.append((column, start))
        # Every amount, of numbers and of parts of times, with the place of its feature.
        amounts = list(self.numeric)
        for column, start, _ in self.times:
            ends = np.cumsum([0, *(len(amount.features) for amount in column.amounts)]).tolist()
            amounts += [(amount, start + before) for amount, before in zip(column.amounts, ends)]
        self.places = np.array([start for _, start in amounts], dtype=np.int64)
        self.flags = np.array([start + 1 for amount, start in amounts if amount.missing], dtype=np.int64)
        self.flagged = np.array([amount.missing for amount, _ in amounts], dtype=bool)
        self.mean = np.array([amount.mean for amount, _ in amounts])
        self.deviation = np.array([amount.deviation for amount, _ in amounts])
        self.shift = np.array([amount.mean / amount.deviation for amount, _ in amounts])

    def encoded(self, row: Mapping[str, Any], notes: Notes | None = None) -> NDArray[np.float32] | None:
        """Features `(1, d)`; None if the row must be read as a frame. The row has all columns of training."""
        if any(type(value) not in _SCALARS for value in row.values()):
            return None
        if notes is not None and any(type(row[name]) in (float, int) for name in self.percents):
            return None
        features = np.zeros((1, self.width), dtype=np.float32)
        values: list[float] = []
        later = [*self.others, *self._add_numbers(row, notes, features, values), *self._add_times(row, notes, values)]
        later += self._add_levels(row, notes, features)
        if values:
            self._standardise(np.array(values, dtype=np.float64), features)
        for column, start in later:
            read = self.readings[column.name].read(pl.Series(column.name, [row[column.name]]))
            features[0, start : start + len(column.features)] = column.encode(read)[0]
            if notes is not None:
                notes.seen[column.name] += column.look(read)
        return features

    def _add_numbers(
        self, row: Mapping[str, Any], notes: Notes | None, features: NDArray[np.float32], values: list[float]
    ) -> list[Place]:
        """Append the numbers to the values; the columns whose values are text, or are to be refused, are left."""
        left: list[Place] = []
        for column, start in self.numeric:
            value = row[column.name]
            kind = type(value)
            is_number = kind is float or (kind is int and -_LARGE < value < _LARGE)
            values.append(value if is_number else math.nan)
            if not is_number and value is not None:
                left.append((column, start))
                continue
            if notes is not None:
                self._note(notes, column, value, is_number and column.low <= value <= column.high)
            if is_number and column.levels:
                first = start + 1 + column.missing
                features[0, first : first + len(column.levels)] = [float(value) == level for level in column.levels]
        return left

    def _add_times(self, row: Mapping[str, Any], notes: Notes | None, values: list[float]) -> list[Place]:
        """Append the parts of dates and times to the values; the columns whose values polars knows best are left."""
        left: list[Place] = []
        for column, start, kind in self.times:
            value = row[column.name]
            moment = None if value is None else _moment(value, kind)
            if moment is None:
                values.extend([math.nan] * len(column.amounts))
                left.append((column, start))
                continue
            parts = _parts(moment)
            values.extend(parts[part] for part in column.parts)
            if notes is not None:
                days = column.amounts[0]
                self._note(notes, column, value, days.low <= parts["days"] <= days.high)
        return left

    def _add_levels(self, row: Mapping[str, Any], notes: Notes | None, features: NDArray[np.float32]) -> list[Place]:
        """Encode the levels; the columns whose values are no levels of their kind are left."""
        left: list[Place] = []
        for column, start, kind, known in self.levels:
            text = _level(row[column.name], kind)
            if text is _UNREADABLE:
                left.append((column, start))
                continue
            code = len(known) if text is None else known.get(text, -1)
            if notes is not None:
                usual = code < len(known) if isinstance(column, TargetMean) else 0 <= code < len(known)
                self._note(notes, column, row[column.name], usual)
            if isinstance(column, TargetMean):
                features[0, start] = (*column.values, column.missing or 0.0, 0.0)[code]
                continue
            if code == len(known) and not column.missing:
                code = -1
            code = len(column.features) - 1 if code < 0 and column.other else code
            if code >= 0:
                features[0, start + code] = 1.0
        return left

    def _standardise(self, values: NDArray[np.float64], features: NDArray[np.float32]) -> None:
        """As `Numeric.encode_values` does, all columns at once."""
        unknown = ~np.isfinite(values)
        with np.errstate(over="ignore"):
            z = np.where(unknown, self.mean, values) / self.deviation - self.shift
        features[0, self.places] = soften(z)
        features[0, self.flags] = unknown[self.flagged]

    def _note(self, notes: Notes, column: AnyColumn, value: Any, usual: bool) -> None:
        if usual:
            notes.seen[column.name] += _USUAL
        else:
            read = self.readings[column.name].read(pl.Series(column.name, [value]))
            notes.seen[column.name] += column.look(read)


_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
#: Dates and times in the text of which there is nothing to wonder about.
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?", re.ASCII)


def _moment(value: Any, kind: str) -> datetime.datetime | None:
    """A date or time without its zone, in UTC if it has one; None if it is of another kind, or polars knows best."""
    found = type(value)
    if kind == "time with a zone":
        is_utc = found is datetime.datetime and value.tzinfo is datetime.timezone.utc
        return value.replace(tzinfo=None) if is_utc else None
    if found is datetime.datetime:
        return value if value.tzinfo is None else None
    if found is datetime.date:
        return datetime.datetime(value.year, value.month, value.day)
    if found is str and _PLAIN_TIME.fullmatch(value):
        try:
            return datetime.datetime.fromisoformat(value)
        except ValueError:
            return None
    return None


def _parts(moment: datetime.datetime) -> dict[str, float]:
    """The parts of a time, as `time_part` finds them."""
    return {
        "days": ((moment - _EPOCH) // _MICROSECOND) / DAY, "year": moment.year, "month": moment.month,
        "weekday": moment.isoweekday(), "hour": moment.hour + moment.minute / 60,
    }  # fmt: skip


#: A value that is no level of its kind, or whose text polars knows best.
_UNREADABLE = "\0unreadable"


def _level(value: Any, kind: str) -> str | None:
    """The text of a level, None where it is missing."""
    found = type(value)
    if value is None:
        return None
    if kind == "words" and found is str:
        text: str = value.strip(_BLANK)
        return None if text.lower() in MISSING else text
    if kind == "boolean" and found is bool:
        return "true" if value else "false"
    if kind == "number" and found in (int, float) and -_LARGE < value < _LARGE and value == int(value):
        return str(int(value))
    return _UNREADABLE
