"""The section on Spambase under several scalings of its features."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import Claims, counted, gain, table, verdict
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, TUNED, sides

TITLE = "Spambase under four scalings"
NAMES = (BASELINE, BASELINE + AGAIN, TUNED + AGAIN, DEFAULT)


def claims(figures: dict[str, Any]) -> Claims:
    rivals = (BASELINE, BASELINE + AGAIN)
    gains = [[cell["gain, test"][DEFAULT][rival] for rival in rivals] for cell in figures["cells"]]
    found = [[sides(gain, "standard_error") for gain in pair] for pair in gains]
    better, worse = sum(min(pair) > 0 for pair in found), sum(min(pair) < 0 for pair in found)
    effect = counted([pair[1] for pair in gains], better, worse)
    return [("linear models, Spambase however scaled: not below cross-entropy", effect, worse == 0)]


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
