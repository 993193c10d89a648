"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Linear programs: certified, or named"

QUESTION = "Is every linear program that our solver calls solved really solved?"
THREATS = ("Families of random programs, chosen by us.",)


def claims(figures: dict[str, Any]) -> list[Claim]:
    wrong = figures["wrong silently, all families"]
    number = sum(found["programs"] for found in figures["families"].values())
    return [Claim("linear programs: none is wrong silently", f"{wrong} of {number}", wrong == 0, "HiGHS",
                  f"{len(figures['families'])} families")]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    return []


def design(figures: dict[str, Any]) -> str:
    return "Every answer is checked by its certificate of optimality and against HiGHS."


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
