"""A column that names the cluster of each row, such as the patient."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Frame, levels, nearest
from setpoint.errors import BadTable


def column_of_clusters(frame: Frame, column: str) -> NDArray[np.str_]:
    """The cluster of each row, as text.

    Args:
        frame: The table.
        column: The name of the column.

    Raises:
        BadTable: If the column is not there, or a row has no cluster.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.cluster_column import column_of_clusters
        >>> column_of_clusters(pl.DataFrame({"patient": [7, 7, 8]}), "patient").tolist()
        ['7', '7', '8']
    """
    if column not in frame.columns:
        raise BadTable(
            f"no column {column!r}, by which the run was fitted with --cluster: rows of one {column!r} depend on each "
            f"other, so the column is needed beside the labels; {nearest(column, frame.columns)}"
        )
    refuse_missing(frame, column, "each row needs its cluster")
    return np.asarray(levels(frame[column]).to_numpy().astype(str))


def refuse_missing(frame: Frame, name: str, why: str) -> None:
    """Refuse a column that is missing in some rows, and say why it is needed in all of them."""
    column = frame[name]
    missing = int(column.is_null().sum()) + (int(column.is_nan().sum()) if column.dtype.is_float() else 0)
    if missing:
        raise BadTable(f"column {name!r} is missing in {missing} of {len(column)} rows, but {why}; drop those rows")
