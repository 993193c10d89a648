"""The page of this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import share, share_error, table, verdict

TITLE = "Labels by a plan"

QUESTION = "Is a watch of rows that were labelled by a plan valid, and how many labels does the plan save?"
THREATS = (
    "Scores are normal in all worlds, and the plan was made on rows like those of the kept promises.",
    "How many labels are saved depends on how well scores tell positives from negatives.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    return []


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [
        Line(f"{cell['world']}, {way}", *share_error(cell[way]["alarms"], cell["streams"]))
        for cell in figures["cells"]
        for way in ("plan", "random")
    ]
    return [Panel("False alarms", "percent of streams", lines, 5.0, False)]


def design(figures: dict[str, Any]) -> str:
    first = figures["cells"][0]
    return (
        f"A watch at level {share(figures['level'])} of months of 20,000 rows, about 200 of which get labels, by "
        f"`watch.plan` or at random. False alarms in {first['streams']:,} streams of 24 months whose rates are at "
        f"their bounds (at most {share(first['limit'])}, noise included); then the mean number of labels until the "
        f"alarm in {first['until_alarm']:,} streams whose bound is broken from the first month on."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [
            cell["world"], *(share(cell[way]["alarms"]) for way in ("plan", "random")),
            *(f"{cell[way]['labels']:,.0f} ± {cell[way]['error']:,.0f}" for way in ("plan", "random")),
            f"{cell['random']['labels'] / cell['plan']['labels']:.1f}", verdict(cell["met"]),
        ]
        for cell in figures["cells"]
    ]  # fmt: skip
    head = ["world", "false alarms: plan", "random", "labels until the alarm: plan", "random", "times fewer", "met"]
    return table(head, rows)
