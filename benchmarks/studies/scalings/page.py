"""The section on Spambase under several scalings of its features."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, gain, mean_and_error, short, table, verdict, wide
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, TUNED, sides

TITLE = "Spambase under four scalings"
QUESTION = "Does the default for linear models depend on how the features of Spambase are scaled?"
THREATS = (
    "One table; the scalings were chosen because an earlier default had lost on one of them.",
    "Splits of one table overlap.",
)
NAMES = (BASELINE, BASELINE + AGAIN, TUNED + AGAIN, DEFAULT)


def claims(figures: dict[str, Any]) -> list[Claim]:
    rivals = (BASELINE, BASELINE + AGAIN)
    gains = [[cell["gain, test"][DEFAULT][rival] for rival in rivals] for cell in figures["cells"]]
    found = [[sides(gain, "standard_error") for gain in pair] for pair in gains]
    better, worse = sum(min(pair) > 0 for pair in found), sum(min(pair) < 0 for pair in found)
    effect = counted([pair[1] for pair in gains], better, worse)
    on = f"{len({cell['set'] for cell in figures['cells']})} scalings, {len(figures['seeds'])} splits"
    gain = mean_and_error([pair[1] for pair in gains])
    return [Claim("linear, Spambase however scaled: not below", effect, worse == 0, "cross-entropy", on, False, gain)]


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line.of(f"{cell['set']}: {short(cell['ask'])}", cell["gain, test"][DEFAULT][BASELINE + AGAIN])
             for cell in figures["cells"]]  # fmt: skip
    return [Panel("The default against cross-entropy on the same rows", "points", lines)]


def design(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    return (
        f"{len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}, made as in the study of the "
        "[default](default_study.md). Not below: not by two plain standard errors, neither cross-entropy on training "
        "rows nor on held-out rows too (*again*)."
    )


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        gains = cell["gain, test"][DEFAULT]
        below = any(sides(gains[rival], "standard_error") < 0 for rival in (BASELINE, BASELINE + AGAIN))
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in NAMES),
                     gain(gains[BASELINE]), gain(gains[BASELINE + AGAIN]), gain(gains[TUNED + AGAIN]),
                     verdict(not below)])  # fmt: skip
    header = ["features", "ask", *NAMES, f"default over {BASELINE}", f"over {BASELINE}{AGAIN}",
              f"over {TUNED}{AGAIN}", "not below cross-entropy"]  # fmt: skip
    return wide("cells", table(header, rows))
