"""What training saw in each column of a table that is larger than memory: learned chunk by chunk.

The same as from the whole table, but for two things. A column of more than `MOST_KEPT` levels keeps the most frequent
ones of every moment, so that the counts of rare levels may fall short; and numbers that were taken as words are not
remarked on.
"""

from __future__ import annotations

import polars as pl

from setpoint.data.column import (
    MOST_CODES,
    MOST_LEVELS,
    Categorical,
    Moments,
    Numeric,
    Vector,
    are_codes,
    few_values,
    refusal,
)
from setpoint.data.frame import Column, LevelCounts, holds_numbers, levels, matrix, numbers
from setpoint.data.reading import Reading

#: Levels of one column that are counted at a time.
MOST_KEPT = 100_000


class Levels:
    """How often each level of a column occurs."""

    def __init__(self) -> None:
        self.counts = pl.DataFrame(schema={"level": pl.String, "times": pl.Int64})
        self.missing = self.rows = 0
        self.different = 0

    def add(self, column: Column) -> None:
        text = levels(column)
        self.rows += len(text)
        self.missing += text.null_count()
        here = text.drop_nulls().alias("level").value_counts(name="times").cast({"times": pl.Int64})
        self.counts = pl.concat([self.counts, here]).group_by("level").agg(pl.col("times").sum())
        # Once levels have been let go of, those that come back count as new ones.
        self.different = max(self.different, self.counts.height)
        if self.counts.height > MOST_KEPT:
            self.counts = self.counts.top_k(MOST_KEPT, by=["times", "level"], reverse=[False, True])

    def found(self, most: int) -> LevelCounts:
        """The `most` most frequent ones."""
        top = self.counts.sort(["times", "level"], descending=[True, False]).head(most)
        return LevelCounts(dict(top.iter_rows()), self.different, self.missing, self.rows)


class Learner:
    """A column as training sees it, a chunk at a time; every chunk is read in the same way."""

    def __init__(self, first: Column, reading: Reading | None) -> None:
        self.name, self.length = first.name, reading.length if reading else 0
        self.why = None if self.length else refusal(first)
        self.places = [Moments()] * self.length
        self.holds_numbers, self.is_numeric = holds_numbers(first), first.dtype.is_numeric()
        self.moments, self.levels = Moments(), Levels()
        self.codes: dict[float, int] | None = {}

    def add(self, column: Column) -> None:
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
        if self.codes is not None:
            here = few_values(values)
            self.codes = None if here is None else {
                value: self.codes.get(value, 0) + here.get(value, 0) for value in {**self.codes, **here}
            }  # fmt: skip
            if self.codes is not None and len(self.codes) > MOST_CODES:
                self.codes = None

    def found(self) -> Numeric | Vector | Categorical | str:
        """What training saw, or why the column is of no use."""
        if self.why is not None:
            return self.why
        if self.length:
            return Vector.with_moments(self.name, self.places)
        if not self.holds_numbers:
            return Categorical.with_levels(self.name, self.levels.found(MOST_LEVELS))
        if self.codes is not None and are_codes(self.codes, self.moments, numeric=self.is_numeric):
            return Categorical.with_levels(self.name, self._codes(self.codes))
        return Numeric.with_moments(self.name, self.moments)

    def _codes(self, codes: dict[float, int]) -> LevelCounts:
        texts = levels(pl.Series(list(codes), dtype=pl.Float64)).to_list()
        times = sorted(zip(texts, codes.values()), key=lambda pair: (-pair[1], pair[0]))
        return LevelCounts(dict(times), len(times), self.moments.rows - self.moments.known, self.moments.rows)
