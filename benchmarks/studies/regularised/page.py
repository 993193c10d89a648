"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Linear models on a noisy and a wide table"


def section(figures: dict[str, Any]) -> str:
    parts = []
    for name, found in figures.items():
        rows = [
            [method, *(f"{100 * own[figure]:.1f}" for figure in ("test", "train")), f"{own['seconds']:.1f}",
             f"{100 * own['gain of default']['mean']:+.1f} ± {100 * own['gain of default']['standard_error']:.1f}"]
            for method, own in found["methods"].items()
        ]  # fmt: skip
        head = ["method", "test, %", "train, %", "seconds", "gain of the default"]
        parts.append(f"The {name} table, `{found['ask']}`, {found['splits']} splits:\n\n{table(head, rows)}")
    return "\n\n".join(parts)
