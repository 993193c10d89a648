"""The page on rows that depend on each other or come from another population."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import kept, ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict

TITLE = "Clusters, known shifts and designs"

QUESTION = "Are promises kept where rows come in clusters, from another population, or from a designed sample?"
THREATS = (
    "The worlds are ours; one of them was turned round after its naive certificate had not broken.",
    "The weights of the population are known exactly here.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    cells = [cell for cell in figures["cells"] if cell["world"] != "rare positives"]
    worst, naive = (max(cells, key=lambda cell: cell[way]["broken"]) for way in ("told", "naive"))
    found = share_error(worst["told"]["broken"], worst["repeats"])
    effect = f"{found[0]:.1f} ± {found[1]:.1f} % in the worst; if nobody says so {share(naive['naive']['broken'])}"
    on = f"{len(cells)} worlds, {worst['repeats']:,} repeats"
    return [
        Claim(
            "promises over clusters, shifts and designs are kept",
            effect,
            all(cell["met"] for cell in figures["cells"]),
            "the promised 5 %",
            on,
            True,
            None,
            found,
        )
    ]


def answer(figures: dict[str, Any]) -> str:
    """Whether the promises are kept when the certificate is told, when it is not, and the price."""
    cells = figures["cells"]
    told = [{**cell, "broken": cell["told"]["broken"]} for cell in cells]
    naive = [cell for cell in cells if "naive" in cell]
    costs = sum(worse_by(cell) > 0 for cell in naive)
    return " ".join(
        [
            kept(told).replace(" cells", " worlds"),
            f"If nobody tells the certificate of clusters or weights, the bound is broken in "
            f"{ranged([100 * cell['naive']['broken'] for cell in naive])} % of repeats in the {len(naive)} worlds "
            "where there is something to tell.",
            f"The price is a worse objective in {costs} of these {len(naive)} worlds.",
            "Not shown: weights that are estimated, real data, and a rival; no other library is run here.",
        ]
    )


def worse_by(cell: dict[str, Any]) -> float:
    """By how much the objective is worse when the certificate is told."""
    lost = cell["told"]["objective"] - cell["naive"]["objective"]
    return float(lost if cell["ask"].startswith("minimize") else -lost)


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(f"{cell['world']}, {words}", *share_error(cell[way]["broken"], cell["repeats"]))
        for cell in figures["cells"]
        for way, words in (("told", "told"), ("naive", "not told"))
        if way in cell
    ]
    return [Panel("Certified bounds that the truth breaks", "percent of all repeats", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    first = figures["cells"][0]
    return (
        f"Certificates at {100 * figures['confidence']:.0f} % over {first['repeats']:,} repeats: `told` with "
        "`clusters=` or `sp.PopulationWeights`, `naive` without. At most "
        f"{share(first['limit'])} of all repeats may be broken, noise included. Rows are independent in the last world."
    )


def section(figures: dict[str, Any]) -> str:
    head = ["world", "ask", "broken: told", "naive", "refused: told", "naive", "objective: told", "naive", "met"]
    rows = []
    for cell in figures["cells"]:
        both = [
            share(cell[way][name]) if way in cell else ""
            for name in ("broken", "refused", "objective")
            for way in ("told", "naive")
        ]
        rows.append([cell["world"], cell["ask"], *both, verdict(cell["met"])])
    return table(head, rows)
