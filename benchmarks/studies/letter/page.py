"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import beyond_both, side
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain, table

TITLE = "Letter: mean precision over recall 95 % to 100 %"

QUESTION = "How do linear models compare on the letter U, for precision where recall is 95 % or more?"
THREATS = (
    "One set, whose splits overlap.",
    "The set on which implicit thresholds look best of the paper's five.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    rival = figures["default minus"]["best of 21 weights"]
    effect = gain(rival)
    return [Claim("Letter: the default above the best weight", effect, rival["mean"] > 2 * rival["standard_error"],
                  "best of 21 weights", f"1 set, {len(figures['splits'])} splits")]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """The default beside cross-entropy, balanced cross-entropy and the best weight, the strongest rival."""
    gaps = figures["default minus"]
    best = gaps["best of 21 weights"]
    level = {1: "is better than", 0: "is level with", -1: "is worse than"}[side(best)]
    rest = " and ".join(f"{name} by {gain(gaps[name])}" for name in ("cross-entropy", "balanced cross-entropy"))
    both = all(gaps[name]["mean"] > 0 for name in ("cross-entropy", "balanced cross-entropy"))
    weights = {1: "less", 0: "as much", -1: "more"}[side(best)]
    return (
        f"The default {level} the best of 21 class weights, the strongest rival: {gain(best)} points of area, "
        f"{beyond_both(best)}. It is {'ahead of' if both else 'not ahead of both'} {rest}. So tuned class weights "
        f"bring {weights}, and their 21 fits take less time ([linear models](default_study.md)). Not shown: other "
        f"tables, and more than {len(figures['splits'])} splits."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line.of(name, gain) for name, gain in figures["default minus"].items()]
    return [Panel("The default less", "points of partial area", lines)]


def design(figures: dict[str, Any]) -> str:
    splits = figures["splits"]
    return (
        f"Mean precision over recall 95 % to 100 %, in percent; splits {splits[0]} to {splits[-1]}; linear models. "
        "*Four strengths* is `sp.Anchored.auto()`, chosen on validation rows."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [name, f"{100 * mean:.2f}", "" if name not in figures["default minus"] else
         gain(figures["default minus"][name])]
        for name, mean in figures["means"].items()
    ]  # fmt: skip
    ratios = "; ".join(f"default / {name}: {r['ratio']:.3f}" for name, r in figures["ratios"].items())
    return table(["method", "area x 100", "default minus it"], rows) + f"\n\n{ratios}."
