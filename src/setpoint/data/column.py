"""Columns: how their values become features, and how new rows differ from those of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.frame import Column, level_codes, levels, numbers
from setpoint.data.layout import Block
from setpoint.data.seen import Seen
from setpoint.data.standardise import TAIL, soften

Value = TypeVar("Value")


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, times of day or durations: standardised, with short tails beyond five deviations.

    A missing value becomes the mean, with a 0/1 feature beside it if training had missing values.

    Attributes:
        name: The name of the column.
        mean: The mean of the training rows.
        deviation: Their standard deviation.
        low: Their smallest value.
        high: Their largest value.
        missing: Whether any of them was missing.
        levels: Values that have a 0/1 feature of their own beside the amount, for linear models and networks; trees
            read the amount alone.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.column import Numeric
        >>> age = Numeric("age", mean=40.0, deviation=10.0, low=18.0, high=90.0, missing=True)
        >>> age.encode(pl.Series("age", [50.0, None])).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    name: str
    mean: float
    deviation: float
    low: float
    high: float
    missing: bool
    levels: tuple[float, ...] = ()

    @property
    def features(self) -> list[str]:
        rest = [f"{self.name} is missing"] if self.missing else []
        return [self.name, *rest, *(f"{self.name}={level:g}" for level in self.levels)]

    @property
    def blocks(self) -> list[Block]:
        return [Block(self.name, "missable" if self.missing else "amount", len(self.features))]

    def encode(self, column: Column) -> NDArray[np.float32]:
        return self.encode_values(numbers(column))

    def encode_values(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """The features of numbers, which are overwritten."""
        unknown = ~np.isfinite(values)
        own = [values == level for level in self.levels]
        if unknown.any():
            values[unknown] = self.mean
        with np.errstate(over="ignore"):  # Infinities become finite in `soften`.
            np.divide(values, self.deviation, out=values)
        np.subtract(values, self.mean / self.deviation, out=values)
        if np.abs(values).max(initial=0.0) > TAIL:
            values = soften(values)
        rest = [unknown, *own] if self.missing else own
        return np.stack([values, *rest], axis=1, dtype=np.float32, casting="same_kind")

    def look(self, column: Column) -> Seen:
        example = ""
        if column.dtype.is_temporal():
            example = " to ".join(str(pl.Series([int(v)]).cast(column.dtype)[0]) for v in (self.low, self.high))
        return self.look_at_values(numbers(column), example)

    def look_at_values(self, values: NDArray[np.float64], example: str) -> Seen:
        """Count what training never saw among numbers of a column."""
        infinite, missing = np.isinf(values), ~np.isfinite(values)
        outside = ~missing & ((values < self.low) | (values > self.high))
        return Seen(len(values), int(infinite.sum()), int(missing.sum()), 0, int(outside.sum()), example)

    def notes(self, seen: Seen) -> list[str]:
        values = "value is" if seen.infinite == 1 else "values are"
        notes = [f"column {self.name!r}: {seen.infinite} infinite {values} taken as missing"] if seen.infinite else []
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
class Categorical:
    """A column of words, booleans or categories: one 0/1 feature per level.

    "Missing" and "other" have a feature of their own if training had such rows. A level that training never saw is
    "other"; if there is no such feature, all features are 0, since a weight for it was never learned.

    Attributes:
        name: The name of the column.
        levels: The most frequent levels of the training rows, at most 100.
        missing: Whether any training row had no value.
        other: The share of training rows that had none of the levels.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.column import Categorical
        >>> region = Categorical("region", levels=("north", "south"), missing=True, other=0.0)
        >>> region.encode(pl.Series("region", ["south", None, "west"])).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """

    name: str
    levels: tuple[str, ...]
    missing: bool
    other: float

    @property
    def features(self) -> list[str]:
        rest = [word for word, present in (("missing", self.missing), ("other", self.other > 0)) if present]
        return [f"{self.name}={level}" for level in self.levels] + [f"{self.name} is {word}" for word in rest]

    @property
    def blocks(self) -> list[Block]:
        return [Block(self.name, "levels", len(self.features))]

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


def read_numeric(name: str, *, missing: Any, levels: Any = (), **rest: Any) -> Numeric:
    """The column that a saved schema describes."""
    own = tuple(typed(float, level) for level in levels)
    if len(set(own)) < len(own):
        raise TypeError(f"column {name!r} names a level twice")
    amounts = {key: typed(float, value) for key, value in rest.items()}
    if not amounts["deviation"] > 0:
        raise TypeError(f"column {name!r} has a deviation of {amounts['deviation']!r}")
    return Numeric(name=name, missing=typed(bool, missing), levels=own, **amounts)


def read_categorical(name: str, *, levels: Any, missing: Any, other: Any) -> Categorical:
    """The column that a saved schema describes."""
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
