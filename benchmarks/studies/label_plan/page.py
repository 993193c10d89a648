"""The section of docs/measured.md on labels by a plan."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import share, table, verdict

TITLE = "Labels by a plan"


def section(figures: dict[str, Any]) -> str:
    rows = [
        [
            cell["world"], *(share(cell[way]["alarms"]) for way in ("plan", "random")),
            *(f"{cell[way]['labels']:,.0f} ± {cell[way]['error']:,.0f}" for way in ("plan", "random")),
            f"{cell['random']['labels'] / cell['plan']['labels']:.1f}", verdict(cell["met"]),
        ]
        for cell in figures["cells"]
    ]  # fmt: skip
    first = figures["cells"][0]
    note = (
        f"A watch at level {share(figures['level'])} of months of 20,000 rows, about 200 of which get labels, by "
        f"`watch.plan` or at random. False alarms in {first['streams']:,} streams of 24 months whose rates are at "
        f"their bounds (at most {share(first['limit'])}, noise included); then the mean number of labels until the "
        f"alarm in {first['until_alarm']:,} streams whose bound is broken from the first month on."
    )
    head = ["world", "false alarms: plan", "random", "labels until the alarm: plan", "random", "times fewer", "met"]
    return f"{note}\n\n{table(head, rows)}"
