"""The page on several classes."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import ranged
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
    better, worse = sides_of(cells, "implicit shifts")
    tables = len({cell["table"] for cell in cells})
    return [Claim("classes: implicit shifts better in every cell", f"{better} better, {worse} worse of {len(cells)}",
                  bool(cells) and better == len(cells), figures["rival"],
                  f"{tables} tables, {max((cell['splits'] for cell in cells), default=0)} splits", True)]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """How implicit shifts and trees do beside the rival, with how often each holds its bound."""
    cells, rival = figures["cells"], figures["rival"]
    places = [(cell["table"], cell["ask"]) for cell in cells if cell["way"] == "implicit shifts"]
    if not places:
        return ""
    (better, worse), size = sides_of(cells, "implicit shifts"), len(places)
    trees = sides_of(cells, "trees")
    number = sum(cell["way"] == "trees" for cell in cells)
    word = "Yes" if better == size else "Not shown" if better == worse == 0 else "No" if worse > better else "In part"
    return (
        f"{word}: over {rival}, the rival, implicit shifts are better beyond two standard errors in {better} and worse "
        f"in {worse} of {size} cells; the gains are {gains_of(cells, 'implicit shifts')} points. On the same cells "
        f"implicit shifts hold their bound on test rows in {held_of(cells, 'implicit shifts', places)} % of splits and "
        f"the rival in {held_of(cells, rival, places)} %, so the two are not compared at the same rate. Trees by "
        f"`setpoint fit` are better in {trees[0]} and worse in {trees[1]} of {number} cells. Implicit "
        "shifts were tried for macro recall alone, in few splits: small gains or losses would not show here."
    )


def sides_of(cells: list[dict[str, Any]], way: str) -> tuple[int, int]:
    """In how many cells a way is better than the rival and in how many worse, by two plain standard errors."""
    own = [cell for cell in cells if cell["way"] == way]
    better, worse = (sum(side * cell["gain"] > 2 * cell["standard_error"] for cell in own) for side in (1, -1))
    return better, worse


def gains_of(cells: list[dict[str, Any]], way: str) -> str:
    return ranged([100 * cell["gain"] for cell in cells if cell["way"] == way], "+.1f")


def held_of(cells: list[dict[str, Any]], way: str, places: list[tuple[str, str]]) -> str:
    own = [cell for cell in cells if cell["way"] == way and (cell["table"], cell["ask"]) in places]
    return ranged([100 * cell["held"] for cell in own], ".0f")


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
