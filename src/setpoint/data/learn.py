"""Learn from the training rows what each column holds, from all rows at once or chunk by chunk.

Chunks give the same as the whole table, but for two things. A column of more than `MOST_KEPT` levels keeps the most
frequent ones of every moment, so that the counts of rare levels may fall short; and numbers that were taken as words
are not remarked on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import polars as pl

from setpoint.data.column import Categorical, Numeric
from setpoint.data.counts import LevelCounts, Levels, Moments, WholeNumbers
from setpoint.data.encoded import Encoded, numbers_of
from setpoint.data.encoders import encoder_named
from setpoint.data.frame import Column, holds_levels, holds_numbers, levels, matrix, numbers
from setpoint.data.hashed import WIDTH, Hashed, Text
from setpoint.data.kinds import AnyColumn
from setpoint.data.reading import Reading, is_text
from setpoint.data.several import PARTS, Times, Vector, time_part
from setpoint.data.spelling import may_be_two_dates, odd_numbers
from setpoint.data.target_mean import TargetMean, Truth, learn_target_mean
from setpoint.errors import BadTable

#: The most levels of one column that get a feature of their own.
MOST_LEVELS = 100
#: Words of up to this many different spellings may look like numbers on purpose.
MOST_CODES = 12
#: Values of so many words or more are text rather than names.
TEXT_WORDS = 4
#: What a user may say that a column is to be taken as, and the sentence about values that it cannot be.
CATEGORICAL, NUMERIC, HASH, TEXT, TARGET = "categorical", "numeric", "hash", "text", "target-encode"
TAKEN_AS = {
    CATEGORICAL: "numbers, words, booleans or dates", NUMERIC: "numbers or dates",
    HASH: "numbers, words, booleans or dates", TEXT: "words", TARGET: "numbers, words, booleans or dates",
}  # fmt: skip
#: The kind of a column that an encoder reads, before the name of the encoder.
ENCODER = "encoder "
#: Different whole numbers of which this many pairs should be equal by chance, and none is, are identifiers.
PAIRS = 40.0
_CONSTANT, _EMPTY = "it is constant", "every value is missing"
_AS_NAMES = "no value occurs twice, as in a name or an identifier"
_AS_TEXT = "no value occurs twice, as in free text; --text learns from its words"
MOSTLY_ONCE = "most of its values occur once, as names and identifiers do; --hash uses it all the same, --text by words"
_UNEVEN = "its lists are empty, missing or differ in length"
_LIKE_AN_ID = re.compile(r"(?:^|[_\W])(?:id|ids|uid|uuid|guid|key|index|idx|rowid|unnamed: 0)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID)$")


class Learner(Protocol):
    """A column as training sees it, a chunk at a time; every chunk is read in the same way."""

    def add(self, column: Column) -> None:
        """Take some rows more into account."""

    def merge(self, other: Any) -> None:
        """Take the rows that another learner of the same column has seen into account."""

    def found(self) -> AnyColumn | str:
        """The column with what training saw in it, or why it is of no use."""


def make_learner(
    first: Column, reading: Reading | None, asked: str | None = None, truth: Truth | None = None
) -> Learner:
    """The learner of a column, from a first chunk of it and from what the user kinds it to be taken as.

    With the `truth` of all rows, the first chunk is the only one.
    """
    name, length = first.name, reading.length if reading else 0
    if asked is not None:
        return _as_asked(first, asked, truth)
    if not name:
        return _Refused("it has no name, as the row numbers that some programs write")
    if isinstance(first.dtype, pl.List) and first.dtype.inner.is_numeric():
        return _Lists(name, length) if length else _Refused(_UNEVEN)
    if holds_levels(first):
        return _Words(name)
    if isinstance(first.dtype, pl.Datetime):
        return _Dates(name)
    return _Amounts(name) if holds_numbers(first) else _Refused(f"its values are of type {first.dtype}")


def _as_asked(first: Column, asked: str, truth: Truth | None) -> Learner:
    name, is_number, is_word = first.name, holds_numbers(first), holds_levels(first)
    if asked.startswith(ENCODER):
        if not is_text(first) and first.dtype != pl.Binary:
            raise BadTable(f"column {name!r} cannot be encoded: it must hold text or bytes, and holds {first.dtype}")
        return _ByEncoder(name, asked.removeprefix(ENCODER))
    if not {NUMERIC: is_number, TEXT: is_word}.get(asked, is_number or is_word):
        raise BadTable(
            f"column {name!r} cannot be taken as {asked}: it must hold {TAKEN_AS[asked]}, and holds values of type "
            f"{first.dtype}"
        )
    if asked == NUMERIC:
        return _Dates(name) if isinstance(first.dtype, pl.Datetime) else _Amounts(name, asked=True)
    if asked == TARGET and truth is None:
        raise BadTable(f"column {name!r} cannot be encoded by the target, which must have two classes; use --hash")
    return _Words(name, asked, truth)


class _Refused:
    def __init__(self, why: str) -> None:
        self.why = why

    def add(self, column: Column) -> None:
        pass

    def merge(self, other: _Refused) -> None:
        pass

    def found(self) -> str:
        return self.why


class _Words:
    """Levels: words, booleans, and whatever the user kinds to be taken as categorical, hashed or as text."""

    def __init__(self, name: str, asked: str | None = None, truth: Truth | None = None) -> None:
        self.name, self.asked, self.levels, self.truth = name, asked, Levels(), truth
        self.by_target: TargetMean | None = None

    def add(self, column: Column) -> None:
        self.levels.add(column)
        if self.asked == TARGET and self.truth is not None:
            self.by_target = learn_target_mean(column, self.truth)

    def merge(self, other: _Words) -> None:
        self.levels.merge(other.levels)

    def found(self) -> AnyColumn | str:
        counts = self.levels.found(MOST_LEVELS)
        if counts.different < 2 and not (counts.different and counts.missing):
            return _CONSTANT if counts.different else _EMPTY
        if self.asked == TEXT:
            return Text(self.name, WIDTH)
        if self.asked == HASH:
            return Hashed(self.name, WIDTH, counts.missing > 0)
        if self.by_target is not None:
            return self.by_target
        if self.asked is None and (why := _like_names(counts)):
            return why
        rest = counts.rows - counts.missing - sum(counts.times.values())
        other = max(rest, 1) / counts.rows if counts.different > MOST_LEVELS else 0.0
        return Categorical(self.name, tuple(counts.times), counts.missing > 0, other)


def _like_names(counts: LevelCounts) -> str:
    """The reason why levels are names or identifiers, if they are."""
    if counts.different > 2 and max(counts.times.values()) == 1:
        several = sum(len(level.split()) >= TEXT_WORDS for level in counts.times)
        return _AS_TEXT if 2 * several > len(counts.times) else _AS_NAMES
    if counts.different > MOST_LEVELS and 2 * counts.once > counts.rows - counts.missing:
        return MOSTLY_ONCE
    return ""


class _Amounts:
    def __init__(self, name: str, *, asked: bool = False) -> None:
        self.name, self.moments, self.whole = name, Moments(), WholeNumbers()
        self.asked = asked
        self.dtype: pl.DataType = pl.Float64()

    def add(self, column: Column) -> None:
        values, self.dtype = numbers(column), column.dtype
        self.moments += Moments.of(values)
        if self.dtype.is_numeric():
            self.whole.add(values)

    def merge(self, other: _Amounts) -> None:
        self.moments, self.dtype = self.moments + other.moments, other.dtype
        self.whole.merge(other.whole)

    def found(self) -> Numeric | Categorical | str:
        seen = self.moments
        if 0 < seen.known < seen.rows and seen.low == seen.high:
            return _one_value(self.name, seen.low, self.dtype)
        if not self.asked and self.whole.all_differ() and self.whole.expected_pairs() > PAIRS:
            return "no whole number occurs twice, as in a row number or an identifier; --numeric uses it all the same"
        if not self.asked and self.whole.all_differ(0.9) and seen.known > 2 and _is_named_like_an_id(self.name):
            return (
                "its whole numbers hardly repeat and its name is that of an identifier; --numeric uses it all the same"
            )
        return _numeric(self.name, seen)


def _is_named_like_an_id(name: str) -> bool:
    return bool(_LIKE_AN_ID.search(name) or _CAMEL_ID.search(name))


def _one_value(name: str, value: float, dtype: pl.DataType) -> Categorical:
    """One value that is there or not."""
    values = pl.Series([value])
    text = levels(values.cast(pl.Int64).cast(dtype) if dtype.is_temporal() else values)
    return Categorical(name, tuple(text), missing=True, other=0.0)


class _Dates:
    def __init__(self, name: str) -> None:
        self.name, self.moments = name, dict.fromkeys(PARTS, Moments())
        self.dtype: pl.DataType = pl.Datetime("us")
        self.first: int | None = None

    def add(self, column: Column) -> None:
        self.dtype = column.dtype
        self.moments = {part: seen + Moments.of(time_part(column, part)) for part, seen in self.moments.items()}
        known = column.drop_nulls()
        if self.first is None and len(known):
            self.first = int(known.to_physical()[0])

    def merge(self, other: _Dates) -> None:
        self.moments = {part: seen + other.moments[part] for part, seen in self.moments.items()}
        self.dtype, self.first = other.dtype, other.first if self.first is None else self.first

    def found(self) -> Times | Categorical | str:
        days = self.moments["days"]
        if self.first is not None and days.known < days.rows and days.low == days.high:
            return _one_value(self.name, self.first, self.dtype)
        amounts = [_numeric(f"{self.name}: {part}", seen) for part, seen in self.moments.items()]
        main = amounts[0]
        if isinstance(main, str):
            return main
        # The days alone say that a value is missing.
        varying = [a for a in amounts[1:] if isinstance(a, Numeric)]
        rest = [Numeric(a.name, a.mean, a.deviation, a.low, a.high, missing=False) for a in varying]
        return Times(self.name, (main, *rest))


class _Lists:
    def __init__(self, name: str, length: int) -> None:
        self.name, self.places = name, [Moments()] * length

    def add(self, column: Column) -> None:
        values = matrix(column, len(self.places)).T
        self.places = [place + Moments.of(own) for place, own in zip(self.places, values)]

    def merge(self, other: _Lists) -> None:
        self.places = [place + own for place, own in zip(self.places, other.places)]

    def found(self) -> Vector | str:
        return _vector(self.name, self.places)


class _ByEncoder:
    """The numbers that an encoder gives for texts or images."""

    def __init__(self, name: str, encoder: str) -> None:
        self.name, self.encoder = name, encoder
        self.lists: _Lists | None = None
        self.missing = 0

    def add(self, column: Column) -> None:
        lists = numbers_of(column, self.encoder)
        known = lists.drop_nulls()
        self.missing += len(lists) - len(known)
        if len(known):
            self.lists = self.lists or _Lists(self.name, len(known[0]))
            self.lists.add(known)

    def merge(self, other: _ByEncoder) -> None:
        self.missing += other.missing
        if self.lists is not None and other.lists is not None:
            self.lists.merge(other.lists)
        self.lists = self.lists or other.lists

    def found(self) -> Encoded | str:
        found = self.lists.found() if self.lists else _EMPTY
        if isinstance(found, str):
            return found
        # The first number alone says that a value is missing.
        first = replace(found.amounts[0], missing=self.missing > 0)
        numbers = replace(found, amounts=(first, *found.amounts[1:]))
        return Encoded(self.name, self.encoder, encoder_named(self.encoder).identity, numbers)


def describe(
    column: Column, reading: Reading | None, asked: str | None = None, truth: Truth | None = None
) -> AnyColumn | str:
    """Describe a column, as read, by what training saw in it, or say why it is of no use."""
    learner = make_learner(column, reading, asked, truth)
    learner.add(column)
    found = learner.found()
    return f"{found}, and {odd}" if isinstance(found, str) and (odd := spelling_note(column)) else found


def _numeric(name: str, seen: Moments) -> Numeric | str:
    if seen.known == 0:
        return _EMPTY
    if seen.low == seen.high or seen.deviation == 0:
        return _CONSTANT
    return Numeric(name, seen.mean, seen.deviation, seen.low, seen.high, seen.known < seen.rows)


def _vector(name: str, seen: Sequence[Moments]) -> Vector | str:
    found = [_numeric(f"{name}[{place}]", moments) for place, moments in enumerate(seen)]
    used = {place: amount for place, amount in enumerate(found) if isinstance(amount, Numeric)}
    if not used:
        return "its lists are constant" if any(moments.known for moments in seen) else _UNEVEN
    return Vector(name, len(seen), tuple(used), tuple(used.values()))


def spelling_note(column: Column) -> str:
    """A sentence on the values that keep a column of words from being read as numbers or dates, or an empty text."""
    if may_be_two_dates(column):
        return f"{column.drop_nulls()[0]!r} may name the day or the month first; write dates as 2024-12-31"
    found = odd_numbers(column, MOST_CODES)
    if found is None:
        return ""
    where = f"{found[0]} of {len(column)} values {'is no number' if found[0] == 1 else 'are no numbers'}"
    return f"{where}, such as {found[1]!r}; write numbers as 1234.5 and leave missing ones empty"
