"""The tables of the page on linear programs: the claims of the paper in short, and all rows."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import changed, table, wide
from benchmarks.common.words import gain as written
from benchmarks.studies.paper_programs.published import TABLE_2

#: Table, figure and number of the paper's tables, and the shares of positives at which the paper claims a gain and at
#: which ours was run: in Table 1 its program loses at 50 %.
CLAIMED = (("halves", "AUC", 1, (91,)), ("groups", "AUC-mu", 3, (90, 0)), ("f-score", "F at zero", 4, (50,)))
NUMBERS = {name: number for name, _, number, _ in CLAIMED}
#: Our own form, which the paper does not have.
OWN_FORM = "program, margin 0.4"
HEADER = ["method", "seeds", "ours, and over cross-entropy", "ratio to cross-entropy", "published", "ratio"]
Row = dict[str, Any]


def all_of_program(rows: list[Row]) -> list[Row]:
    """The rows beside the paper's program of all its tables."""
    return [row for name, figure, *_ in CLAIMED for row in of_program(rows, name, figure)]


def main_table(rows: list[Row], tuned: list[Row]) -> list[str]:
    """A row per cell and form of the paper's program: published, at the rate of the plan, and with rates chosen."""
    places = {place(row): row for row in [*rows, *tuned]}
    by_rate = [{place(row): row for row in own} for own in (rows, tuned)]
    lines = []
    for row in all_of_program(list(places.values())):
        own = [here.get(place(row)) for here in by_rate]
        plain, weighted = ({**row, "method": f"{name}cross-entropy"} for name in ("", "weighted "))
        level = f"{row['level']} % {'dropped' if row['table'] == 'groups' else 'positive'}"
        told = row["published"]
        alone = by_rate[0].get(place(plain))
        heavy = by_rate[0].get(place(weighted))
        lines.append(
            [f"Table {NUMBERS[row['table']]}: {row['figure']}, {level}", row["method"],
             f"{told['value'] - told['minus cross-entropy']:.1f}, {told['minus cross-entropy']:+.1f}",
             f"{alone['value']['mean']:.1f}" if alone else "",
             *(written(one["minus cross-entropy"], 1) if one else "" for one in (*own, heavy))]
        )  # fmt: skip
    if not lines:
        return []
    head = ["cell", "program", "published: cross-entropy, program", "cross-entropy", "program", "rates chosen",
            "weighted cross-entropy"]  # fmt: skip
    return [
        "Cross-entropy in percent, and gains over it in points, in brackets the corrected error; *rates chosen*: over "
        "cross-entropy whose rate is chosen too:",
        table(head, lines),
    ]


def place(row: Row) -> tuple[Any, ...]:
    return row["table"], row["level"], row["figure"], row["method"]


def of_program(rows: list[Row], name: str, figure: str, levels: tuple[int, ...] = ()) -> list[Row]:
    """The rows of a table that stand beside the paper's program, as published; at some of the levels, or at all."""
    here = [row for row in rows if row["table"] == name and row["figure"] == figure and row["method"] != OWN_FORM]
    there = [row for row in here if not levels or row["level"] in levels]
    return [row for row in there if row.get("published", {}).get("column") == "program"]


def of_tables(rows: list[Row]) -> list[str]:
    """A part for each of the paper's tables that has rows."""
    titles = {
        "halves": ("Table 1, AUC of halves", "positives"),
        "groups": ("Table 3, AUC of three groups", "dropped"),
        "f-score": ("Table 4, F-score of halves", "positives"),
    }
    return [part(*told, [row for row in rows if row["table"] == name]) for name, told in titles.items()]


def part(title: str, level: str, rows: list[Row]) -> str:
    if not rows:
        return ""
    several = len({row["figure"] for row in rows}) > 1
    lines = []
    for row in rows:
        told = row.get("published")
        beside = ["", ""]
        if told and row["method"] != OWN_FORM:
            over = "" if told["column"] == "cross-entropy" else f", {told['minus cross-entropy']:+.1f}"
            beside = [f"{told['column']} {told['value']:.1f}{over}", f"{told['ratio to cross-entropy']:.3f}"]
        plain = row["method"] == "cross-entropy"
        shown = changed(row["value"]["mean"], None if plain else row["minus cross-entropy"])
        cells = [f"{row['level']} %", *[row["figure"]] * several, row["method"], str(len(row["seeds"]))]
        lines.append([*cells, shown, f"{row['ratio to cross-entropy']:.3f}", *beside])
    return wide(
        title.split(",", maxsplit=1)[0].lower().replace(" ", "-"), table([level, *["figure"] * several, *HEADER], lines)
    )


def margins(rows: list[Row]) -> str:
    """Table 2: the AUC by margin, hinge and ramp, beside that of the paper on another set."""
    found = {(row["level"], row["method"]): row for row in rows}
    levels = [level for level in (91, 50) if (level, "hinge, margin 0.1") in found]
    lines = []
    for margin in (1.0, 0.1, 0.01, 0.001):
        for form in ("hinge", "ramp"):
            cells = [found.get((level, f"{form}, margin {margin:g}")) for level in levels]
            if all(cells):
                shown = [changed(row["value"]["mean"], row["minus cross-entropy"]) for row in cells if row]
                told = [f"{TABLE_2[margin][level]:.1f}" if margin in TABLE_2 else "" for level in levels]
                lines.append([f"{margin:g}", form, *shown, *told])
    if not lines:
        return ""
    header = ["margin", "form", *(f"ours, {level} % positive" for level in levels)]
    header += [f"published, {level} %, Cat&Dog" for level in levels]
    return wide("table-2", table(header, lines))
