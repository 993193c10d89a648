"""Slices of rows, by the values of one column, in which a decision errs more often than elsewhere, beyond noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from setpoint.data.frame import Column, levels
from setpoint.problem.evidence import interval

#: A slice needs so many rows of the class that it is judged on; its error is told if it is beyond this level, over all
#: slices together.
LEAST_ROWS, LEVEL, MOST_SLICES = 20, 0.05, 8
#: Columns of words with more values than this are not cut into slices; columns of numbers are cut in four.
MOST_LEVELS, BINS = 30, 4


@dataclass(frozen=True)
class Slice:
    """Test rows of one value or range of a column, in which an error is more frequent than elsewhere.

    `error` is "missed" (of positives) or "false alarms" (of negatives); `p_value` is adjusted for all slices.
    """

    column: str
    value: str
    error: str
    wrong: int
    rows: int
    elsewhere: float
    p_value: float

    @property
    def ends(self) -> tuple[float, float]:
        """The exact 95 % interval of the error in the slice."""
        low, high = interval(self.wrong, self.rows, 0.95)
        return float(low), float(high)


def worst_slices(
    columns: Sequence[Column], labels: NDArray[np.bool_], flagged: NDArray[np.bool_]
) -> tuple[list[Slice], int]:
    """The slices that err more often than all other rows, by exact tests under Holm's correction for all slices.

    Args:
        columns: The columns to cut: words by value, numbers in quarters.
        labels: Whether each row is positive.
        flagged: Whether each row is flagged.

    Returns:
        At most eight slices, the surest first, and the number of tests.

    Example:
        >>> import numpy as np, polars as pl
        >>> from setpoint.run.slices import worst_slices
        >>> region, labels = pl.Series("region", ["a", "b"] * 100), np.ones(200, bool)
        >>> found, tested = worst_slices([region], labels, region.to_numpy() == "a")
        >>> [(one.value, one.error, one.wrong, one.rows) for one in found], tested
        ([('b', 'missed', 100, 100)], 2)
    """
    cut = [(column.name, value, rows) for column in columns for value, rows in _cut(column)]
    tested: list[Slice] = []
    for error, judged, wrong in (("missed", labels, ~flagged), ("false alarms", ~labels, flagged)):
        everywhere, errors = int(judged.sum()), int((judged & wrong).sum())
        for name, value, rows in cut:
            size = int((rows & judged).sum())
            if size < LEAST_ROWS or everywhere - size < LEAST_ROWS:
                continue
            own = int((rows & judged & wrong).sum())
            p = _chance(own, errors, size, everywhere)
            tested.append(Slice(name, value, error, own, size, (errors - own) / (everywhere - size), p))
    tested.sort(key=lambda one: one.p_value)
    found: list[Slice] = []
    for place, one in enumerate(tested):
        adjusted = max(min(1.0, one.p_value * (len(tested) - place)), found[-1].p_value if found else 0.0)
        if adjusted > LEVEL:
            break
        found.append(replace(one, p_value=adjusted))
    return found[:MOST_SLICES], len(tested)


def _chance(own: int, errors: int, size: int, everywhere: int) -> float:
    """The chance that `size` rows drawn out of all hold `own` or more of the errors.

    By logarithms of binomial coefficients: scipy.stats takes as long to import as many a fit takes.
    """
    if own == 0:
        return 1.0

    def ways(total: Any, taken: Any) -> Any:
        log_factorial = scipy.special.gammaln
        return log_factorial(total + 1) - log_factorial(taken + 1) - log_factorial(total - taken + 1)

    drawn = np.arange(own, min(errors, size) + 1)
    chances = ways(errors, drawn) + ways(everywhere - errors, size - drawn) - ways(everywhere, size)
    return min(1.0, float(np.exp(chances).sum()))


def _cut(column: Column) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The rows of each value of a column, or of each quarter of its numbers, and those without a value."""
    absent = column.is_null().to_numpy()
    if column.dtype.is_numeric() and column.n_unique() > MOST_LEVELS // 3:
        values = column.cast(float).fill_null(float("nan")).to_numpy()
        absent = absent | ~np.isfinite(values)
        known = values[~absent]
        ends = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)) if len(known) else known)
        for place, (low, high) in enumerate(pairwise(ends)):
            inside = (values >= low if not place else values > low) & (values <= high)
            yield f"{low:.4g} to {high:.4g}", inside & ~absent
    elif column.n_unique() <= MOST_LEVELS:
        names = levels(column).fill_null("").to_numpy().astype(str)
        for name in np.unique(names[~absent]):
            yield str(name), (names == name) & ~absent
    if absent.any():
        yield "(missing)", absent
