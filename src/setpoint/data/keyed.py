"""Scored rows, each under its key, which wait for labels that come later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from setpoint.data.exchange import writing
from setpoint.data.frame import Frame, nearest
from setpoint.errors import BadFile, BadTable

_KEY, _GROUP, _CLUSTER, _SCORE = "key", "group", "cluster", "score"


def keys_of(frame: Frame, column: str) -> list[str]:
    """The key of every row, as text; every row needs one of its own."""
    if column not in frame.columns:
        raise BadTable(f"no column {column!r} of keys; {nearest(column, frame.columns)}")
    keys = frame[column].cast(pl.String)
    if keys.null_count():
        raise BadTable(f"the key {column!r} is missing in {keys.null_count()} of {len(keys)} rows; each row needs one")
    return keys.to_list()


@dataclass(frozen=True)
class Keyed:
    """Rows with a key, their scores, and their groups where each group has its own threshold.

    Attributes:
        keys: The key of each row.
        scores: The scores, `(n,)` or `(n, K)`.
        groups: The group of each row, if groups matter.
        clusters: The cluster of each row, if rows of one cluster depend on each other.
    """

    keys: list[str]
    scores: NDArray[np.float64]
    groups: list[str] | None = None
    clusters: list[str] | None = None

    @classmethod
    def joined(cls, parts: Sequence[Keyed]) -> Keyed:
        """All rows of several parts; a key is of one row alone."""
        if not parts:
            return cls([], np.zeros(0))
        keys = [key for part in parts for key in part.keys]
        twice = len(keys) - len(set(keys))
        if twice:
            raise BadTable(f"{twice} rows have a key that another waiting row has; each row needs a key of its own")
        groups = None if parts[0].groups is None else [name for part in parts for name in part.groups or []]
        clusters = None if parts[0].clusters is None else [name for part in parts for name in part.clusters or []]
        return cls(keys, np.concatenate([part.scores for part in parts]), groups, clusters)

    def take(self, rows: Any) -> Keyed:
        """Some of the rows, by their places."""
        groups, clusters = (
            None if names is None else [names[row] for row in rows] for names in (self.groups, self.clusters)
        )
        return Keyed([self.keys[row] for row in rows], self.scores[rows], groups, clusters)

    def find(self, keys: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places here, and among `keys`, of the rows that both have."""
        here = {key: place for place, key in enumerate(self.keys)}
        if len(set(keys)) < len(keys):
            raise BadTable(f"{len(keys) - len(set(keys))} labels have a key that another label has; give each row once")
        both = [(here[key], place) for place, key in enumerate(keys) if key in here]
        pairs = np.array(both, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def write(self, path: Path) -> None:
        """Write to a Parquet file, which appears once it is whole."""
        columns: dict[str, Any] = {_KEY: pl.Series(self.keys, dtype=pl.String)}
        columns |= {} if self.groups is None else {_GROUP: pl.Series(self.groups, dtype=pl.String)}
        columns |= {} if self.clusters is None else {_CLUSTER: pl.Series(self.clusters, dtype=pl.String)}
        wide = self.scores.reshape(len(self.keys), -1) if len(self.keys) else np.zeros((0, 1))
        columns |= {f"{_SCORE}{place}": own for place, own in enumerate(wide.T)}
        with writing(path) as write:
            write(pl.DataFrame(columns))

    @classmethod
    def read(cls, path: Path) -> Keyed:
        """Read what `write` wrote."""
        try:
            frame = pl.read_parquet(path, glob=False)
            scores = frame.select(pl.col(f"^{_SCORE}[0-9]+$")).to_numpy().astype(np.float64)
            groups, clusters = (frame[name].to_list() if name in frame.columns else None for name in (_GROUP, _CLUSTER))
            own = scores[:, 0] if scores.shape[1] == 1 else scores
            return cls(frame[_KEY].to_list(), own, groups, clusters)
        except (OSError, pl.exceptions.PolarsError, ValueError, IndexError) as cause:
            raise BadFile(f"{path}, the rows that wait for their labels, is missing or damaged") from cause
