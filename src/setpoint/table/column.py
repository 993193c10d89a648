"""Columns: what training saw in each of them, and how its values become features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setpoint.table.frame import (
    Column,
    LevelCounts,
    holds_levels,
    holds_numbers,
    level_codes,
    level_counts,
    levels,
    numbers,
    odd_numbers,
)

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
    def of(cls, column: Column) -> Numeric | str:
        """The column as training saw it, or why it is of no use."""
        return cls.with_moments(column.name, Moments.of(numbers(column)))

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
        values = numbers(column)
        unknown = ~np.isfinite(values)
        if unknown.any():
            values[unknown] = self.mean
        np.divide(values, self.deviation, out=values)
        np.subtract(values, self.mean / self.deviation, out=values)
        np.clip(values, -CLIP, CLIP, out=values)
        return np.stack([values, unknown] if self.missing else [values], axis=1, dtype=np.float32, casting="same_kind")

    def notes(self, column: Column) -> list[str]:
        values = numbers(column)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                # A sum that is finite has no other terms.
                return []
        infinite, missing = int(np.isinf(values).sum()), int((~np.isfinite(values)).sum())
        notes = [f"column {self.name!r}: {infinite} infinite values are taken as missing"] if infinite else []
        if missing and not self.missing:
            where = f"{missing} of {len(column)} rows"
            notes.append(f"column {self.name!r}: missing in {where} but never in training; the mean stands in for it")
        return notes

    def beyond(self, column: Column) -> str | None:
        """How many rows lie outside the range that training saw, if any."""
        values = numbers(column)
        outside = int(((np.isfinite(values)) & ((values < self.low) | (values > self.high))).sum())
        where = f"{outside} of {len(values)} rows"
        seen = f"the range that training saw, {self.low:g} to {self.high:g}"
        return f"column {self.name!r}: {where} outside {seen}" if outside else None


@dataclass(frozen=True)
class Categorical:
    """Levels, a 0/1 feature each; also missing, and the levels beyond the most frequent, if training held any.

    A level never seen in training counts among those others, and is all zeros if there were none: a feature
    that was always 0 has a weight that nothing was learned for.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool
    other: bool

    @classmethod
    def of(cls, column: Column) -> Categorical | str:
        """The column as training saw it, or why it is of no use."""
        found = cls.with_levels(column.name, level_counts(column, MOST_LEVELS))
        return f"{found}, and {odd}" if found == _AS_NAMES and (odd := _odd(column)) else found

    @classmethod
    def with_levels(cls, name: str, counts: LevelCounts) -> Categorical | str:
        """The column of these levels, or why it is of no use."""
        if counts.different == 0:
            return "every value is missing"
        if counts.different == 1 and not counts.missing:
            return "it is constant"
        if counts.different > 2 and max(counts.times.values()) == 1:
            return _AS_NAMES
        return cls(name, tuple(counts.times), counts.missing > 0, counts.different > MOST_LEVELS)

    @property
    def features(self) -> list[str]:
        rest = [word for word, present in (("missing", self.missing), ("other", self.other)) if present]
        return [f"{self.name}={level}" for level in self.levels] + [f"{self.name} is {word}" for word in rest]

    def encode(self, column: Column) -> NDArray[np.float32]:
        codes = level_codes(column, self.levels)
        width = len(self.features)
        elsewhere = width - 1 if self.other else width
        codes[(codes < 0) | ((codes == len(self.levels)) & (not self.missing))] = elsewhere
        # A row of the identity for each feature, and one of zeros for what has none.
        return np.eye(width + 1, width, dtype=np.float32)[codes]

    def notes(self, column: Column) -> list[str]:
        codes, rows = level_codes(column, self.levels), len(column)
        unseen, missing = codes < 0, int((codes == len(self.levels)).sum())
        notes = []
        if odd := _odd(column):
            notes.append(f"column {self.name!r} is taken as words: {odd}")
        if self.other and unseen.any():
            most = f"the {len(self.levels)} most frequent levels"
            notes.append(
                f"column {self.name!r}: {int(unseen.sum())} of {rows} rows hold none of {most}: all one, 'other'"
            )
        elif unseen.any():
            where, example = f"{int(unseen.sum())} of {rows} rows", levels(column)[int(unseen.argmax())]
            notes.append(f"column {self.name!r}: levels that training never saw in {where}, such as {example!r}")
        if missing and not self.missing:
            notes.append(f"column {self.name!r}: missing in {missing} of {rows} rows but never in training")
        return notes


def _odd(column: Column) -> str:
    """What keeps a column of numbers from being read as such, or nothing."""
    found = odd_numbers(column, MOST_CODES)
    if found is None:
        return ""
    where = f"{found[0]} of {len(column)} values {'is no number' if found[0] == 1 else 'are no numbers'}"
    return f"{where}, such as {found[1]!r}; write numbers as 1234.5 and leave missing ones empty"


def describe(column: Column) -> Numeric | Categorical | str:
    """What training saw in a column, or why it is of no use."""
    if why := refusal(column):
        return why
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


def read_column(kind: str, name: str, **rest: Any) -> Numeric | Categorical:
    """The column that a saved schema describes; anything odd in it is a TypeError."""
    if kind == "numeric":
        missing = typed(bool, rest.pop("missing"))
        amounts = {key: typed(float, value) for key, value in rest.items()}
        if not amounts["deviation"] > 0:
            raise TypeError(f"column {name!r} has a deviation of {amounts['deviation']!r}")
        return Numeric(name=typed(str, name), missing=missing, **amounts)
    if kind != "categorical":
        raise TypeError(f"a column of kind {kind!r}")
    known = tuple(typed(str, level) for level in rest.pop("levels"))
    if len(set(known)) < len(known):
        raise TypeError(f"column {name!r} names a level twice")
    flags = {key: typed(bool, value) for key, value in rest.items()}
    return Categorical(name=typed(str, name), levels=known, **flags)


def typed(kind: type[Value], value: Any) -> Value:
    """The value, if it is of this kind."""
    if not isinstance(value, kind) or (isinstance(value, float) and not np.isfinite(value)):
        raise TypeError(f"expected a {kind.__name__}, found {value!r}")
    return value
