"""Columns: what training saw in each of them, and how its values become features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.frame import (
    Column,
    LevelCounts,
    holds_levels,
    holds_numbers,
    level_codes,
    level_counts,
    levels,
    list_length,
    matrix,
    numbers,
    odd_numbers,
)
from setpoint.data.seen import Seen

#: Standardised values beyond this many deviations are pulled back to it.
CLIP = 5.0
#: The most levels of one column that get a feature of their own.
MOST_LEVELS = 100
#: Whole numbers with 3 to this many different values are codes (a region, a month), not amounts.
MOST_CODES = 12
#: As many values as these tell most columns of amounts from columns of codes.
FIRST = 1000
Value = TypeVar("Value")
_AS_NAMES = "no value occurs twice, as in a name or an identifier"


@dataclass(frozen=True)
class Moments:
    """How many values there are and are known, their mean, deviation and range; of two sets, those of both together."""

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
        if known == 0:
            return Moments(self.rows + other.rows)
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
class Numeric:
    """An amount: standardised and clipped. Missing is the mean, with a 0/1 feature if training missed any."""

    name: str
    mean: float
    deviation: float
    low: float
    high: float
    missing: bool

    @classmethod
    def with_moments(cls, name: str, seen: Moments) -> Numeric | str:
        """The column of these values, or why it is of no use."""
        if seen.known == 0:
            return "every value is missing"
        if seen.low == seen.high or seen.deviation == 0:
            return "it is constant"
        return cls(name, seen.mean, seen.deviation, seen.low, seen.high, seen.known < seen.rows)

    @property
    def features(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.missing else [self.name]

    def encode(self, column: Column) -> NDArray[np.float32]:
        return self.encode_values(numbers(column))

    def encode_values(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """The features `(n, 1 or 2)` of numbers, which are overwritten."""
        unknown = ~np.isfinite(values)
        if unknown.any():
            values[unknown] = self.mean
        np.divide(values, self.deviation, out=values)
        np.subtract(values, self.mean / self.deviation, out=values)
        np.clip(values, -CLIP, CLIP, out=values)
        return np.stack([values, unknown] if self.missing else [values], axis=1, dtype=np.float32, casting="same_kind")

    def look(self, column: Column) -> Seen:
        return self.look_at_values(numbers(column), column)

    def look_at_values(self, values: NDArray[np.float64], column: Column) -> Seen:
        """Count what training never saw among numbers of a column."""
        infinite, missing = np.isinf(values), ~np.isfinite(values)
        outside = ~missing & ((values < self.low) | (values > self.high))
        example = ""
        if column.dtype.is_temporal():
            example = " to ".join(str(pl.Series([int(v)]).cast(column.dtype)[0]) for v in (self.low, self.high))
        return Seen(len(values), int(infinite.sum()), int(missing.sum()), 0, int(outside.sum()), example)

    def notes(self, seen: Seen) -> list[str]:
        notes = [f"column {self.name!r}: {seen.infinite} infinite values are taken as missing"] if seen.infinite else []
        if seen.missing and not self.missing:
            where = seen.share(seen.missing)
            notes.append(f"column {self.name!r}: missing in {where} but never in training; the mean stands in for it")
        return notes

    def beyond(self, seen: Seen) -> str | None:
        limits = seen.example or f"{self.low:g} to {self.high:g}"
        where = f"{seen.share(seen.outside)} outside the range that training saw, {limits}"
        return f"column {self.name!r}: {where}" if seen.outside else None

    def mostly(self, seen: Seen) -> str | None:
        if 2 * seen.outside > seen.rows:
            return self.beyond(seen)
        return self.notes(seen)[-1] if 2 * seen.missing > seen.rows and not self.missing else None


@dataclass(frozen=True)
class Vector:
    """Lists of numbers of one length: an amount for each place of the list that was not constant in training."""

    name: str
    length: int
    places: tuple[int, ...]
    amounts: tuple[Numeric, ...]

    @classmethod
    def with_moments(cls, name: str, seen: Sequence[Moments]) -> Vector | str:
        """The column of lists whose places hold these values, or why it is of no use."""
        found = [Numeric.with_moments(f"{name}[{place}]", moments) for place, moments in enumerate(seen)]
        used = {place: amount for place, amount in enumerate(found) if isinstance(amount, Numeric)}
        if not used:
            return "its lists are constant"
        return cls(name, len(seen), tuple(used), tuple(used.values()))

    @property
    def features(self) -> list[str]:
        return [feature for amount in self.amounts for feature in amount.features]

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
class Categorical:
    """Levels, a 0/1 feature each; also missing, and the levels beyond the most frequent, if training held any.

    A level never seen in training counts among those others, and is all zeros if there were none: a feature
    that was always 0 has a weight that nothing was learned for. `other` is the share of the training rows that held
    none of the levels.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool
    other: float

    @classmethod
    def of(cls, column: Column) -> Categorical | str:
        """The column as training saw it, or why it is of no use."""
        found = cls.with_levels(column.name, level_counts(column, MOST_LEVELS))
        return f"{found}, and {odd}" if found == _AS_NAMES and (odd := odd_numbers_note(column)) else found

    @classmethod
    def with_levels(cls, name: str, counts: LevelCounts) -> Categorical | str:
        """The column of these levels, or why it is of no use."""
        if counts.different == 0:
            return "every value is missing"
        if counts.different == 1 and not counts.missing:
            return "it is constant"
        if counts.different > 2 and max(counts.times.values()) == 1:
            return _AS_NAMES
        rest = counts.rows - counts.missing - sum(counts.times.values())
        other = max(rest, 1) / counts.rows if counts.different > MOST_LEVELS else 0.0
        return cls(name, tuple(counts.times), counts.missing > 0, other)

    @property
    def features(self) -> list[str]:
        rest = [word for word, present in (("missing", self.missing), ("other", self.other > 0)) if present]
        return [f"{self.name}={level}" for level in self.levels] + [f"{self.name} is {word}" for word in rest]

    def encode(self, column: Column) -> NDArray[np.float32]:
        codes = level_codes(column, self.levels)
        width = len(self.features)
        elsewhere = width - 1 if self.other else width
        codes[(codes < 0) | ((codes == len(self.levels)) & (not self.missing))] = elsewhere
        # A row of the identity for each feature, and one of zeros for what has none.
        return np.eye(width + 1, width, dtype=np.float32)[codes]

    def look(self, column: Column) -> Seen:
        codes = level_codes(column, self.levels)
        unseen = codes < 0
        example = str(levels(column.filter(pl.Series(unseen))).min()) if unseen.any() else ""
        return Seen(len(codes), 0, int((codes == len(self.levels)).sum()), int(unseen.sum()), 0, example)

    def notes(self, seen: Seen) -> list[str]:
        notes, where = [], seen.share(seen.unseen)
        if self.other and seen.unseen:
            most = f"the {len(self.levels)} most frequent levels"
            notes.append(f"column {self.name!r}: {where} hold none of {most}: all one, 'other'")
        elif seen.unseen:
            notes.append(f"column {self.name!r}: levels that training never saw in {where}, such as {seen.example!r}")
        if seen.missing and not self.missing:
            notes.append(f"column {self.name!r}: missing in {seen.share(seen.missing)} but never in training")
        return notes

    def beyond(self, seen: Seen) -> str | None:
        return None

    def mostly(self, seen: Seen) -> str | None:
        notes = self.notes(seen)
        # With "other" among the features, more than halfway from the share that training had to all rows.
        if 2 * seen.unseen > seen.rows * (1 + self.other):
            return notes[0]
        return notes[-1] if 2 * seen.missing > seen.rows and not self.missing else None


def odd_numbers_note(column: Column) -> str:
    """What keeps a column of numbers from being read as such, or nothing."""
    found = odd_numbers(column, MOST_CODES)
    if found is None:
        return ""
    where = f"{found[0]} of {len(column)} values {'is no number' if found[0] == 1 else 'are no numbers'}"
    return f"{where}, such as {found[1]!r}; write numbers as 1234.5 and leave missing ones empty"


def describe(column: Column) -> Numeric | Vector | Categorical | str:
    """Describe a column, as read, by what training saw in it, or say why it is of no use."""
    if why := refusal(column):
        return why
    if column.dtype == pl.List:
        return Vector.with_moments(
            column.name, [Moments.of(values) for values in matrix(column, list_length(column)).T]
        )
    if holds_numbers(column):
        values = numbers(column)
        codes, seen = few_values(values), Moments.of(values)
        if codes is not None and are_codes(codes, seen, numeric=column.dtype.is_numeric()):
            return Categorical.of(column)
        return Numeric.with_moments(column.name, seen)
    return Categorical.of(column)


def refusal(column: Column) -> str | None:
    """Why a column is of no use whatever its values are, if so."""
    if not column.name:
        return "it has no name, as the row numbers that some programs write"
    if isinstance(column.dtype, pl.List) and column.dtype.inner.is_numeric():
        return None if list_length(column) else "its lists are empty, missing or differ in length"
    usable = holds_numbers(column) or holds_levels(column)
    return None if usable else f"its values are of type {column.dtype}"


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


def read_column(kind: str, name: str, **rest: Any) -> Numeric | Vector | Categorical:
    """The column that a saved schema describes; anything odd in it is a TypeError."""
    kinds: dict[str, Callable[..., Numeric | Vector | Categorical]] = {
        "numeric": _read_numeric, "vector": _read_vector, "categorical": _read_categorical,
    }  # fmt: skip
    if kind not in kinds:
        raise TypeError(f"a column of kind {kind!r}")
    return kinds[kind](typed(str, name), **rest)


def _read_numeric(name: str, *, missing: Any, **rest: Any) -> Numeric:
    amounts = {key: typed(float, value) for key, value in rest.items()}
    if not amounts["deviation"] > 0:
        raise TypeError(f"column {name!r} has a deviation of {amounts['deviation']!r}")
    return Numeric(name=name, missing=typed(bool, missing), **amounts)


def _read_vector(name: str, *, length: Any, places: Any, amounts: Any) -> Vector:
    known = tuple(_read_numeric(**amount) for amount in amounts)
    if len(places) != len(known) or len(set(places)) < len(places):
        raise TypeError(f"column {name!r} names odd places of its lists")
    if not all(0 <= typed(int, place) < typed(int, length) for place in places):
        raise TypeError(f"column {name!r} names places beyond its lists")
    return Vector(name, length, tuple(places), known)


def _read_categorical(name: str, *, levels: Any, missing: Any, other: Any) -> Categorical:
    known = tuple(typed(str, level) for level in levels)
    if len(set(known)) < len(known):
        raise TypeError(f"column {name!r} names a level twice")
    if not 0 <= typed(float, other) <= 1:
        raise TypeError(f"column {name!r} has a share of {other!r} for other levels")
    return Categorical(name, known, typed(bool, missing), other)


def typed(kind: type[Value], value: Any) -> Value:
    """The value, if it is of this kind."""
    if not isinstance(value, kind) or (isinstance(value, float) and not np.isfinite(value)):
        raise TypeError(f"expected a {kind.__name__}, found {value!r}")
    return value
