"""What the tables of all contests among peers share: a row a method, and what is said of their splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common.words import gain, table

Row = dict[str, Any]


def scope(figures: Row) -> str:
    seeds = figures["seeds"]
    return (
        f"`{figures['ask']}`, {len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}, of 60/20/20, at most "
        f"{figures['most training rows']:,} training rows."
    )


def rows_table(rows: list[Row], columns: dict[str, Callable[[Row], str]]) -> str:
    """The set, the method, its version and these columns; of one that did not run, its error."""
    lines = []
    for row in rows:
        named = [row["set"], row["peer"], row["version"]]
        if "error" in row:
            shown = ["did not run", f"`{row['error']}`", *[""] * (len(columns) - 2)]
        else:
            shown = [show(row) for show in columns.values()]
        lines.append([*named, *shown])
    return table(["set", "method", "version", *columns], lines)


def percent(figure: str) -> Callable[[Row], str]:
    return lambda row: f"{100 * row[figure]:.2f}"


def better_by(figure: str) -> Callable[[Row], str]:
    """By how much ours is better, of the row of ours nothing."""
    return lambda row: gain(row["better by"][figure]) if "better by" in row else ""


#: What it took.
COST: dict[str, Callable[[Row], str]] = {
    "models to choose from": lambda row: f"{row['candidates']:.0f}",
    "seconds": lambda row: f"{row['seconds']:.1f}",
    "MB": lambda row: f"{row['peak megabytes']:.0f}" if "peak megabytes" in row else "",
}


def clearly(rows: list[Row], figure: str, side: int) -> list[str]:
    """Than whom ours is better (1) or worse (-1), and on which set, by more than two corrected standard errors."""
    found = [(row, row["better by"][figure]) for row in rows if "better by" in row]
    return [
        f"{row['peer']} ({row['set']})"
        for row, by in found
        if side * by["mean"] > 2 * by["corrected_standard_error"]
    ]  # fmt: skip


def listed(names: list[str]) -> str:
    return "; ".join(names) if names else "none"


def pivoted(rows: list[Row], columns: dict[str, Callable[[Row], str]]) -> str:
    """The same in short: a row per method, and for each set these columns."""
    found = {(row["set"], row["peer"]): row for row in rows}
    sets = list(dict.fromkeys(name for name, _ in found))
    lines = []
    for peer in dict.fromkeys(peer for _, peer in found):
        own = [found.get((name, peer)) for name in sets]
        lines.append([peer, *(cell for row in own for cell in shown(row, columns))])
    heads = [f"{name.replace('_', ' ')}: {what}" for name in sets for what in columns]
    return table(["method", *heads], lines)


def shown(row: Row | None, columns: dict[str, Callable[[Row], str]]) -> list[str]:
    if row is None or "error" in row:
        return ["did not run" if row else "", *[""] * (len(columns) - 1)]
    return [show(row) for show in columns.values()]
