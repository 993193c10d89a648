"""The section on the default for linear models and heads."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.pages.gains import ERRORS, gain
from benchmarks.tables import table, verdict
from benchmarks.verdicts import SMALL, sides

TITLE = "The default, linear models and heads"
JUDGED = {"test": "best cut of the test curve", "at threshold": "threshold set on validation rows"}


def ours_in(figures: dict[str, Any]) -> list[str]:
    return list(figures["cells"][0]["gain, test"])


def targets(figures: dict[str, Any]) -> str:
    """What was asked of the default, and whether it holds, by both standard errors."""
    cells, rows = figures["cells"], []
    for ours in ours_in(figures):
        for error, kind in ERRORS.items():
            found = {rival: figures["counts"][f"{ours} | {rival} | test | {error}"] for rival in
                     ("best of 21 weights", "cross-entropy")}  # fmt: skip
            weights, plain = found["best of 21 weights"], found["cross-entropy"]
            share = weights["better"] / len(cells)
            lost = plain["worse by half a point as well"]
            claims = [
                ("better than the best of 21 weights in 40 % of the cells", f"{weights['better']} of {len(cells)}",
                 share >= 0.4),
                ("worse than them in none", str(weights["worse"]), weights["worse"] == 0),
                (f"worse than cross-entropy by {100 * SMALL:g} points as well in none", str(lost), lost == 0),
            ]  # fmt: skip
            rows += [[ours, claim, kind, value, verdict(met)] for claim, value, met in claims]
    return table(["method", "two standard errors or more", "errors", "cells", "met"], rows)


def count_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, found in figures["counts"].items():
        ours, rival, judged, error = name.split(" | ")
        rows.append([ours, rival, JUDGED[judged], ERRORS[error], str(found["better"]), str(found["worse"]),
                     str(found["worse by half a point as well"])])  # fmt: skip
    return table(["method", "against", "judged at", "errors", "better", "worse", "by half a point too"], rows)


def cell_table(figures: dict[str, Any], judged: str = "test") -> str:
    names = [*figures["cells"][0][judged]]
    rows = []
    for cell in figures["cells"]:
        gains = cell[f"gain, {judged}"]["default"]
        outcome = {1: "better", 0: "", -1: "worse"}[sides(gains["best of 21 weights"], "standard_error")]
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell[judged][name]:.2f}" for name in names),
                     gain(gains["best of 21 weights"]), outcome, gain(gains["cross-entropy"])])  # fmt: skip
    header = ["set", "ask", *names, "default over the weights", "", "over cross-entropy"]
    return table(header, rows)


def costs(figures: dict[str, Any]) -> str:
    """Seconds of a thread's processor, the mean over asks and splits."""
    names = [*figures["cells"][0]["seconds"]]
    rows = []
    for one in dict.fromkeys(cell["set"] for cell in figures["cells"]):
        times = [cell["seconds"] for cell in figures["cells"] if cell["set"] == one]
        rows.append([one, *(f"{statistics.mean(time[name] for time in times):.2f}" for name in names)])
    return table(["set, seconds", *names], rows)


def section(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    ahead = figures.get("over the first form")
    first = (
        "" if ahead is None else
        " *As it was at first* is the same recipe with an anchor that grows with 1 / alpha and does not know how many "
        f"thresholds there are; over it the default gains {ahead['mean']:+.2f} ± {ahead['standard_error']:.2f} of a "
        "cell's standard errors, the mean of all cells."
    )  # fmt: skip
    parts = [
        f"{len(seeds)} of {figures['planned splits']} planned splits, seeds {seeds[0]} to {seeds[-1]}, of 60/20/20, at "
        f"most {figures['most training rows']:,} training rows. All models are linear, with the same features and "
        "ridge; cross-entropy under each of the 21 class weights (2^-10 to 2^10) is trained to convergence, the weight "
        "chosen on validation rows by the exact metric. `default` is what `sp.fit` does with a linear model: one "
        "strength, nothing chosen. FNR is better when lower, precision when higher; gains are positive when ours is "
        f"better, in points.{first}",
        targets(figures),
        cell_table(figures),
        "In percent on test rows, at the best cut of the test curve, for all methods alike. Errors are standard errors "
        "of the paired differences; in brackets Nadeau and Bengio's, for splits that overlap. Better and worse: by two "
        "plain standard errors.",
        "![Gain of the default over the best of 21 class weights](images/default_study.svg)",
        "All counts, also at the threshold that each method sets on validation rows. There the bounded rate differs "
        "from method to method as well, and is not recorded, so that a better objective may be a bound that is broken "
        "more:",
        count_table(figures),
        "What it costs: 21 trainings for the grid; for the default one matched start and one refinement, for the four "
        "strengths one start and four. In seconds the grid of a small linear model is cheaper.",
        costs(figures),
    ]
    return "\n\n".join(parts)
