"""The section of docs/measured.md on walks of precision."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import share, table, verdict

TITLE = "Precision that is broken, kept and broken again"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [cell["world"], f"{cell['n']:,}", share(cell["broken"]), share(cell["refused"]), verdict(cell["met"])]
        for cell in figures["cells"]
    ]
    first = figures["cells"][0]
    note = (
        f"`{figures['ask']}` at {100 * figures['confidence']:.0f} %, {first['repeats']:,} repeats, in worlds made to "
        "hurt a walk that starts at a fixed number of flagged samples. The columns count all repeats; at most "
        f"{share(first['limit'])} may be broken, noise included."
    )
    return f"{note}\n\n{table(['world', 'n', 'broken', 'refused', 'met'], rows)}"
