"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Linear programs: closed forms and gradients"


def section(figures: dict[str, Any]) -> str:
    closed = [
        [name, str(found["cases"]), f"{found['worst relative error of the value']:.0e}",
         f"{found['worst relative error of the gradient']:.0e}"]
        for name, found in figures["closed forms against HiGHS"].items()
    ]  # fmt: skip
    exact = figures["F-score batches of 64"]["to the exact gradient"]
    cosines = [[name, f"{found['mean']:.6f}", f"{found['least']:.6f}"] for name, found in exact.items()]
    return "\n\n".join(
        [
            table(["closed form against HiGHS", "cases", "worst error of the value", "of the gradient"], closed),
            table(["cosine to the exact gradient, F-score, 64 samples", "mean", "least"], cosines),
        ]
    )
