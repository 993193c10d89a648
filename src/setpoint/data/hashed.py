"""Columns of very many values, hashed to a fixed number of features: levels as a whole, or free text word by word."""

from __future__ import annotations

import itertools
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.column import typed
from setpoint.data.frame import Column, levels
from setpoint.data.layout import Block
from setpoint.data.seen import Seen

#: The number of features that values are hashed to.
WIDTH = 256
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Hashed:
    """A column of many levels: each level belongs to one of a fixed number of 0/1 features, by a hash of its text.

    Attributes:
        name: The name of the column.
        width: The number of hashes.
        missing: Whether any training row had no value; there is one feature more for these.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.hashed import Hashed
        >>> Hashed("street", width=4, missing=False).encode(pl.Series("street", ["Elm St", "Oak St"])).tolist()
        [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """

    name: str
    width: int
    missing: bool

    @property
    def features(self) -> list[str]:
        rest = [f"{self.name} is missing"] if self.missing else []
        return [f"{self.name}: hash {place}" for place in range(self.width)] + rest

    @property
    def blocks(self) -> list[Block]:
        return [Block(self.name, "levels", self.width + self.missing)]

    def encode(self, column: Column) -> NDArray[np.float32]:
        texts = levels(column)
        different = texts.unique().drop_nulls()
        places = pl.Series([_hash(text) % self.width for text in different], dtype=pl.Int64)
        codes = (
            texts.replace_strict(different, places, return_dtype=pl.Int64) if len(different) else texts.cast(pl.Int64)
        )
        width = self.width + self.missing
        # Without a feature for missing values, their row is all zeros.
        identity: NDArray[np.float32] = np.eye(self.width + 1, width, dtype=np.float32)
        return np.asarray(identity[codes.fill_null(self.width).to_numpy()])

    def look(self, column: Column) -> Seen:
        return Seen(len(column), 0, levels(column).null_count())

    def notes(self, seen: Seen) -> list[str]:
        if not seen.missing or self.missing:
            return []
        return [f"column {self.name!r}: missing in {seen.share(seen.missing)} but never in training"]

    def beyond(self, seen: Seen) -> str | None:
        return None

    def mostly(self, seen: Seen) -> str | None:
        return self.notes(seen)[0] if 2 * seen.missing > seen.rows and not self.missing else None


@dataclass(frozen=True)
class Text:
    """A column of free text: its words and pairs of neighbouring words, counted by the hash of each.

    The counts of a row are divided by their root mean square, so that long and short texts weigh the same. A row
    without any word is all zeros.

    Attributes:
        name: The name of the column.
        width: The number of hashes.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.hashed import Text
        >>> Text("note", width=4).encode(pl.Series("note", ["late", "Late!", None])).tolist()
        [[0.0, 2.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    name: str
    width: int

    @property
    def features(self) -> list[str]:
        return [f"{self.name}: words {place}" for place in range(self.width)]

    @property
    def blocks(self) -> list[Block]:
        return [Block(feature, "amount", 1) for feature in self.features]

    def encode(self, column: Column) -> NDArray[np.float32]:
        counts = np.zeros((len(column), self.width), dtype=np.float32)
        for row, text in zip(counts, levels(column)):
            words = _WORD.findall(text.lower()) if text is not None else []
            for term in (*words, *map(" ".join, itertools.pairwise(words))):
                row[_hash(term) % self.width] += 1
        size = np.sqrt((counts**2).mean(axis=1, keepdims=True))
        return np.asarray(counts / np.where(size > 0, size, 1), dtype=np.float32)

    def look(self, column: Column) -> Seen:
        return Seen(len(column), 0, levels(column).null_count())

    def notes(self, seen: Seen) -> list[str]:
        return []

    def beyond(self, seen: Seen) -> str | None:
        return None

    def mostly(self, seen: Seen) -> str | None:
        return None


def _hash(text: str) -> int:
    """A number that is the same on every machine."""
    return zlib.crc32(text.encode())


def read_hashed(name: str, *, width: Any, missing: Any) -> Hashed:
    """The column that a saved schema describes."""
    return Hashed(name, _read_width(name, width), typed(bool, missing))


def read_text(name: str, *, width: Any) -> Text:
    """The column that a saved schema describes."""
    return Text(name, _read_width(name, width))


def _read_width(name: str, width: Any) -> int:
    number = typed(int, width)
    if isinstance(width, bool) or not 1 <= number <= 65_536:
        raise TypeError(f"column {name!r} is hashed to {width!r} features")
    return number
