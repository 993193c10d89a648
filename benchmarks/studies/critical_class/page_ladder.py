"""Why BCE alone was below the published figure: one change at a time."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table
from benchmarks.studies.critical_class.ladder import FIRST, ONE_DRAW, PAIR, TOGETHER


def rungs(ladder: dict[str, Any]) -> str:
    rows = [
        [row["change"], str(row["runs"]), f"{row['AUC']:.1f}", f"{row['first rung']:.1f}",
         f"{row['AUC'] - row['first rung']:+.1f}", f"{row['validation AUC']:.1f}", f"{row['together']['AUC']:.1f}",
         f"{beside(row, ladder):.1f}"]
        for row in ladder["rows"]
    ]  # fmt: skip
    numbers = "; ".join(f"{count}: {area:.1f}" for count, area in ladder["by number"].items())
    return "\n\n".join(
        [
            "## The level of BCE alone, one change at a time",
            f"{why_lower(ladder)} Every change at 1:100 (`python -m benchmarks.studies.critical_class.ladder`) beside "
            "the same runs of the first row; *together*: the AUC of the mean logit, as published:",
            table(["change", "models", "AUC of one", "first row", "difference", "validation", "together",
                   "first row together"], rows),
            "Two of the ten seeds at a rate of 0.001 picked this change out; the other eight were added after it. AUC "
            f"by the number of models whose logits are averaged: {numbers}.{of_one_draw(ladder)}",
        ]
    )  # fmt: skip


def beside(row: dict[str, Any], ladder: dict[str, Any]) -> float:
    """The first row's models together: as many of them, also where the change has one draw and so one such model."""
    if row["change"] == ONE_DRAW:
        return float(ladder["by number"][str(row["runs"])])
    return float(row["first rung together"]["AUC"])


def of_one_draw(ladder: dict[str, Any]) -> str:
    """Whether models together help by their starts or by their other rare images; a space before it."""
    own = [row for row in ladder["rows"] if row["change"] == ONE_DRAW]
    return "".join(
        f" *{ONE_DRAW[0].upper()}{ONE_DRAW[1:]}* have {row['together']['AUC']:.1f} together, as many models that draw "
        f"their rare images anew {beside(row, ladder):.1f}; the first of either, alone, has {row['first rung']:.1f}."
        for row in own
    )


def why_lower(ladder: dict[str, Any]) -> str:
    """Which changes move BCE alone towards the published figure."""
    first, best = next(row for row in ladder["rows"] if row["change"] == FIRST), largest(ladder)
    others = [row for row in ladder["rows"] if PAIR in row["change"]]
    pairs, seeds = [row["AUC"] for row in others], some([row["runs"] for row in others])
    return (
        f"BCE alone has an AUC of {first['AUC']:.1f} by one net and {first['together']['AUC']:.1f} by "
        f"{first['runs']} together, published {ladder['published AUC']:.1f}. The largest single change is "
        f"*{best['change']}*: {best['AUC'] - best['first rung']:+.1f}, to {best['AUC']:.1f} by one and "
        f"{best['together']['AUC']:.1f} by {best['runs']} together. The pair, which the paper does not name, may "
        f"matter more: {len(pairs)} others have {min(pairs):.1f} to {max(pairs):.1f} by one net, {seeds} run each."
    )


def largest(ladder: dict[str, Any]) -> dict[str, Any]:
    """The single change of net or plan that raises the AUC of one net most."""
    single = [row for row in ladder["rows"] if PAIR not in row["change"] and row["change"] not in (FIRST, TOGETHER)]
    return max(single, key=lambda row: row["AUC"] - row["first rung"])


def some(counts: list[int]) -> str:
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])
