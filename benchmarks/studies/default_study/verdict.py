"""What a study with paired splits says: better, worse or level, cell by cell, by two standard errors."""

from __future__ import annotations

import statistics
from typing import Any

import setpoint as sp
from benchmarks.common.data import paired

BASELINE, TUNED, DEFAULT, ONCE = "cross-entropy", "best of 21 weights", "default", "default, refit=False"
#: Trained once more, on held-out rows too.
AGAIN = ", again"
RIVALS = (TUNED, TUNED + AGAIN, BASELINE, BASELINE + AGAIN)
OURS = (DEFAULT, ONCE)
JUDGED = ("test", "at threshold")
#: Half a point: below this a loss to cross-entropy is not called one.
SMALL = 0.005


def cell(
    rows: list[dict[str, Any]], test_share: float, train_share: float, all_ours: tuple[str, ...] = OURS
) -> dict[str, Any]:
    """One set and ask: means over the splits, and the paired gains of ours over each rival."""
    sign = 1 if sp.ask(rows[0]["ask"]).maximize else -1
    found: dict[str, Any] = {"set": rows[0]["set"], "ask": rows[0]["ask"], "splits": len(rows)}

    def of(method: str, figure: str) -> list[float]:
        return [row["methods"][method][figure] for row in rows]

    for judged in JUDGED:
        found[f"gain, {judged}"] = {
            ours: {
                rival: paired(
                    [sign * (a - b) for a, b in zip(of(ours, judged), of(rival, judged))], test_share, train_share
                )
                for rival in RIVALS
            }
            for ours in all_ours
        }
    for figure in (*JUDGED, "bounds hold", "seconds"):
        found[figure] = {method: statistics.mean(of(method, figure)) for method in (*RIVALS, *all_ours)}
    return found


def sides(gain: dict[str, float], error: str, least: float = 0.0) -> int:
    """1 if better, -1 if worse by two standard errors (and `least`), else 0."""
    if abs(gain["mean"]) <= max(2 * gain[error], least) or gain["mean"] == 0:
        return 0
    return 1 if gain["mean"] > 0 else -1


def counts(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """How many cells ours wins and loses against each rival, by plain and by corrected standard errors."""
    found: dict[str, Any] = {}
    for ours in cells[0]["gain, test"]:
        for judged in JUDGED:
            for rival in RIVALS:
                for error in ("standard_error", "corrected_standard_error"):
                    gains = [one[f"gain, {judged}"][ours][rival] for one in cells]
                    outcomes = [sides(gain, error) for gain in gains]
                    found[f"{ours} | {rival} | {judged} | {error}"] = {
                        "cells": len(cells), "better": outcomes.count(1), "worse": outcomes.count(-1),
                        "worse by half a point as well": [sides(gain, error, SMALL) for gain in gains].count(-1),
                    }  # fmt: skip
    return found


def summary(
    rows: list[dict[str, Any]], test_share: float, train_share: float, all_ours: tuple[str, ...] = OURS
) -> dict[str, Any]:
    """Cells and counts of a study whose rows have a set, an ask, a seed and methods.

    What a cell reaches at the threshold is in the counts alone.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["ask"]), []).append(row)
    cells = [cell(group, test_share, train_share, all_ours) for group in groups.values()]
    summed = counts(cells)
    for one in cells:
        del one["gain, at threshold"], one["at threshold"]
    return {"cells": cells, "counts": summed}
