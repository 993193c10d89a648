"""Every kind of column, and how a saved schema becomes columns again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from setpoint.data.column import Categorical, Numeric, read_categorical, read_numeric, typed
from setpoint.data.encoded import Encoded, read_encoded
from setpoint.data.hashed import Hashed, Text, read_hashed, read_text
from setpoint.data.several import Times, Vector, read_times, read_vector
from setpoint.data.target_mean import TargetMean, read_target_mean

AnyColumn: TypeAlias = Numeric | Categorical | Vector | Times | Hashed | Text | TargetMean | Encoded
_READERS: dict[str, Callable[..., AnyColumn]] = {
    "numeric": read_numeric, "categorical": read_categorical, "vector": read_vector, "times": read_times,
    "hashed": read_hashed, "text": read_text, "targetmean": read_target_mean,
    "encoded": read_encoded,
}  # fmt: skip
#: The kinds of readings that a column of each kind may have; any other kind of column may have any.
_READ_AS: dict[type[AnyColumn], tuple[str, ...]] = {
    Numeric: ("number", "time of day", "duration"),
    Vector: ("list of numbers",),
    Times: ("time", "time with a zone"),
    Text: ("words",),
    Encoded: ("words", "bytes"),
}


def read_column(kind: str, name: str, **rest: Any) -> AnyColumn:
    """The column that a saved schema describes; anything odd in it is a TypeError."""
    if kind not in _READERS:
        raise TypeError(f"a column of kind {kind!r}")
    return _READERS[kind](typed(str, name), **rest)


def fits(column: AnyColumn, kind: str, length: int) -> bool:
    """Whether values that are read as this kind, and as lists of this length, can be encoded by the column."""
    own = column.length if isinstance(column, Vector) else 0
    return own == length and kind in _READ_AS.get(type(column), (kind,))
