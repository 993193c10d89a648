"""The section of docs/measured.md on rows that depend on each other or come from another population."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import Claims, share, table, verdict

TITLE = "Clusters, known shifts and designs"


def claims(figures: dict[str, Any]) -> Claims:
    cells = [cell for cell in figures["cells"] if cell["world"] != "rare positives"]
    told, naive = (max(cell[way]["broken"] for cell in cells) for way in ("told", "naive"))
    error = 100 * (figures["confidence"] * (1 - figures["confidence"]) / cells[0]["repeats"]) ** 0.5
    claim = "promises over clusters and under known weights are broken as rarely as they say"
    effect = f"{100 * told:.1f} ± {error:.1f} % in the worst of {len(cells)} worlds; without being told {share(naive)}"
    return [(claim, effect, all(cell["met"] for cell in figures["cells"]))]


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
    first = figures["cells"][0]
    note = (
        f"Certificates at {100 * figures['confidence']:.0f} % over {first['repeats']:,} repeats: `told` with "
        "`clusters=` or `sp.PopulationWeights`, `naive` without. At most "
        f"{share(first['limit'])} of all repeats may be broken, noise included. Rows are independent in the last world."
    )
    return f"{note}\n\n{table(head, rows)}"
