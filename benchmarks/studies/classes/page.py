"""The section of docs/measured.md on several classes."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, table, wide

TITLE = "Several classes"

QUESTION = "With several classes, do implicit shifts beat cross-entropy with tuned shifts on real tables?"
THREATS = (
    "Few splits, which overlap; errors are plain ones.",
    "A way that breaks its bound more often may show a gain for that reason alone; see the column *held*.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    cells = [cell for cell in figures["cells"] if cell["way"] == "implicit shifts"]
    better, worse = (sum(side * cell["gain"] > 2 * cell["standard_error"] for cell in cells) for side in (1, -1))
    tables = len({cell["table"] for cell in cells})
    return [Claim("classes: implicit shifts better in every cell", f"{better} better, {worse} worse of {len(cells)}",
                  bool(cells) and better == len(cells), figures["rival"],
                  f"{tables} tables, {max((cell['splits'] for cell in cells), default=0)} splits", True)]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(
            f"{cell['table']}, {cell['way']} (held {share(cell['held'])})",
            100 * cell["gain"],
            100 * cell["standard_error"],
        )
        for cell in figures["cells"]
        if cell["way"] != figures["rival"]
    ]
    return [Panel(f"Gain over {figures['rival']}", "points", lines)]


def design(figures: dict[str, Any]) -> str:
    return (
        "On test rows, at the shifts set on calibration rows without a certificate; *held* is the share of splits in "
        "which the bound held on the test rows. The gain is over a linear model by cross-entropy with tuned shifts, in "
        "points, paired over fresh splits, ± one plain standard error; above 0 is better. A way that breaks its bound "
        "more often may show a gain for that reason alone."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [cell["table"], f"`{cell['ask']}`", cell["way"], str(cell["splits"]), share(cell["mean"]), share(cell["held"]),
         "" if cell["way"] == figures["rival"] else f"{100 * cell['gain']:+.2f} ± {100 * cell['standard_error']:.2f}"]
        for cell in figures["cells"]
    ]  # fmt: skip
    cells = {(cell["table"], cell["ask"], cell["way"]): row for cell, row in zip(figures["cells"], rows)}
    ways = [way for way in dict.fromkeys(cell["way"] for cell in figures["cells"]) if way != figures["rival"]]
    brief = []
    for name, ask in dict.fromkeys(place[:2] for place in cells):
        own = [cells.get((name, ask, way)) for way in ways]
        brief.append([name, f"`{ask}`", cells[name, ask, figures["rival"]][5],
                      *(f"{row[6]}, {row[5]}" if row else "" for row in own)])  # fmt: skip
    head = ["table", "ask", f"{figures['rival']}: held", *(f"{way}: gain, held" for way in ways)]
    full = wide("cells", table(["table", "ask", "way", "splits", "objective", "held", "gain"], rows))
    return f"{table(head, brief)}\n\n{full}"
