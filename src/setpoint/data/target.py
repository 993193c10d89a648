"""The column to predict: its two classes, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.data.column import typed
from setpoint.data.counts import LevelCounts, Levels
from setpoint.data.frame import Column, Frame, holds_levels, holds_numbers, level_codes, levels, nearest
from setpoint.data.reading import Reading, learn_readings
from setpoint.errors import BadTable
from setpoint.on_use import torch
from setpoint.plain import number

if TYPE_CHECKING:
    from torch import Tensor

#: The most classes of a target, when one of them is to be told from the rest.
MOST_CLASSES = 100
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
        cut: The grade from which on a row is positive, where the column holds grades.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.target import Target
        >>> target = Target.of(pl.DataFrame({"repaid": ["yes", "no", "yes"]}), "repaid")
        >>> target.positive, target.why
        ('yes', 'the value that means yes')
    """

    name: str
    negative: str
    positive: str
    why: str
    reading: Reading
    rest: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    cut: float | None = None

    @classmethod
    def of_grades(cls, frame: Frame, name: str, cut: float) -> Target:
        """The target of a column of grades: rows of the grade `cut` or more are positive.

        Args:
            frame: The table.
            name: The name of the column.
            cut: The lowest grade of a positive row.

        Raises:
            BadTable: If there is no such column, it does not hold a number in every row, or all rows are of one class.
        """
        refuse_odd_target(frame, name)
        readings, read = learn_readings(frame.select(name))
        if not read[name].dtype.is_numeric():
            raise BadTable(f"target {name!r} holds words, but --relevant cuts grades; use --positive to name a class")
        target = cls(name, f"below {cut:g}", f"{cut:g} or more", "as asked", readings[name], cut=cut)
        share = float(target.labels(frame).mean())
        if share in (0.0, 1.0):
            which = "at least" if share else "below"
            raise BadTable(f"target {name!r} is {which} {cut:g} in every row; choose another grade with --relevant")
        return target

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
        _refuse_infinite(name, read[name])
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
        _refuse_infinite(name, read[name])
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
            chosen, why = says_yes[0], "the value that means yes"
        else:
            chosen, why = list(counts)[-1], "the rarer class"
        negative, *rest = (level for level in counts if level != chosen)
        return cls(name, negative, chosen, why, reading, tuple(rest))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns to predict."""
        return (self.name,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "reading": self.reading.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Target:
        """The target that `to_dict` wrote."""
        about = dict(data)
        reading, cut = Reading(**about.pop("reading")), about.pop("cut", None)
        rest, classes = (tuple(typed(str, level) for level in about.pop(each, ())) for each in ("rest", "classes"))
        texts = {name: typed(str, value) for name, value in about.items()}
        cut = None if cut is None else number(cut)
        return cls(**texts, reading=reading, rest=rest, classes=classes, cut=cut)

    @property
    def negatives(self) -> str:
        """The negative classes, in words."""
        return ", ".join(map(repr, (self.negative, *self.rest)))

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32; or the number of the class, int64."""
        refuse_odd_target(frame, self.name)
        read = self.reading.read(frame[self.name])
        if self.cut is not None:
            grades = read.cast(float, strict=False)
            if absent := int((grades.is_null() | grades.is_nan()).sum()):
                raise missing_labels(self.name, absent, frame.height)
            return torch.from_numpy((grades >= self.cut).to_numpy().astype(np.float32))
        _refuse_infinite(self.name, read)
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


def _refuse_infinite(name: str, column: Column) -> None:
    """Levels have no place for infinity; taken for missing, all rows of a class could be dropped."""
    infinite = int(column.is_infinite().sum()) if column.dtype.is_float() else 0
    if infinite:
        raise BadTable(f"target {name!r} is inf or -inf in {infinite} of {len(column)} rows; write a class there")


def missing_labels(name: str, missing: int, rows: int) -> BadTable:
    """The error for a target that is missing in some rows."""
    return BadTable(
        f"target {name!r} is missing in {missing} of {rows} rows; fill it in, or drop those rows, as setpoint fit does "
        "with --drop-missing-target"
    )


def refuse_odd_target(frame: Frame, name: str) -> None:
    """Refuse a table without the column, or with one that cannot hold classes."""
    if name not in frame.columns:
        raise BadTable(f"no column {name!r} to predict; {nearest(name, frame.columns)}")
    column = frame[name]
    if not (holds_numbers(column) or holds_levels(column)):
        raise BadTable(f"target {name!r} holds values of type {column.dtype}; it must hold numbers, words or booleans")
