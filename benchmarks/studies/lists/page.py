"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Asks about lists on MQ2008"

QUESTION = "Is any method better than linear cross-entropy for asks about the first k on MQ2008?"
THREATS = ("One data set; its screening script was not kept.", "LambdaRank and trees are LightGBM's, untuned.")


def gaps(figures: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    return [(f"{ask}: {name}", {"mean": row["difference"], "standard_error": row["standard_error"]})
            for ask, found in figures["asks"].items() for name, row in found["methods"].items()
            if row["standard_error"]]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    queries = next(iter(figures["asks"].values()))["queries"]
    return (
        f"The mean over {queries} queries, each judged by a model that was not trained on it, and the paired "
        "difference from linear cross-entropy with its standard error over queries."
    )


def claims(figures: dict[str, Any]) -> list[Claim]:
    gains = gaps(figures)
    better = sum(gain["mean"] > 2 * gain["standard_error"] for _, gain in gains)
    return [Claim("lists: any method is better", f"better in {better} of {len(gains)} comparisons", better > 0,
                  "linear cross-entropy", "MQ2008")]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [Panel("Less linear cross-entropy", "points of the metric", [Line.of(*one) for one in gaps(figures)])]


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
    head = ["ask", "method", "mean over lists", "difference", "processor seconds"]
    return table(head, rows)
