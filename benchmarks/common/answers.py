"""Sentences that the answers of several pages share: their words follow the figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.common.words import share_error
from benchmarks.studies.default_study.verdict import sides

Row = dict[str, Any]


def side(found: dict[str, float], error: str = "standard_error") -> int:
    """1 if a gain is beyond two of its errors, -1 if a loss is, else 0; 0 too where one split leaves no error."""
    return 0 if math.isnan(found[error]) else sides(found, error)


def counted_sides(gains: Iterable[dict[str, float]], error: str = "standard_error") -> tuple[int, int]:
    """In how many cells there is a gain, and in how many a loss."""
    found = [side(one, error) for one in gains]
    return found.count(1), found.count(-1)


def beyond_both(found: dict[str, float]) -> str:
    """How sure a gain is: by which of its two errors it is beyond noise."""
    if side(found, "corrected_standard_error"):
        return "beyond two corrected standard errors"
    if side(found):
        return "beyond two plain standard errors, not beyond two corrected ones"
    return "within noise"


def ranged(values: Sequence[float], form: str = ".1f") -> str:
    """'30.2 to 100.0', or one number where all are alike."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"


def kept(cells: Sequence[Row], name: str = "broken", subject: str = "a certified bound", promised: float = 5.0) -> str:
    """Whether promises are kept: cells have a share that is broken, repeats, and whether noise explains it."""
    worst = max(cells, key=lambda cell: cell[name])
    value, error = share_error(worst[name], worst["repeats"])
    most = f"{value:.1f} ± {error:.1f} % of repeats in the worst of {len(cells)} cells"
    failed = sum(not cell["met"] for cell in cells)
    if failed:
        return (
            f"No: in {failed} of {len(cells)} cells {subject} is broken more often than the promised {promised:g} % "
            f"and noise allow, up to {most}."
        )
    if value > promised:
        return (
            f"Yes, within noise: {subject} is broken in {most}, where {promised:g} % is promised and two standard "
            "errors of noise are allowed."
        )
    return f"Yes: {subject} is broken in {most}, where {promised:g} % is promised."


def without(values: Sequence[float], what: str = "Without a certificate the same bound") -> str:
    """How often the bound is broken without a certificate."""
    return f"{what} is broken in {ranged([100 * value for value in values])} % of repeats."
