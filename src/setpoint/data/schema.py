"""The schema: what training saw in each column, and how a frame becomes features and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.data.column import typed
from setpoint.data.columns import Columns, refuse_odd_kinds
from setpoint.data.counts import LevelCounts, Levels
from setpoint.data.frame import Frame, holds_levels, holds_numbers, level_codes, levels, nearest
from setpoint.data.kinds import AnyColumn, fits, read_column
from setpoint.data.learn import describe
from setpoint.data.reading import Reading, Readings, apply_readings, learn_readings
from setpoint.data.target_mean import Truth
from setpoint.errors import BadFile, BadTable
from setpoint.measure.values import stack_values

#: The most classes of a target, when one of them is to be told from the rest.
MOST_CLASSES = 100
#: The most groups that can be compared: with more, most of them hold too few rows to have a rate.
MOST_GROUPS = 20
_YES = ("1", "true", "t", "yes", "y", "positive", "pos")


@dataclass(frozen=True)
class Target:
    """The column to predict and its two classes: one class against another, or against the rest; or all its classes.

    Attributes:
        name: The name of the column.
        negative: The negative class, as text; the most frequent one if there are several.
        positive: The positive class, as text.
        why: How the positive class was chosen, in words.
        reading: How the column is read.
        rest: The other negative classes.
        classes: All classes by name, in the order of their numbers, where the ask is about classes. Then there is no
            positive and no negative class.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.schema import Target
        >>> target = Target.of(pl.DataFrame({"repaid": ["yes", "no", "yes"]}), "repaid")
        >>> target.positive, target.why
        ('yes', 'the one that says yes')
    """

    name: str
    negative: str
    positive: str
    why: str
    reading: Reading
    rest: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @classmethod
    def of_classes(cls, frame: Frame, name: str) -> Target:
        """The target of a column with all its classes, numbers in their order and words in that of the alphabet.

        Args:
            frame: The table.
            name: The name of the column.

        Raises:
            BadTable: If there is no such column, it holds no class in some row, a single class or too many.
        """
        refuse_odd_target(frame, name)
        readings, read = learn_readings(frame.select(name))
        found, reading = Levels().add(read[name]).found(MOST_CLASSES), readings[name]
        if found.missing:
            raise missing_labels(name, found.missing, frame.height)
        if not 2 <= found.different <= MOST_CLASSES:
            few = found.different < 2
            remedy = (
                "add rows of another class" if few else f"join the rare ones; at most {MOST_CLASSES} are told apart"
            )
            raise BadTable(f"target {name!r} holds {found.different} classes; {remedy}")
        classes = sorted(found.times, key=float) if reading.kind == "number" else sorted(found.times)
        return cls(name, "", "", "all classes", reading, classes=tuple(classes))

    @classmethod
    def of(cls, frame: Frame, name: str, positive: str | None = None) -> Target:
        """Find the two classes of a column.

        Args:
            frame: The table.
            name: The name of the column.
            positive: The positive class; all other classes are negative. If None, there must be two classes, and the
                larger number, the word for yes, or else the rarer class is positive.

        Raises:
            BadTable: If there is no such column, or it does not hold a class in every row.
        """
        refuse_odd_target(frame, name)
        readings, read = learn_readings(frame.select(name))
        found = Levels().add(read[name]).found(MOST_CLASSES)
        if found.missing:
            raise missing_labels(name, found.missing, frame.height)
        return cls.with_classes(name, found, readings[name], positive)

    @classmethod
    def with_classes(cls, name: str, found: LevelCounts, reading: Reading, positive: str | None = None) -> Target:
        """The same for a column whose classes have been counted."""
        counts = found.times
        one_of_many = positive is not None and 2 < found.different <= MOST_CLASSES
        if found.different != 2 and not one_of_many:
            listed = ", ".join(map(repr, list(counts)[:4])) + (", ..." if found.different > 4 else "")
            remedy = "keep two of them, or find one among the rest with --positive"
            remedy = "keep two of them" if found.different > MOST_CLASSES else remedy
            remedy = "add rows of the other" if found.different < 2 else remedy
            raise BadTable(f"target {name!r} must hold two classes, but holds {found.different}: {listed}; {remedy}")
        says_yes = [level for level in counts if level.lower() in _YES]
        if positive is not None:
            exact = [level for level in counts if level == positive]
            same = exact or [level for level in counts if level.lower() == positive.strip().lower()]
            if len(same) != 1:
                held = (" and " if len(counts) == 2 else ", ").join(map(repr, list(counts)[:20]))
                held += ", ..." if len(counts) > 20 else ""
                raise BadTable(f"no class {positive!r} in target {name!r}, which holds {held}")
            chosen, why = same[0], "as asked"
        elif reading.kind == "number":
            chosen, why = max(counts, key=float), "the larger number"
        elif len(says_yes) == 1:
            chosen, why = says_yes[0], "the one that says yes"
        else:
            chosen, why = list(counts)[-1], "the rarer class"
        negative, *rest = (level for level in counts if level != chosen)
        return cls(name, negative, chosen, why, reading, tuple(rest))

    @property
    def negatives(self) -> str:
        """The negative classes, in words."""
        return ", ".join(map(repr, (self.negative, *self.rest)))

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32; or the number of the class, int64."""
        refuse_odd_target(frame, self.name)
        read = self.reading.read(frame[self.name])
        known = self.classes or (self.negative, self.positive, *self.rest)
        codes = level_codes(read, known)
        if missing := int((codes == len(known)).sum()):
            raise missing_labels(self.name, missing, frame.height)
        if (codes < 0).any():
            unknown = levels(read)[int((codes < 0).argmax())]
            held = ", ".join(map(repr, self.classes)) or f"{self.negatives} and {self.positive!r}"
            raise BadTable(f"target {self.name!r} holds {unknown!r}; known are {held}")
        if self.classes:
            return torch.from_numpy(codes.astype(np.int64))
        return torch.from_numpy((codes == 1).astype(np.float32))


def missing_labels(name: str, missing: int, rows: int) -> BadTable:
    """The error for a target that is missing in some rows."""
    return BadTable(f"target {name!r} is missing in {missing} of {rows} rows; fill it in, or use --drop-missing-target")


def refuse_odd_target(frame: Frame, name: str) -> None:
    """Refuse a table without the column, or with one that cannot hold classes."""
    if name not in frame.columns:
        raise BadTable(f"no column {name!r} to predict; {nearest(name, frame.columns)}")
    column = frame[name]
    if not (holds_numbers(column) or holds_levels(column)):
        raise BadTable(f"target {name!r} holds values of type {column.dtype}; it must hold numbers, words or booleans")


def group_names(frame: Frame, column: str) -> NDArray[np.str_]:
    """The group of every row, as text; rows in which the column is missing are a group of their own."""
    if column not in frame.columns:
        raise BadTable(f"no column {column!r} to compare groups of; {nearest(column, frame.columns)}")
    names = levels(frame[column]).fill_null("(missing)").to_numpy().astype(str)
    different = len(np.unique(names))
    if different > MOST_GROUPS:
        raise BadTable(
            f"column {column!r} holds {different} different values; at most {MOST_GROUPS} groups can be compared: "
            "join the small ones, or cut numbers into ranges"
        )
    return names


def column_values(frame: Frame, columns: Sequence[str]) -> Tensor | None:
    """The values of the columns that an ask names, `(n, C)` in float64; None if it names none."""
    for name in columns:
        if name not in frame.columns:
            raise BadTable(f"no column {name!r} to count the values of; {nearest(name, frame.columns)}")
        column = frame[name]
        if not column.dtype.is_numeric():
            raise BadTable(f"column {name!r} holds {column.dtype}, but its values are counted; give numbers from 0 up")
        odd = int((column.is_null() | (column < 0).fill_null(False) | column.is_nan().fill_null(False)).sum())
        if odd:
            raise BadTable(
                f"column {name!r} is missing or below 0 in {odd} of {len(column)} rows, but its values are counted; "
                "leave those rows out, or write 0"
            )
    return stack_values({name: frame[name].to_numpy() for name in columns}) if columns else None


@dataclass(frozen=True)
class Schema(Columns):
    """The columns of the training rows and the target, and how a table becomes features and labels.

    Attributes:
        columns: The columns that training used, in order.
        dropped: The name of each column that is not used, and why.
        readings: How each column is read, by name.
        target: The column to predict.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.schema import Schema, Target
        >>> frame = pl.DataFrame({"amount": [120.0, None, 80.5, 300.0], "repaid": ["yes", "no", "yes", "no"]})
        >>> schema = Schema.of(frame, Target.of(frame, "repaid"))
        >>> schema.features, tuple(schema.encode(frame).shape), schema.labels(frame).tolist()
        (['amount', 'amount is missing'], (4, 2), [1.0, 0.0, 1.0, 0.0])
    """

    target: Target

    @classmethod
    def of(
        cls, frame: Frame, target: Target, readings: Readings | None = None, kinds: Mapping[str, str] | None = None
    ) -> Schema:
        """Learn the schema of the training rows; hand over no other rows.

        Args:
            frame: The training rows.
            target: The column to predict.
            readings: How every column is read, if more rows than these have decided it.
            kinds: The kind that a column is taken as, by its name: "categorical" (a feature per level), "numeric" (an
                amount, even if it looks like an identifier), "hash" (hashed levels), "text" (hashed words) or
                "target-encode" (the log-odds of each level, see `TargetMean`).

        Raises:
            BadTable: If no column can be used, or `kinds` names no column or one of another kind.
        """
        kinds = kinds or {}
        refuse_odd_kinds(frame, target.name, kinds)
        readings = learn_readings(frame)[0] if readings is None else readings
        read = apply_readings(frame, readings)
        truth = None if target.classes else Truth(target.labels(frame).numpy())
        found = {
            c.name: describe(c, readings.get(c.name), kinds.get(c.name), truth) for c in read if c.name != target.name
        }
        return cls.with_columns(target, found, readings)

    @classmethod
    def with_columns(cls, target: Target, found: Mapping[str, AnyColumn | str], readings: Readings) -> Schema:
        """The schema of columns of which each was described, or refused with a reason."""
        known = cls.used_of(found, readings, repr(target.name))
        return cls(known.columns, known.dropped, readings, target)

    def _known(self) -> set[str]:
        return {self.target.name, *super()._known()}

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32."""
        return self.target.labels(frame)

    def groups(self, frame: Frame, column: str) -> NDArray[np.str_]:
        """The group of every row, as text."""
        return group_names(apply_readings(frame, {n: r for n, r in self.readings.items() if n == column}), column)

    def values(self, frame: Frame, columns: Sequence[str]) -> dict[str, Tensor] | None:
        """The values of the columns that an ask names, by name; None if it names none."""
        known = {name: reading for name, reading in self.readings.items() if name in columns and name in frame.columns}
        found = column_values(apply_readings(frame, known), columns)
        return None if found is None else dict(zip(columns, found.unbind(1)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "target": {**asdict(self.target), "reading": self.target.reading.to_dict()},
            "columns": [{"kind": type(column).__name__.lower(), **asdict(column)} for column in self.columns],
            "dropped": dict(self.dropped),
            "readings": {name: reading.to_dict() for name, reading in self.readings.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote."""
        try:
            about = dict(data["target"])
            reading = Reading(**about.pop("reading"))
            rest, classes = (tuple(typed(str, level) for level in about.pop(each, ())) for each in ("rest", "classes"))
            columns = tuple(read_column(**column) for column in data["columns"])
            readings = {name: Reading(**how) for name, how in data["readings"].items()}
            _refuse_other_readings(columns, readings)
            return cls(
                columns,
                tuple((name, typed(str, why)) for name, why in data["dropped"].items()),
                readings,
                Target(
                    **{name: typed(str, value) for name, value in about.items()},
                    reading=reading,
                    rest=rest,
                    classes=classes,
                ),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as cause:
            raise BadFile(f"damaged schema: {cause!r}") from cause


def _refuse_other_readings(columns: Sequence[AnyColumn], readings: Readings) -> None:
    """Every column is there once, and read as what it was described as."""
    if len({column.name for column in columns}) < len(columns):
        raise TypeError("a column stands there twice")
    for column in columns:
        reading = readings[column.name]
        if not fits(column, reading.kind, reading.length):
            raise TypeError(f"column {column.name!r} is read as {reading.kind}")
