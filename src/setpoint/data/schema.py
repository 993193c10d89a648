"""The schema: what training saw in each column, and how a frame becomes features and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.column import typed
from setpoint.data.columns import Columns, refuse_odd_kinds
from setpoint.data.frame import Frame, levels, nearest
from setpoint.data.kinds import AnyColumn, fits, read_column
from setpoint.data.label_columns import AnyTarget, LabelColumns
from setpoint.data.learn import describe
from setpoint.data.reading import Reading, Readings, apply_readings, learn_readings
from setpoint.data.target import Target
from setpoint.data.target_mean import Truth
from setpoint.errors import BadFile, BadTable
from setpoint.measure.values import stack_values

if TYPE_CHECKING:
    from torch import Tensor

#: The most groups that can be compared: with more, most of them hold too few rows to have a rate.
MOST_GROUPS = 20


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


def list_names(frame: Frame, column: str) -> NDArray[np.str_]:
    """The list of every row, as text."""
    if column not in frame.columns:
        raise BadTable(f"no column {column!r}, which names the list of each row; {nearest(column, frame.columns)}")
    names = levels(frame[column])
    if missing := names.null_count():
        raise BadTable(
            f"column {column!r} names no list in {missing} of {frame.height} rows; fill it in, or drop those"
        )
    return names.to_numpy().astype(str)


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
        target: The column to predict, or the columns of several labels.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.schema import Schema
        >>> from setpoint.data.target import Target
        >>> frame = pl.DataFrame({"amount": [120.0, None, 80.5, 300.0], "repaid": ["yes", "no", "yes", "no"]})
        >>> schema = Schema.of(frame, Target.of(frame, "repaid"))
        >>> schema.features, tuple(schema.encode(frame).shape), schema.labels(frame).tolist()
        (['amount', 'amount is missing'], (4, 2), [1.0, 0.0, 1.0, 0.0])
    """

    target: AnyTarget

    @classmethod
    def of(
        cls, frame: Frame, target: AnyTarget, readings: Readings | None = None, kinds: Mapping[str, str] | None = None
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
        refuse_odd_kinds(frame, target.columns, kinds)
        readings = learn_readings(frame)[0] if readings is None else readings
        read = apply_readings(frame, readings)
        truth = Truth(target.labels(frame).numpy()) if isinstance(target, Target) and not target.classes else None
        found = {
            c.name: describe(c, readings.get(c.name), kinds.get(c.name), truth)
            for c in read
            if c.name not in target.columns
        }
        return cls.with_columns(target, found, readings)

    @classmethod
    def with_columns(cls, target: AnyTarget, found: Mapping[str, AnyColumn | str], readings: Readings) -> Schema:
        """The schema of columns of which each was described, or refused with a reason."""
        known = cls.used_of(found, readings, repr(target.name))
        return cls(known.columns, known.dropped, readings, target)

    def _known(self) -> set[str]:
        return {*self.target.columns, *super()._known()}

    def labels(self, frame: Frame) -> Tensor:
        """1 for the positive class, 0 for the other, float32; `(n, L)` for L labels, NaN where one is not known."""
        return self.target.labels(frame)

    def groups(self, frame: Frame, column: str) -> NDArray[np.str_]:
        """The group of every row, as text."""
        return group_names(apply_readings(frame, {n: r for n, r in self.readings.items() if n == column}), column)

    def lists(self, frame: Frame, column: str) -> NDArray[np.str_]:
        """The list of every row, as text."""
        return list_names(apply_readings(frame, {n: r for n, r in self.readings.items() if n == column}), column)

    def values(self, frame: Frame, columns: Sequence[str]) -> dict[str, Tensor] | None:
        """The values of the columns that an ask names, by name; None if it names none."""
        known = {name: reading for name, reading in self.readings.items() if name in columns and name in frame.columns}
        found = column_values(apply_readings(frame, known), columns)
        return None if found is None else dict(zip(columns, found.unbind(1)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "target": self.target.to_dict(),
            "columns": [{"kind": type(column).__name__.lower(), **asdict(column)} for column in self.columns],
            "dropped": dict(self.dropped),
            "readings": {name: reading.to_dict() for name, reading in self.readings.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote."""
        try:
            kind = LabelColumns if "labels" in data["target"] else Target
            columns = tuple(read_column(**column) for column in data["columns"])
            readings = {name: Reading(**how) for name, how in data["readings"].items()}
            _refuse_other_readings(columns, readings)
            return cls(
                columns,
                tuple((name, typed(str, why)) for name, why in data["dropped"].items()),
                readings,
                kind.from_dict(data["target"]),
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
