"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "MQ2008: precision at 5, linear models, official fold 1"

QUESTION = "Does training through the first k of a list raise precision at 5 on MQ2008?"
THREATS = ("One fold; 156 queries.",)


def gaps(figures: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    return [(f"{study}, {queries}", found[queries]["difference over queries"])
            for study, found in figures["studies"].items()
            for queries in ("all queries", "queries with relevant documents")]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    return "Official fold 1, five seeds; rate, decay and epoch chosen on validation queries; differences over queries."


def claims(figures: dict[str, Any]) -> list[Claim]:
    gains = gaps(figures)
    better = sum(gain["mean"] > 2 * gain["standard_error"] for _, gain in gains)
    return [Claim("lists: implicit top-k is better", f"better in {better} of {len(gains)} comparisons", better > 0,
                  "linear cross-entropy", "MQ2008")]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [Panel("Less linear cross-entropy", "points of the metric", [Line.of(*one) for one in gaps(figures)])]


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
