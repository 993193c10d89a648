"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Linear programs: certified, or named"


def section(figures: dict[str, Any]) -> str:
    rows = []
    for group in ("families", "beyond"):
        for name, found in figures[group].items():
            outcomes = ", ".join(f"{count} {outcome.lower()}" for outcome, count in found["outcomes"].items())
            median, most = found["steps, median and most"]
            wrong = str(found["wrong silently"])
            rows.append([name, str(found["programs"]), outcomes, wrong, f"{median:g}", f"{most:g}"])
    basis = [
        [name, f"{found['share of the optimum held']:.0%}", found["reduced program"].lower(),
         found["full program after fallback"].lower()]
        for name, found in figures["reduction"].items()
    ]  # fmt: skip
    header = ["programs", "number", "outcomes", "wrong silently", "steps, median", "most"]
    reduced = table(["reduction to a basis", "of the optimum held", "reduced program", "after the fallback"], basis)
    return f"{table(header, rows)}\n\n{reduced}"
