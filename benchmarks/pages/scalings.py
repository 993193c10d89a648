"""The section on Spambase under several scalings of its features."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.gains import gain
from benchmarks.tables import table, verdict
from benchmarks.verdicts import sides

TITLE = "Spambase under four scalings"


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        gains = cell["gain, test"]["default"]
        below = sides(gains["cross-entropy"], "standard_error") < 0
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in
                     ("cross-entropy", "best of 21 weights", "default")), gain(gains["cross-entropy"]),
                     gain(gains["best of 21 weights"]), verdict(not below)])  # fmt: skip
    seeds = figures["seeds"]
    note = f"{len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}. Not below: not by two plain standard errors."
    header = ["features", "ask", "cross-entropy", "best of 21 weights", "default", "default over cross-entropy",
              "over the weights", "not below cross-entropy"]  # fmt: skip
    return f"{note}\n\n{table(header, rows)}"
