"""Columns: what training saw in each of them, and how its values become features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setpoint.table.frame import (
    Column,
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
Value = TypeVar("Value")


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
        values = numbers(column)
        known = values[np.isfinite(values)]
        if len(known) == 0:
            return "every value is missing"
        low, high = float(known.min()), float(known.max())
        # Scaled first: the squares of huge numbers overflow.
        size = max(abs(low), abs(high)) or 1.0
        mean, deviation = float((known / size).mean()) * size, float((known / size).std()) * size
        if low == high or deviation == 0:
            return "it is constant"
        return cls(column.name, mean, deviation, low, high, len(known) < len(values))

    @property
    def features(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.missing else [self.name]

    def encode(self, column: Column) -> NDArray[np.float32]:
        values = numbers(column)
        unknown = ~np.isfinite(values)
        values[unknown] = self.mean
        standard = np.clip(values / self.deviation - self.mean / self.deviation, -CLIP, CLIP)
        return np.stack([standard, unknown] if self.missing else [standard], axis=1).astype(np.float32)

    def notes(self, column: Column) -> list[str]:
        values = numbers(column)
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
        counts = level_counts(column, MOST_LEVELS)
        if counts.different == 0:
            return "every value is missing"
        if counts.different == 1 and not counts.missing:
            return "it is constant"
        if counts.different > 2 and max(counts.times.values()) == 1:
            odd = _odd(column)
            return f"no value occurs twice, as in a name or an identifier{odd and f', and {odd}'}"
        return cls(column.name, tuple(counts.times), counts.missing > 0, counts.different > MOST_LEVELS)

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
    if not column.name:
        return "it has no name, as the row numbers that some programs write"
    if holds_numbers(column):
        return Categorical.of(column) if _holds_codes(column) else Numeric.of(column)
    return Categorical.of(column) if holds_levels(column) else f"its values are of type {column.dtype}"


def _holds_codes(column: Column) -> bool:
    """Whole numbers of few different values, each of them often; or one value that is there or not."""
    values = numbers(column)
    known = values[np.isfinite(values)]
    different = len(np.unique(known))
    if not column.dtype.is_numeric() or different == 1:
        return different == 1 and len(known) < len(values)
    return 3 <= different <= min(MOST_CODES, len(known) / 10) and bool((known == np.round(known)).all())


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
    flags = {key: typed(bool, value) for key, value in rest.items()}
    return Categorical(name=typed(str, name), levels=known, **flags)


def typed(kind: type[Value], value: Any) -> Value:
    """The value, if it is of this kind."""
    if not isinstance(value, kind) or (isinstance(value, float) and not np.isfinite(value)):
        raise TypeError(f"expected a {kind.__name__}, found {value!r}")
    return value
