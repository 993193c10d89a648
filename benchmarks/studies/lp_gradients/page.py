"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Linear programs: closed forms and gradients"

QUESTION = "Do closed forms and gradients of the programs equal those of an independent solver?"
THREATS = ("Random scores; batches of 64.",)


def claims(figures: dict[str, Any]) -> list[Claim]:
    found = figures["closed forms against HiGHS"].values()
    worst = max(one["worst relative error of the value"] for one in found)
    return [
        Claim(
            "linear programs: closed forms equal HiGHS",
            f"worst relative error {worst:.0e}",
            worst < 1e-9,
            "HiGHS",
            f"{len(found)} programs, 200 cases each",
        )
    ]


def forest(figures: dict[str, Any]) -> list[Panel]:
    return []


def design(figures: dict[str, Any]) -> str:
    return "Values and gradients of the closed forms against HiGHS; gradients of Newton's method against the exact one."


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
