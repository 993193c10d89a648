"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Asks about lists on MQ2008"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [
            f"`{ask}`",
            name,
            f"{row['mean']:.4f}",
            f"{row['difference']:+.4f} ± {row['standard_error']:.4f}" if row["standard_error"] else "",
            f"{row['processor_seconds']:.1f}",
        ]
        for ask, found in figures["asks"].items()
        for name, row in found["methods"].items()
    ]
    queries = next(iter(figures["asks"].values()))["queries"]
    told = (
        f"The mean over {queries} queries, each judged by a model that was not trained on it, and the paired "
        "difference from linear cross-entropy with its standard error over queries."
    )
    head = ["ask", "method", "mean over lists", "difference", "processor seconds"]
    return f"{told}\n\n{table(head, rows)}"
