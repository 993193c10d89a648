"""Words of very many levels as one number: the log-odds of the positive class among the training rows of each level.

A training row must not see its own label in its features. Its number therefore comes from the other folds of the
training rows (`out_of_fold`); any other row has the number that all training rows give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.data.column import typed
from setpoint.data.counts import Levels
from setpoint.data.frame import Column, level_codes, levels
from setpoint.data.layout import Block
from setpoint.data.seen import Seen

#: Each level has so many rows more, with the share of positives of all rows: what a few rows say is shrunk.
PRIOR_ROWS = 10.0
FOLDS = 5
#: The most levels that have a number of their own; a level that occurs once has none.
MOST_KEPT = 10_000


class Truth(NamedTuple):
    """The label of each training row, 0 or 1, and its weight; without weights all weigh the same."""

    labels: NDArray[Any]
    weights: NDArray[Any] | None = None

    def take(self, rows: NDArray[np.bool_]) -> Truth:
        """The same for some of the rows."""
        return Truth(self.labels[rows], None if self.weights is None else self.weights[rows])


@dataclass(frozen=True)
class TargetMean:
    """A column of words: one number per level, its log-odds of the positive class less that of all training rows.

    A level that training never saw, saw once, or did not keep is 0, as the average row is.

    Attributes:
        name: The name of the column.
        levels: The levels with a number of their own, the most frequent first.
        values: The number of each.
        missing: The number of rows without a value; None if training had no such row.

    Example:
        >>> import polars as pl
        >>> from setpoint.data.target_mean import TargetMean
        >>> street = TargetMean("street", ("Elm St", "Oak St"), (0.5, -1.25), missing=None)
        >>> street.encode(pl.Series("street", ["Oak St", "Ash St", None])).tolist()
        [[-1.25], [0.0], [0.0]]
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...]
    missing: float | None

    @property
    def features(self) -> list[str]:
        return [f"{self.name}: log-odds"]

    @property
    def blocks(self) -> list[Block]:
        return [Block(self.name, "amount", 1)]

    def encode(self, column: Column) -> NDArray[np.float32]:
        # The place behind the known levels is that of missing values, and the last one, -1, that of all others.
        found = np.array([*self.values, self.missing or 0.0, 0.0], dtype=np.float32)
        return found[level_codes(column, self.levels)][:, None]

    def look(self, column: Column) -> Seen:
        return Seen(len(column), 0, levels(column).null_count())

    def notes(self, seen: Seen) -> list[str]:
        if not seen.missing or self.missing is not None:
            return []
        return [f"column {self.name!r}: missing in {seen.share(seen.missing)} but never in training"]

    def beyond(self, seen: Seen) -> str | None:
        return None

    def mostly(self, seen: Seen) -> str | None:
        return self.notes(seen)[0] if 2 * seen.missing > seen.rows and self.missing is None else None


def learn_target_mean(column: Column, truth: Truth) -> TargetMean:
    """The column with the log-odds of its levels among these rows."""
    counts = Levels().add(column).found(MOST_KEPT)
    known = tuple(level for level, times in counts.times.items() if times > 1)
    codes = level_codes(column, known)
    codes[codes < 0] = len(known) + 1
    weights = np.ones(len(codes)) if truth.weights is None else truth.weights
    sizes = np.bincount(codes, weights, len(known) + 2)
    positives = np.bincount(codes, weights * truth.labels, len(known) + 2)
    share = (positives.sum() + 0.5) / (sizes.sum() + 1)
    found = _log_odds((positives + PRIOR_ROWS * share) / (sizes + PRIOR_ROWS)) - _log_odds(share)
    is_missing = bool((codes == len(known)).any())
    return TargetMean(
        column.name, known, tuple(found[: len(known)].tolist()), float(found[len(known)]) if is_missing else None
    )


def out_of_fold(column: Column, truth: Truth) -> NDArray[np.float32]:
    """The feature `(n, 1)` of training rows: that of each row is learned from the other folds.

    Every fifth row of each class is in the same fold.
    """
    fold = np.zeros(len(column), dtype=np.int64)
    for label in (0, 1):
        own = truth.labels == label
        fold[own] = np.arange(int(own.sum())) % FOLDS
    found = np.zeros((len(column), 1), dtype=np.float32)
    for turn in range(FOLDS):
        own = fold == turn
        found[own] = learn_target_mean(column.filter(~own), truth.take(~own)).encode(column.filter(own))
    return found


def read_target_mean(name: str, *, levels: Any, values: Any, missing: Any) -> TargetMean:
    """The column that a saved schema describes."""
    known = tuple(typed(str, level) for level in levels)
    found = tuple(typed(float, value) for value in values)
    if len(set(known)) < len(known) or len(known) != len(found):
        raise TypeError(f"column {name!r} names a level twice, or not the number of each")
    return TargetMean(name, known, found, None if missing is None else typed(float, missing))


def _log_odds(share: Any) -> Any:
    return np.log(share / (1 - share))
