"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Letter: mean precision over recall 95 % to 100 %"

QUESTION = "How do linear models compare on the letter U, for precision where recall is 95 % or more?"
THREATS = ("One set, ten splits, which overlap.", "The set on which implicit thresholds look best of the paper's five.")


def claims(figures: dict[str, Any]) -> list[Claim]:
    rival = figures["default minus"]["best of 21 weights"]
    effect = f"{100 * rival['mean']:+.2f} ± {100 * rival['standard_error']:.2f}"
    return [Claim("Letter: the default above the best weight", effect, rival["mean"] > 2 * rival["standard_error"],
                  "best of 21 weights", f"1 set, {len(figures['splits'])} splits")]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line.of(name, gain) for name, gain in figures["default minus"].items()]
    return [Panel("The default less", "points of partial area", lines)]


def design(figures: dict[str, Any]) -> str:
    splits = figures["splits"]
    return f"Mean precision over recall 95 % to 100 %, in percent; splits {splits[0]} to {splits[-1]}; linear models."


def section(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{100 * mean:.2f}", "" if name not in figures["default minus"] else
         f"{100 * figures['default minus'][name]['mean']:+.2f} ± "
         f"{100 * figures['default minus'][name]['standard_error']:.2f}"]
        for name, mean in figures["means"].items()
    ]  # fmt: skip
    ratios = "; ".join(f"default / {name}: {r['ratio']:.3f}" for name, r in figures["ratios"].items())
    return table(["method", "area x 100", "default minus it"], rows) + f"\n\n{ratios}."
