"""Columns of which each value becomes several amounts: lists of numbers, and dates and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.column import Numeric, read_numeric, typed
from setpoint.data.frame import Column, matrix, numbers
from setpoint.data.layout import Block
from setpoint.data.seen import Seen

#: Microseconds of a day.
DAY = 86_400_000_000
#: The amounts that a date or time may become. The days count from 1970, and stand in for all when a value is missing.
PARTS = ("days", "year", "month", "weekday", "hour")


class _OfAmounts:
    """A column whose features are those of several amounts, one behind the other."""

    amounts: tuple[Numeric, ...]

    @property
    def features(self) -> list[str]:
        return [feature for amount in self.amounts for feature in amount.features]

    @property
    def blocks(self) -> list[Block]:
        return [block for amount in self.amounts for block in amount.blocks]


@dataclass(frozen=True)
class Vector(_OfAmounts):
    """Lists of numbers of one length: an amount for each place of the list that was not constant in training."""

    name: str
    length: int
    places: tuple[int, ...]
    amounts: tuple[Numeric, ...]

    def encode(self, column: Column) -> NDArray[np.float32]:
        values = matrix(column, self.length)
        parts = [a.encode_values(values[:, place].copy()) for place, a in zip(self.places, self.amounts)]
        return np.concatenate(parts, axis=1)

    def look(self, column: Column) -> Seen:
        values = matrix(column, self.length)[:, self.places]
        low, high = (np.array([getattr(amount, end) for amount in self.amounts]) for end in ("low", "high"))
        outside = np.isfinite(values) & ((values < low) | (values > high))
        mostly = 2 * outside.sum(axis=1) > len(self.places)
        return Seen(len(values), int(np.isinf(values).sum()), column.null_count(), 0, int(mostly.sum()))

    def notes(self, seen: Seen) -> list[str]:
        return Numeric(self.name, 0, 1, 0, 0, all(amount.missing for amount in self.amounts)).notes(seen)

    def beyond(self, seen: Seen) -> str | None:
        where = f"{seen.share(seen.outside)} have most of their numbers outside the ranges that training saw"
        return f"column {self.name!r}: {where}" if seen.outside else None

    def mostly(self, seen: Seen) -> str | None:
        return self.beyond(seen) if 2 * seen.outside > seen.rows else None


@dataclass(frozen=True)
class Times(_OfAmounts):
    """Dates or times: the days since 1970, and year, month, weekday and hour where these vary in training.

    Years to hours are those of UTC where there is a time zone; Monday is weekday 1.

    Attributes:
        name: The name of the column.
        amounts: One standardised amount per part, named such as "joined: month"; the days come first, and they alone
            have a feature that says whether the value is missing.

    Example:
        >>> import datetime, polars as pl
        >>> from setpoint.data.schema import Schema
        >>> from setpoint.data.target import Target
        >>> days = pl.date_range(datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), eager=True)
        >>> frame = pl.DataFrame({"joined": days, "paid": [0, 1]})
        >>> Schema.of(frame, Target.of(frame, "paid")).features
        ['joined: days', 'joined: month', 'joined: weekday']
    """

    name: str
    amounts: tuple[Numeric, ...]

    @property
    def parts(self) -> list[str]:
        """The part of a time that each amount is, among `PARTS`."""
        return [amount.name.removeprefix(f"{self.name}: ") for amount in self.amounts]

    def encode(self, column: Column) -> NDArray[np.float32]:
        encoded = [a.encode_values(time_part(column, part)) for part, a in zip(self.parts, self.amounts)]
        return np.concatenate(encoded, axis=1)

    def look(self, column: Column) -> Seen:
        days = self.amounts[0]
        ends = pl.Series([round(days.low * DAY), round(days.high * DAY)]).cast(column.dtype)
        seen = days.look_at_values(time_part(column, "days"), "")
        return Seen(seen.rows, 0, seen.missing, 0, seen.outside, " to ".join(map(str, ends)))

    def notes(self, seen: Seen) -> list[str]:
        return self._days.notes(seen)

    def beyond(self, seen: Seen) -> str | None:
        return self._days.beyond(seen)

    def mostly(self, seen: Seen) -> str | None:
        return self._days.mostly(seen)

    @property
    def _days(self) -> Numeric:
        """The days under the name of the column."""
        days = self.amounts[0]
        return Numeric(self.name, days.mean, days.deviation, days.low, days.high, days.missing)


def time_part(column: Column, part: str) -> NDArray[np.float64]:
    """One part of every date or time, NaN where missing."""
    # Divided by numpy: polars multiplies by the inverse, whose last digit is another than an exported model has.
    if part == "days":
        return numbers(column) / DAY
    if part == "hour":
        return numbers(column.dt.hour()) + numbers(column.dt.minute()) / 60
    return numbers(getattr(column.dt, part)())


def read_vector(name: str, *, length: Any, places: Any, amounts: Any) -> Vector:
    """The column that a saved schema describes."""
    known = tuple(read_numeric(**amount) for amount in amounts)
    if len(places) != len(known) or len(set(places)) < len(places):
        raise TypeError(f"column {name!r} names odd places of its lists")
    if not all(0 <= typed(int, place) < typed(int, length) for place in places):
        raise TypeError(f"column {name!r} names places beyond its lists")
    return Vector(name, length, tuple(places), known)


def read_times(name: str, *, amounts: Any) -> Times:
    """The column that a saved schema describes."""
    known = tuple(read_numeric(**amount) for amount in amounts)
    parts = [amount.name for amount in known]
    if parts[:1] != [f"{name}: days"] or not set(parts) <= {f"{name}: {part}" for part in PARTS}:
        raise TypeError(f"column {name!r} names odd parts of its times")
    if len(set(parts)) < len(parts) or any(amount.missing for amount in known[1:]):
        raise TypeError(f"column {name!r} names a part of its times twice")
    return Times(name, known)
