"""How a paired difference is written on the page of evidence."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.tables import table

Row = dict[str, Any]
ERRORS = {"standard_error": "plain", "corrected_standard_error": "corrected"}


def gain(found: dict[str, float], scale: float = 100) -> str:
    """Mean, plain error and, in brackets, the one corrected for overlapping splits."""
    errors = [scale * found[error] for error in ERRORS]
    return f"{scale * found['mean']:+.2f} ± {errors[0]:.2f} ({errors[1]:.2f})"


def changed(mean: float, change: dict[str, float] | None) -> str:
    """A mean in percent and, after it, its paired change in points."""
    if change is None:
        return f"{mean:.1f}"
    if math.isnan(change["standard_error"]):
        return f"{mean:.1f}, {change['mean']:+.1f}"
    errors = [change[error] for error in ERRORS]
    return f"{mean:.1f}, {change['mean']:+.1f} ± {errors[0]:.1f} ({errors[1]:.1f})"


def repeated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of more than one seed: of the others nothing can be said."""
    return [row for row in rows if len(row["seeds"]) > 1]


def beyond(rows: list[dict[str, Any]], column: str, side: int, error: str = "standard_error") -> int:
    """In how many rows a column has changed to one side by more than two standard errors."""
    changes = [row[column]["minus alone"] for row in rows]
    return sum(side * change["mean"] > 2 * change[error] for change in changes)


def ratios(header: list[str], rows: list[tuple[list[str], Row, Row]], columns: tuple[str, ...]) -> str:
    """A table of labels, and of each row's figures as ratios to those of cross-entropy, ours and published."""
    kinds = [(column, kind) for kind in ("mean", "published") for column in columns]
    lines = [
        [*labels, *(f"{row[c][kind] / plain[c][kind]:.3f}" if kind in row[c] else "" for c, kind in kinds)]
        for labels, row, plain in rows
    ]
    told = "Ratios to cross-entropy alone, in the same run and as published:"
    return f"{told}\n\n{table([*header, *columns, *(f'{c}, published' for c in columns)], lines)}"
