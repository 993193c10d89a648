"""The part on `sp.Auto` in networks that are under-fitted: what its implicit thresholds are worth there."""

from __future__ import annotations

from typing import Any

from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import by_source, counted, gain, mean_and_error, of_sources, share, table
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.small_nets.as_candidate import LONGER, NAME, WITH, WITHOUT

COMMAND = "studies.small_nets.as_candidate"


def figures_of() -> dict[str, Any]:
    return load_figures(NAME)


def of_rival(rows: list[dict[str, Any]], rival: str) -> list[dict[str, Any]]:
    """The gains over a rival, each with the data behind its set."""
    return by_source(rows, lambda row: row["gain"][rival])


def claims() -> list[Claim]:
    """`Auto` as it is against `Auto` with class weights alone, and against more epochs of the latter."""
    rows, told = figures_of().get("rows", []), []
    for rival, against in ((WITHOUT, "class weights alone"), (LONGER, "the same, 7/3 as many epochs")) if rows else ():
        gains = of_rival(rows, rival)
        found = [sides(one, "corrected_standard_error") for one in gains]
        mean, error = mean_and_error(gains)
        says = "`Auto` on small networks, FPR 0.1 %: gains by implicit thresholds and prices, worse in no cell"
        effect = counted(gains, found.count(1), found.count(-1)) + " (corrected)"
        met = mean > 2 * error and found.count(-1) == 0
        on = f"{of_sources(len(rows), 'cells', [r['set'] for r in rows])}, {min(r['seeds'] for r in rows)} seeds"
        told.append(Claim(says, effect, met, against, on, False, (mean, error), command=COMMAND))
    return told


def answer() -> str:
    """What it means for a user, in sentences; empty where it was not run."""
    rows = figures_of().get("rows", [])
    if not rows:
        return ""
    means = {rival: mean_and_error(of_rival(rows, rival)) for rival in (WITHOUT, LONGER)}
    names = [name for row in rows for name, times in row["chosen"].items() for _ in range(times)]
    ours = sum(not name.startswith("CrossEntropy") for name in names)
    return (
        "`sp.Auto()` has such a recipe among its candidates: implicit thresholds that go on from cross-entropy, held "
        f"back by it. In {len(rows)} cells of small or briefly trained networks at an FPR of 0.1 % it kept a solver "
        f"other than cross-entropy in {ours} of {len(names)} trainings, and gained {means[WITHOUT][0]:+.1f} ± "
        f"{means[WITHOUT][1]:.1f} points of FNR over itself with class weights alone; against class weights with 7/3 "
        f"as many epochs it has {means[LONGER][0]:+.1f} ± {means[LONGER][1]:.1f} (`python -m benchmarks.{COMMAND}`)."
    )


def section() -> list[str]:
    rows = figures_of().get("rows", [])
    if not rows:
        return []
    lines = [
        [row["cell"], str(row["seeds"]), *(share(row["fnr"][name]) for name in (WITH, WITHOUT, LONGER)),
         *(gain(row["gain"][name]) for name in (WITHOUT, LONGER)),
         ", ".join(f"{name} {times}" for name, times in row["chosen"].items())]
        for row in rows
    ]  # fmt: skip
    head = ["network", "seeds", "FNR, `Auto`", WITHOUT, LONGER, f"gain over {WITHOUT}", "over 7/3 as many", "kept"]
    return ["## As a candidate of `Auto`", answer(), table(head, lines)]
