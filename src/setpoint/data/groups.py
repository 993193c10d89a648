"""The column whose groups an ask compares: a name a row."""

from __future__ import annotations

import difflib

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Frame, levels
from setpoint.errors import BadTable

#: The group of rows in which the column is missing.
MISSING = "(missing)"
#: The most groups that can be compared: with more, most of them hold too few rows to have a rate.
MOST_GROUPS = 20


def group_names(frame: Frame, column: str) -> NDArray[np.str_]:
    """The group of every row, as text."""
    if column not in frame.columns:
        near = difflib.get_close_matches(column, frame.columns, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, frame.columns[:20]))}"
        raise BadTable(f"no column {column!r} to compare groups of; {hint}")
    names = levels(frame[column]).fill_null(MISSING).to_numpy().astype(str)
    different = len(np.unique(names))
    if different > MOST_GROUPS:
        raise BadTable(
            f"column {column!r} holds {different} different values; at most {MOST_GROUPS} groups can be compared: "
            "join the small ones, or cut numbers into ranges"
        )
    return names
