"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Certificates over lists"


def section(figures: dict[str, Any]) -> str:
    by_place: dict[tuple[str, int, str], dict[str, dict[str, Any]]] = {}
    for cell in figures["cells"]:
        by_place.setdefault((cell["world"], cell["lists"], cell["bound"]), {})[cell["kind"]] = cell
    rows = [
        [
            f"{bound} ...", f"{lists}, {world}", f"{100 * both['false']['issued']:.1f} %",
            "yes" if both["false"]["met"] else "no", f"{100 * both['true']['issued']:.0f} %",
            f"{100 * both['true']['bentkus']:.0f} %",
        ]
        for (world, lists, bound), both in by_place.items()
    ]  # fmt: skip
    repeats = figures["cells"][0]["repeats"]
    told = (
        f"{repeats:,} repeats per cell, at 95 %. False: the bound lies 0.1 points beyond the truth. True: it lies 10 "
        "points on the safe side; beside it, how often the Hoeffding-Bentkus test certifies the same."
    )
    head = ["bound", "lists", "wrong when false", "at most 5 % + 2 SE", "issued when true", "Hoeffding-Bentkus"]
    return f"{told}\n\n{table(head, rows)}"


def worst(figures: dict[str, Any]) -> float:
    """The largest share of wrong certificates of all cells."""
    return max(cell["issued"] for cell in figures["cells"] if cell["kind"] == "false")
