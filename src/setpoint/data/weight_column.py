"""A column of weights, which tells how many rows each row stands for."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.frame import Frame, nearest
from setpoint.errors import BadTable


def column_of_weights(frame: Frame, column: str) -> tuple[Frame, NDArray[np.float64]]:
    """The table without its column of weights, and the weights.

    Raises:
        BadTable: If the column is missing, or holds anything but numbers above 0.
    """
    if column not in frame.columns:
        raise BadTable(f"no column {column!r} of weights; {nearest(column, frame.columns)}")
    weights = frame[column].cast(pl.String).cast(pl.Float64, strict=False)
    odd = int((~(weights > 0) | weights.is_infinite()).fill_null(True).sum())
    if odd:
        raise BadTable(
            f"column {column!r} holds no number above 0 in {odd} of {len(weights)} rows, but --weight names it"
        )
    return frame.drop(column), weights.to_numpy()
