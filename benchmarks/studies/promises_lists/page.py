"""The page on certificates over lists."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.answers import kept, ranged
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


def answer(figures: dict[str, Any]) -> str:
    """Whether false bounds are certified too often, and how often true ones are, beside Hoeffding-Bentkus."""
    told = [kept(false_cells(figures), "issued", "a bound that lies 0.1 points beyond the truth")
            .replace(" is broken in", " is certified in").replace(" is broken more", " is certified more")]  # fmt: skip
    true = [cell for cell in figures["cells"] if cell["kind"] == "true" and "bentkus" in cell]
    if true:
        more, less = (sum(side * (cell["issued"] - cell["bentkus"]) > 0 for cell in true) for side in (1, -1))
        ours, theirs = (100 * statistics.mean(cell[name] for cell in true) for name in ("issued", "bentkus"))
        least = min(true, key=lambda cell: cell["lists"])["lists"]
        few = [100 * cell["issued"] for cell in true if cell["lists"] == least]
        told += [
            f"A bound that holds by 10 points is certified in {ours:.0f} % of repeats, mean of {len(true)} cells; the "
            f"Hoeffding-Bentkus test, the rival, certifies it in {theirs:.0f} %, and ours certifies it more often in "
            f"{more} cells, less often in {less}.",
            f"With {least} lists it is certified in {ranged(few, '.0f')} % of repeats.",
        ]
    return " ".join([*told, "Not shown: real lists, and lists that depend on each other."])


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
    return f"{by_bound(figures)}\n\n{wide('cells', table(head, rows))}"


def by_bound(figures: dict[str, Any]) -> str:
    """A row per number of lists: false bounds that are certified, and true ones, ours and by Hoeffding-Bentkus."""
    cells, rows = figures["cells"], []
    for lists in sorted({cell["lists"] for cell in cells}):
        false, true = ([cell for cell in cells if (cell["lists"], cell["kind"]) == (lists, kind)]
                       for kind in ("false", "true"))  # fmt: skip
        shown = [(false, "issued", ".1f"), (true, "issued", ".0f"), (true, "bentkus", ".0f")]
        rows.append([f"{lists:,}", str(len(false)), *(f"{ranged([100 * cell[name] for cell in own], form)} %"
                                                      for own, name, form in shown)])  # fmt: skip
    head = ["lists", "cells", "false bounds certified", "true bounds certified", "true bounds, Hoeffding-Bentkus"]
    return f"From the least to the most of all cells:\n\n{table(head, rows)}"


def worst(figures: dict[str, Any]) -> float:
    """The largest share of wrong certificates of all cells."""
    return max(cell["issued"] for cell in figures["cells"] if cell["kind"] == "false")
