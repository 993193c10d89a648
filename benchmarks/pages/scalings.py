"""The section on Spambase under several scalings of its features."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.gains import gain
from benchmarks.tables import table, verdict
from benchmarks.verdicts import AGAIN, BASELINE, DEFAULT, TUNED, sides

TITLE = "Spambase under four scalings"
NAMES = (BASELINE, BASELINE + AGAIN, TUNED + AGAIN, DEFAULT)


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        gains = cell["gain, test"][DEFAULT]
        below = any(sides(gains[rival], "standard_error") < 0 for rival in (BASELINE, BASELINE + AGAIN))
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in NAMES),
                     gain(gains[BASELINE]), gain(gains[BASELINE + AGAIN]), gain(gains[TUNED + AGAIN]),
                     verdict(not below)])  # fmt: skip
    seeds = figures["seeds"]
    note = (
        f"{len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}. Not below: not by two plain standard errors, neither "
        "cross-entropy on training rows nor on held-out rows too (*again*)."
    )
    header = ["features", "ask", *NAMES, f"default over {BASELINE}", f"over {BASELINE}{AGAIN}",
              f"over {TUNED}{AGAIN}", "not below cross-entropy"]  # fmt: skip
    return f"{note}\n\n{table(header, rows)}"
