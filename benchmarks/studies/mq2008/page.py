"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "MQ2008: precision at 5, linear models, official fold 1"


def section(figures: dict[str, Any]) -> str:
    rows = []
    for study, found in figures["studies"].items():
        for queries in ("all queries", "queries with relevant documents"):
            cell = found[queries]
            gap = cell["difference over queries"]
            rows.append(
                [
                    study,
                    f"{queries} ({cell['queries']})",
                    f"{cell['mean of cross-entropy']:.4f}",
                    f"{cell['mean of implicit top-k']:.4f}",
                    f"{gap['mean']:+.4f} ± {gap['standard_error']:.4f}",
                ]
            )
    return table(["seeds vary", "queries", "cross-entropy", "implicit top-k", "paired difference"], rows)
