"""Columns of texts or images that an encoder turns into numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.column import Numeric, typed
from setpoint.data.encoders import encoder_named
from setpoint.data.frame import Column, tidy
from setpoint.data.layout import Block
from setpoint.data.seen import Seen
from setpoint.data.several import Vector, read_vector
from setpoint.errors import BadFile


@dataclass(frozen=True)
class Encoded:
    """A column of texts, or of images as bytes or paths: the numbers that a named encoder gives for each value.

    Attributes:
        name: The name of the column.
        encoder: The name of the encoder.
        identity: The identity of the encoder in training; an encoder with another identity is refused.
        numbers: The numbers as a column of lists, standardised by the training rows.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.data.columns import Columns
        >>> sp.methods.register_encoder("marks", lambda text: [text.count("!"), text.count("?")])
        >>> frame = pl.DataFrame({"note": ["now!", "well?", "now!!"]})
        >>> Columns.learned(frame, kinds={"note": "encoder marks"}).features
        ['note[0]', 'note[1]']
    """

    name: str
    encoder: str
    identity: str
    numbers: Vector

    @property
    def features(self) -> list[str]:
        return self.numbers.features

    @property
    def blocks(self) -> list[Block]:
        return self.numbers.blocks

    def encode(self, column: Column) -> NDArray[np.float32]:
        return self.numbers.encode(numbers_of(column, self.encoder, self.identity))

    def look(self, column: Column) -> Seen:
        return Seen(len(column), 0, _there(column).null_count())

    def notes(self, seen: Seen) -> list[str]:
        return Numeric(self.name, 0, 1, 0, 0, self.numbers.amounts[0].missing).notes(seen)

    def beyond(self, seen: Seen) -> str | None:
        return None

    def mostly(self, seen: Seen) -> str | None:
        return self.notes(seen)[-1] if 2 * seen.missing > seen.rows and self.notes(seen) else None


def numbers_of(column: Column, encoder: str, identity: str | None = None) -> Column:
    """The lists of numbers that an encoder gives for the values of a column, null where a value is missing.

    Raises:
        BadFile: If the encoder of this name has another identity.
    """
    found = encoder_named(encoder)
    if identity is not None and found.identity != identity:
        raise BadFile(
            f"column {column.name!r} was encoded by {encoder!r} of another version or with other weights ({identity}; "
            f"here {found.identity}); install those, or train again"
        )
    values = _there(column)
    features = found.features(values.drop_nulls().to_list()).astype(np.float64)
    lists: list[Any] = [None] * len(column)
    for place, own in zip(np.flatnonzero(values.is_not_null().to_numpy()).tolist(), features.tolist()):
        lists[place] = own
    return pl.Series(column.name, lists, dtype=pl.List(pl.Float64))


def _there(column: Column) -> Column:
    """The values as they stand, null where they are missing: an encoder may tell blanks and upper case apart."""
    if column.dtype == pl.Binary:
        return column
    text = column.cast(pl.String)
    return text.set(tidy(text).is_null(), None)


def read_encoded(name: str, *, encoder: Any, identity: Any, numbers: Any) -> Encoded:
    """The column that a saved schema describes."""
    return Encoded(name, typed(str, encoder), typed(str, identity), read_vector(**numbers))
