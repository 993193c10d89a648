"""Frames with words, categories, dates and missing values as X of scikit-learn: encoded as tables are.

This file needs polars, and is loaded only when such an X comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.data.columns import Columns
from setpoint.data.frame import Frame, as_frame, numbers
from setpoint.data.layout import Block
from setpoint.data.reading import Readings, learn_readings
from setpoint.data.target_mean import Truth
from setpoint.train.encodings import choose_encodings
from setpoint.train.scoring import AT_ONCE


@dataclass(frozen=True)
class Table:
    """Rows of a frame, and how its columns are to be read and taken."""

    frame: Frame
    readings: Readings
    kinds: Mapping[str, str]
    named: bool

    @classmethod
    def of(cls, frame: Frame, kinds: Mapping[str, str], named: bool) -> Table:
        """The table of training rows; the columns of an array are not `named`."""
        readings = learn_readings(frame)[0]
        # Numbers that are handed over as features are used, whatever they look like.
        plain = {name: "numeric" for name, reading in readings.items() if reading.kind == "number"}
        return cls(frame, readings, {**plain, **kinds}, named)

    @property
    def shape(self) -> tuple[int, int]:
        return self.frame.shape

    def __getitem__(self, rows: NDArray[Any]) -> Table:
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, frame=self.frame[places])


def as_columns(X: Any, names: list[str] | None = None) -> Frame:
    """The frame of X; the columns of an array are named by their places, or by `names`."""
    if isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        return as_frame(X)
    values = np.asarray(X)
    names = names or [f"x{place}" for place in range(values.shape[1])]
    columns = values.T.tolist() if values.dtype == object else values.T
    return as_frame(dict(zip(names, columns)))


def holds_plain_numbers(frame: Frame) -> bool:
    """Whether every column holds numbers or booleans, and none is missing."""
    for column in frame:
        is_number = column.dtype.is_numeric()
        if not is_number and str(column.dtype) != "Boolean":
            return False
        if column.null_count() or (column.dtype.is_float() and bool(np.isnan(numbers(column)).any())):
            return False
    return True


class ByColumns(nn.Module):
    """The encoding of frames: each column as `Columns` learned it from the training rows."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.columns = columns

    @classmethod
    def of(cls, table: Table, labels: NDArray[Any] | None, weights: NDArray[Any] | None) -> ByColumns:
        """Learn the columns; those that are of no use are named in a warning. Labels are None for several classes."""
        truth = None if labels is None else Truth(labels, weights)
        columns = Columns.learned(table.frame, table.readings, table.kinds, truth)
        columns, _ = choose_encodings(columns, table.frame, truth, table.kinds)
        for name, why in columns.dropped if table.named else ():
            warnings.warn(f"column {name!r} is not used: {why}", stacklevel=6)
        return cls(columns)

    @property
    def blocks(self) -> list[Block]:
        """The features that come from one value each."""
        return self.columns.blocks

    def features(self, table: Table) -> Tensor:
        """The features of some rows, float32."""
        return self.columns.encode(table.frame)

    def of_training(self, table: Table, labels: NDArray[Any], weights: NDArray[Any] | None) -> Tensor:
        """The features of the training rows, with no row's own label among them."""
        return self.columns.of_training(self.features(table), table.frame, Truth(labels, weights))

    def parts(self, table: Table) -> Iterator[Tensor]:
        """The features, some rows at a time."""
        for first in range(0, table.frame.height, AT_ONCE):
            yield self.columns.encode(table.frame[first : first + AT_ONCE])

    def forward(self, x: Tensor) -> Tensor:
        """Features that are encoded already."""
        return x
