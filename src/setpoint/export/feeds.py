"""The inputs of an exported model, from the columns of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Column, Frame, matrix, numbers
from setpoint.data.reading import Readings
from setpoint.errors import BadTable
from setpoint.export.columns import Input

#: How each kind of time is spelled.
_SPELLED = {
    "time": "%Y-%m-%dT%H:%M:%S%.6f", "time with a zone": "%Y-%m-%dT%H:%M:%S%.6fZ", "time of day": "%H:%M:%S%.9f",
}  # fmt: skip


def feeds_of(frame: Frame, given: Sequence[Input], readings: Readings) -> dict[str, NDArray[Any]]:
    """One array `(n, width)` per input; missing numbers are NaN, all other missing values an empty text."""
    return {each.name: _values(frame[each.column], each, readings) for each in given}


def _values(column: Column, given: Input, readings: Readings) -> NDArray[Any]:
    reading = readings.get(given.column)
    read = reading.read(column) if reading is not None else column
    if given.kind in ("number", "duration"):
        return numbers(read).reshape(-1, 1)
    if given.kind == "list of numbers":
        return matrix(read, given.width)
    if given.kind == "boolean":
        if read.null_count():
            raise BadTable(
                f"column {given.column!r} is missing in {read.null_count()} of {len(read)} rows but never in training, "
                "so its ONNX input is a boolean; leave those rows out"
            )
        return read.to_numpy().astype(bool).reshape(-1, 1)
    if given.kind in _SPELLED:
        read = read.dt.to_string(_SPELLED[given.kind])
    texts = ["" if value is None else value if isinstance(value, str) else str(value).lower() for value in read]
    return np.array(texts, dtype=object).reshape(-1, 1)
