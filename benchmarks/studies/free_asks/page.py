"""The section on the default for linear models where no bound says how much lies beyond the threshold."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import Claims, gain, table, wide
from benchmarks.studies.default_study.page import claims as beside_rivals
from benchmarks.studies.default_study.page import count_table
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, TUNED, sides
from benchmarks.studies.free_asks.study import BEFORE

TITLE = "The default, linear models, where no bound holds the threshold"
PLAIN, WEIGHTS = BASELINE + AGAIN, TUNED + AGAIN
SHOWN = (PLAIN, WEIGHTS, BEFORE, DEFAULT)


def claims(figures: dict[str, Any]) -> Claims:
    return beside_rivals(figures, "linear models, no bound on a rate")


def section(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    parts = [
        f"{len(seeds)} of {figures['planned splits']} planned splits, seeds {seeds[0]} to {seeds[-1]}, rows, rivals "
        "and judgement as with [bounds](default_study.md); all are trained on held-out rows too. Only errors are "
        "better when lower. Without a bound on a rate there is nothing to match a class weight to, so the default "
        f"starts from plain cross-entropy. *{BEFORE.capitalize()}* has a sixteenth of the anchor: it took all "
        "positives and negatives for samples that decide where the threshold lies. The strength was chosen on the "
        "splits 0 to 3.",
        wide("cells", cell_table(figures)),
        "In percent on test rows, at the best cut of the test curve; gains in points, positive when ours is better, "
        "with their standard errors, in brackets the corrected ones. Better and worse: by two plain standard errors.",
        wide("counts", count_table(figures)),
    ]
    return "\n\n".join(parts)


def cell_table(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        row = [cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in SHOWN)]
        for ours, rival in ((DEFAULT, WEIGHTS), (DEFAULT, PLAIN), (BEFORE, PLAIN)):
            found = cell["gain, test"][ours][rival]
            row.append(gain(found) + {1: ", better", 0: "", -1: ", worse"}[sides(found, "standard_error")])
        rows.append(row)
    over = ["default over the weights", "over cross-entropy", "before, over cross-entropy"]
    return table(["set", "ask", *SHOWN, *over], rows)
