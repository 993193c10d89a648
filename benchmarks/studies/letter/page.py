"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table

TITLE = "Letter: mean precision over recall 95 % to 100 %"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{100 * mean:.2f}", "" if name not in figures["default minus"] else
         f"{100 * figures['default minus'][name]['mean']:+.2f} ± "
         f"{100 * figures['default minus'][name]['standard_error']:.2f}"]
        for name, mean in figures["means"].items()
    ]  # fmt: skip
    ratios = "; ".join(f"default / {name}: {r['ratio']:.3f}" for name, r in figures["ratios"].items())
    return table(["method", "area x 100", "default minus it"], rows) + f"\n\n{ratios}."
