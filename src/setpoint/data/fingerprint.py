"""The fingerprint of a table: the same names, types and values in the same order, in any process, and no others."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import polars as pl

from setpoint.data.frame import Column, Frame


def fingerprint(frame: Frame) -> dict[str, Any]:
    """The number of rows and columns, and a SHA-256 of the content."""
    found = hashlib.sha256()
    for column in frame:
        for part in (column.name.encode(), str(column.dtype).encode(), *_values(column)):
            found.update(len(part).to_bytes(8, "little"))
            found.update(part)
    return {"rows": frame.height, "columns": frame.width, "sha256": found.hexdigest()}


def _values(column: Column) -> list[bytes | memoryview]:
    """Which values are missing, and the others, in a form that no version of polars changes."""
    missing = column.is_null()
    kind = column.dtype
    if kind.is_temporal():
        column = column.to_physical()
    if kind == pl.Boolean:
        column = column.cast(pl.UInt8)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        text = column.cast(pl.String).fill_null("")
        return [_bytes(missing), _bytes(text.str.len_bytes()), str(text.str.join("").item()).encode()]
    if (column.dtype.is_integer() and column.dtype not in (pl.Int128, pl.UInt128)) or column.dtype.is_float():
        return [_bytes(missing), _bytes(column.fill_null(0))]
    return [_bytes(missing), repr(column.to_list()).encode()]


def _bytes(column: Column) -> memoryview:
    return np.ascontiguousarray(column.to_numpy()).view(np.uint8).data
