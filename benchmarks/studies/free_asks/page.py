"""The page on the default for linear models where no bound says how much lies beyond the threshold."""

from __future__ import annotations

from typing import Any

from benchmarks.common.chance import chance_told
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain, mean_and_error, short, table, wide
from benchmarks.studies.default_study.page import beside_weights, by_ask, count_table, forest, gains_of  # noqa: F401
from benchmarks.studies.default_study.page import claims as beside_rivals
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, TUNED, sides
from benchmarks.studies.free_asks.study import BEFORE, SEEDS

TITLE = "The default, linear models, where no bound holds the threshold"
QUESTION = (
    "Does the default for linear models beat the best of 21 class weights where no bound holds the threshold: for "
    "F-scores, errors and areas?"
)
THREATS = (
    "The strength of the anchor was chosen on splits 0 to 3 of the same sets.",
    "Splits of one set overlap; see the corrected counts. " + chance_told(len(SEEDS)),
)
PLAIN, WEIGHTS = BASELINE + AGAIN, TUNED + AGAIN
SHOWN = (PLAIN, WEIGHTS, BEFORE, DEFAULT)


def claims(figures: dict[str, Any]) -> list[Claim]:
    return beside_rivals(figures, "linear models, no bound")


def answer(figures: dict[str, Any]) -> str:
    lost = [cell for cell in figures["cells"] if sides(cell["gain, test"][DEFAULT][PLAIN], "standard_error") < 0]
    return " ".join(
        [
            *beside_weights(figures),
            f"It is worse than plain cross-entropy beyond two plain standard errors in {len(lost)} of "
            f"{len(figures['cells'])} cells{plain_is_stronger(figures)}.",
            "Not shown: other models than linear ones.",
        ]
    )


def plain_is_stronger(figures: dict[str, Any]) -> str:
    """The asks for which plain cross-entropy is a stronger rival than the weights."""
    told = []
    for ask in dict.fromkeys(cell["ask"] for cell in figures["cells"]):
        own = [cell for cell in figures["cells"] if cell["ask"] == ask]
        weights, plain = (mean_and_error(gains_of(own, rival)) for rival in (TUNED, BASELINE))
        if plain[0] < weights[0]:
            told.append(
                f"`{short(ask)}` ({plain[0]:+.2f} ± {plain[1]:.2f} over it, {weights[0]:+.2f} over the weights)"
            )
    return f"; cross-entropy is the stronger rival for {' and '.join(told)}" if told else ""


def design(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    return (
        f"{len(seeds)} of {figures['planned splits']} planned splits, seeds {seeds[0]} to {seeds[-1]}; rows, rivals "
        "and judgement as with [bounds](default_study.md); all are trained on held-out rows too. Without a bound on a "
        "rate there is nothing to match a class weight to, so the default starts from plain cross-entropy. "
        f"*{BEFORE.capitalize()}* has a sixteenth of the anchor."
    )


def section(figures: dict[str, Any]) -> str:
    return "\n\n".join([by_ask(figures), wide("cells", cell_table(figures)), wide("counts", count_table(figures))])


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
