"""The page of this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict

TITLE = "Precision that is broken, kept and broken again"

QUESTION = "Are promises of precision kept where precision is broken, kept and broken again along the walk?"
THREATS = (
    "The worlds are ours, made to hurt the walk; the proof in the docs is for all of them.",
    "Most repeats end in a refusal, since hardly anything can be certified in such worlds.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    return []


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(f"{cell['world']}, {cell['n']:,}", *share_error(cell["broken"], cell["repeats"]))
        for cell in figures["cells"]
    ]
    return [Panel("Certified bounds that the truth breaks", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    first = figures["cells"][0]
    return (
        f"`{figures['ask']}` at {100 * figures['confidence']:.0f} %, {first['repeats']:,} repeats, in worlds made to "
        "hurt a walk that starts at a fixed number of flagged samples. All repeats are counted; at most "
        f"{share(first['limit'])} may be broken, noise included."
    )


def section(figures: dict[str, Any]) -> str:
    """A row per world: both sizes of the sample."""
    sizes = sorted({cell["n"] for cell in figures["cells"]})
    cells = {(cell["world"], cell["n"]): cell for cell in figures["cells"]}
    rows = []
    for world in dict.fromkeys(cell["world"] for cell in figures["cells"]):
        own = [cells[world, n] for n in sizes]
        shares = [share(cell[what]) for cell in own for what in ("broken", "refused")]
        rows.append([world, *shares, verdict(all(cell["met"] for cell in own))])
    return table(["world", *(f"{what}, n = {n:,}" for n in sizes for what in ("broken", "refused")), "met"], rows)
