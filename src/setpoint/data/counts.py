"""Sums over the rows of a column that chunks add up: moments of numbers, counts of levels, different whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.frame import Column, count_levels

#: Levels of one column that are counted at a time.
MOST_KEPT = 100_000


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
    """The counts of the most frequent levels, in that order; the number of levels, missing values and rows.

    `once` is the number of values that occur once; if levels were let go of, those are among them.
    """

    times: dict[str, int]
    different: int
    missing: int
    rows: int
    once: int


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
        return self._join(here, 0)

    def merge(self, other: Levels) -> Levels:
        """Add the counts of some rows more."""
        self.rows += other.rows
        self.missing += other.missing
        return self._join(other.counts, other.different)

    def _join(self, here: pl.DataFrame, different: int) -> Levels:
        self.counts = pl.concat([self.counts, here]).group_by("level").agg(pl.col("times").sum())
        # Once levels have been let go of, those that come back count as new ones.
        self.different = max(self.different, different, self.counts.height)
        if self.counts.height > MOST_KEPT:
            self.counts = self.counts.top_k(MOST_KEPT, by=["times", "level"], reverse=[False, True])
        return self

    def found(self, most: int) -> LevelCounts:
        """The counts of the `most` most frequent levels."""
        top = self.counts.top_k(most, by=["times", "level"], reverse=[False, True])
        top = top.sort(["times", "level"], descending=[True, False])
        often = int(self.counts.filter(pl.col("times") > 1)["times"].sum())
        once = self.rows - self.missing - often
        return LevelCounts(dict(top.iter_rows()), self.different, self.missing, self.rows, once)


class WholeNumbers:
    """The different values among the first `MOST_KEPT` known values of a column, as long as all are whole numbers."""

    def __init__(self) -> None:
        self.values: NDArray[np.float64] | None = np.empty(0)
        self.known = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Take some rows more into account."""
        if self.values is None or self.known >= MOST_KEPT:
            return
        some = values[: 2 * MOST_KEPT]
        known = some[np.isfinite(some)][: MOST_KEPT - self.known]
        self.known += len(known)
        self.values = None if (known != np.floor(known)).any() else np.union1d(self.values, known)

    def merge(self, other: WholeNumbers) -> None:
        """Take some rows more into account, unless there were `MOST_KEPT` before."""
        if self.values is None or self.known >= MOST_KEPT:
            return
        self.known += other.known
        self.values = None if other.values is None else np.union1d(self.values, other.values)

    def all_differ(self, share: float = 1.0) -> bool:
        """Whether at least this share of the values are different whole numbers."""
        return self.values is not None and self.known > 0 and len(self.values) >= share * self.known

    def expected_pairs(self) -> float:
        """The pairs of equal values to expect, at the least, if values were drawn at random from their range.

        The range counts in the largest step that all values are multiples of.
        """
        if self.values is None or len(self.values) < 2 or np.abs(self.values).max() >= 2.0**53:
            return 0.0
        away = (self.values - self.values[0]).astype(np.int64)
        return self.known * (self.known - 1) / 2 / (int(away[-1]) // int(np.gcd.reduce(away)) + 1)
