"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share_error, table, wide

TITLE = "Certificates over lists"

QUESTION = "Are promises about lists kept: hits, precision and recall in the first k?"
THREATS = (
    "Lists are independent draws of three worlds of ours.",
    "With few lists hardly anything can be certified; the column of issued certificates says how often.",
)


def false_cells(figures: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in figures["cells"] if cell["kind"] == "false"]


def claims(figures: dict[str, Any]) -> list[Claim]:
    found = false_cells(figures)
    worst = max(found, key=lambda cell: cell["issued"])
    broken = share_error(worst["issued"], worst["repeats"])
    return [Claim("promises over lists are kept", f"{broken[0]:.1f} ± {broken[1]:.1f} % in the worst cell",
                  all(cell["met"] for cell in found), "the promised 5 %",
                  f"{len(found)} cells, {worst['repeats']:,} repeats", True, None, broken)]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line(f"{cell['bound']} ..., {cell['lists']} lists, {cell['world']}",
                  *share_error(cell["issued"], cell["repeats"])) for cell in false_cells(figures)]  # fmt: skip
    return [Panel("Certificates of bounds that do not hold", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    return (
        f"{figures['cells'][0]['repeats']:,} repeats per cell, at 95 %. False: the bound lies 0.1 points beyond the "
        "truth. True: it lies 10 points on the safe side; beside it, how often the Hoeffding-Bentkus test certifies "
        "the same."
    )


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
    head = ["bound", "lists", "wrong when false", "at most 5 % + 2 SE", "issued when true", "Hoeffding-Bentkus"]
    return wide("cells", table(head, rows))


def worst(figures: dict[str, Any]) -> float:
    """The largest share of wrong certificates of all cells."""
    return max(cell["issued"] for cell in figures["cells"] if cell["kind"] == "false")
