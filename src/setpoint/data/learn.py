"""Learn from the training rows what each column holds, from all rows at once or chunk by chunk.

Chunks give the same as the whole table, but for two things. A column of more than `MOST_KEPT` levels keeps the most
frequent ones of every moment, so that the counts of rare levels may fall short; and numbers that were taken as words
are not remarked on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.column import Categorical, Numeric, Vector
from setpoint.data.frame import (
    Column,
    count_levels,
    holds_levels,
    holds_numbers,
    levels,
    matrix,
    numbers,
    odd_numbers,
)
from setpoint.data.reading import Reading

#: The most levels of one column that get a feature of their own.
MOST_LEVELS = 100
#: Whole numbers with 3 to this many different values are codes (a region, a month), not amounts.
MOST_CODES = 12
#: As many values as these tell most columns of amounts from columns of codes.
FIRST = 1000
#: Levels of one column that are counted at a time.
MOST_KEPT = 100_000
_AS_NAMES = "no value occurs twice, as in a name or an identifier"
_UNEVEN = "its lists are empty, missing or differ in length"


@dataclass(frozen=True)
class Moments:
    """The number of rows and of known values, their mean, deviation and range; `+` joins those of two chunks."""

    rows: int = 0
    known: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Moments:
        finite = np.isfinite(values)
        known = values if finite.all() else values[finite]
        if len(known) == 0:
            return cls(len(values))
        low, high = float(known.min()), float(known.max())
        # Scaled first: the squares of huge numbers overflow.
        size = max(abs(low), abs(high)) or 1.0
        scaled = known / size
        return cls(len(values), len(known), float(scaled.mean()) * size, float(scaled.std()) * size, low, high)

    def __add__(self, other: Moments) -> Moments:
        known = self.known + other.known
        if self.known == 0:
            return replace(other, rows=self.rows + other.rows)
        share = other.known / known
        apart = other.mean - self.mean
        deviation = math.hypot(
            math.sqrt(1 - share) * self.deviation, math.sqrt(share) * other.deviation,
            math.sqrt(share * (1 - share)) * apart,
        )  # fmt: skip
        mean = self.mean + share * apart
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Moments(self.rows + other.rows, known, mean, deviation, low, high)


@dataclass(frozen=True)
class LevelCounts:
    """The counts of the most frequent levels, in that order; the number of levels, missing values and rows."""

    times: dict[str, int]
    different: int
    missing: int
    rows: int


class Levels:
    """Counts of the levels of a column."""

    def __init__(self) -> None:
        self.counts = pl.DataFrame(schema={"level": pl.String, "times": pl.Int64})
        self.missing = self.rows = 0
        self.different = 0

    def add(self, column: Column) -> Levels:
        """Count the levels of some rows more."""
        here = count_levels(column)
        self.rows += len(column)
        self.missing += len(column) - int(here["times"].sum())
        self.counts = pl.concat([self.counts, here]).group_by("level").agg(pl.col("times").sum())
        # Once levels have been let go of, those that come back count as new ones.
        self.different = max(self.different, self.counts.height)
        if self.counts.height > MOST_KEPT:
            self.counts = self.counts.top_k(MOST_KEPT, by=["times", "level"], reverse=[False, True])
        return self

    def found(self, most: int) -> LevelCounts:
        """The counts of the `most` most frequent levels."""
        top = self.counts.top_k(most, by=["times", "level"], reverse=[False, True])
        top = top.sort(["times", "level"], descending=[True, False])
        return LevelCounts(dict(top.iter_rows()), self.different, self.missing, self.rows)


class Learner:
    """A column as training sees it, a chunk at a time; every chunk is read in the same way."""

    def __init__(self, first: Column, reading: Reading | None) -> None:
        self.name, self.dtype, self.length = first.name, first.dtype, reading.length if reading else 0
        self.why = _refusal(first, self.length)
        self.places = [Moments()] * self.length
        self.holds_numbers = holds_numbers(first)
        self.moments, self.levels = Moments(), Levels()
        self.codes: dict[float, int] | None = {}

    def add(self, column: Column) -> None:
        """Take some rows more into account."""
        if self.why is not None:
            return
        if self.length:
            columns = matrix(column, self.length).T
            self.places = [place + Moments.of(values) for place, values in zip(self.places, columns)]
            return
        if not self.holds_numbers:
            self.levels.add(column)
            return
        values = numbers(column)
        self.moments += Moments.of(values)
        here = None if self.codes is None else few_values(values)
        if self.codes is not None and here is not None:
            here = {value: self.codes.get(value, 0) + here.get(value, 0) for value in {**self.codes, **here}}
        self.codes = None if here is None or len(here) > MOST_CODES else here

    def found(self) -> Numeric | Vector | Categorical | str:
        """The column with what training saw in it, or why it is of no use."""
        if self.why is not None:
            return self.why
        if self.length:
            return _vector(self.name, self.places)
        if not self.holds_numbers:
            return _categorical(self.name, self.levels.found(MOST_LEVELS))
        if self.codes is not None and are_codes(self.codes, self.moments, numeric=self.dtype.is_numeric()):
            return _categorical(self.name, self._codes(self.codes))
        return _numeric(self.name, self.moments)

    def _codes(self, codes: dict[float, int]) -> LevelCounts:
        values = pl.Series(list(codes), dtype=pl.Float64)
        texts = levels(values.cast(pl.Int64).cast(self.dtype) if self.dtype.is_temporal() else values).to_list()
        times = sorted(zip(texts, codes.values()), key=lambda pair: (-pair[1], pair[0]))
        return LevelCounts(dict(times), len(times), self.moments.rows - self.moments.known, self.moments.rows)


def describe(column: Column, reading: Reading | None) -> Numeric | Vector | Categorical | str:
    """Describe a column, as read, by what training saw in it, or say why it is of no use."""
    learner = Learner(column, reading)
    learner.add(column)
    found = learner.found()
    return f"{found}, and {odd}" if found == _AS_NAMES and (odd := odd_numbers_note(column)) else found


def _numeric(name: str, seen: Moments) -> Numeric | str:
    if seen.known == 0:
        return "every value is missing"
    if seen.low == seen.high or seen.deviation == 0:
        return "it is constant"
    return Numeric(name, seen.mean, seen.deviation, seen.low, seen.high, seen.known < seen.rows)


def _vector(name: str, seen: Sequence[Moments]) -> Vector | str:
    found = [_numeric(f"{name}[{place}]", moments) for place, moments in enumerate(seen)]
    used = {place: amount for place, amount in enumerate(found) if isinstance(amount, Numeric)}
    if not used:
        return "its lists are constant" if any(moments.known for moments in seen) else _UNEVEN
    return Vector(name, len(seen), tuple(used), tuple(used.values()))


def _categorical(name: str, counts: LevelCounts) -> Categorical | str:
    if counts.different == 0:
        return "every value is missing"
    if counts.different == 1 and not counts.missing:
        return "it is constant"
    if counts.different > 2 and max(counts.times.values()) == 1:
        return _AS_NAMES
    rest = counts.rows - counts.missing - sum(counts.times.values())
    other = max(rest, 1) / counts.rows if counts.different > MOST_LEVELS else 0.0
    return Categorical(name, tuple(counts.times), counts.missing > 0, other)


def _refusal(column: Column, length: int) -> str | None:
    """The reason why a column is of no use whatever its values are, if there is one."""
    if not column.name:
        return "it has no name, as the row numbers that some programs write"
    if isinstance(column.dtype, pl.List) and column.dtype.inner.is_numeric():
        return None if length else _UNEVEN
    usable = holds_numbers(column) or holds_levels(column)
    return None if usable else f"its values are of type {column.dtype}"


def odd_numbers_note(column: Column) -> str:
    """A sentence on the values that keep a column from being read as numbers, or an empty text."""
    found = odd_numbers(column, MOST_CODES)
    if found is None:
        return ""
    where = f"{found[0]} of {len(column)} values {'is no number' if found[0] == 1 else 'are no numbers'}"
    return f"{where}, such as {found[1]!r}; write numbers as 1234.5 and leave missing ones empty"


def few_values(values: NDArray[np.float64]) -> dict[float, int] | None:
    """Each known value and how often it occurs, if there are at most `MOST_CODES` different ones."""
    known = values[np.isfinite(values)]
    # Most columns hold more among the first few, and need not be sorted.
    if len(np.unique(known[:FIRST])) > MOST_CODES:
        return None
    different, times = np.unique(known, return_counts=True)
    return dict(zip(different.tolist(), times.tolist())) if len(different) <= MOST_CODES else None


def are_codes(values: dict[float, int], seen: Moments, *, numeric: bool) -> bool:
    """Whole numbers of few different values, each of them often; or one value that is there or not."""
    different = len(values)
    if not numeric or different == 1:
        return different == 1 and seen.known < seen.rows
    return 3 <= different <= seen.known / 10 and all(value == round(value) for value in values)
