"""What a study with paired splits says: better, worse or level, cell by cell, by two standard errors."""

from __future__ import annotations

import statistics
from typing import Any

import setpoint as sp
from benchmarks.data import paired

RIVALS = ("best of 21 weights", "cross-entropy")
FIRST = "as it was at first"
#: Ours: what is named, or the best on validation rows among what is named, ties to the earlier.
OURS = {
    "default": ("anchored 0.25",),
    FIRST: ("anchored, first form",),
    "four strengths": (
        "cross-entropy", "matched", "anchored 4", "anchored 1", "anchored 0.25", "anchored 0.0625"
    ),
}  # fmt: skip
JUDGED = ("test", "at threshold")
#: Half a point: below this a loss to cross-entropy is not called one.
SMALL = 0.005


def chosen(row: dict[str, Any], candidates: tuple[str, ...]) -> str:
    """The candidate that is best on validation rows."""
    sign = 1 if sp.ask(row["ask"]).maximize else -1
    return max(candidates, key=lambda name: sign * row["methods"][name]["validation"])


def present(rows: list[dict[str, Any]]) -> list[str]:
    """Those of ours whose candidates stand in every row."""
    return [ours for ours, names in OURS.items() if all(name in row["methods"] for row in rows for name in names)]


def cell(rows: list[dict[str, Any]], test_share: float, train_share: float) -> dict[str, Any]:
    """One set and ask: means over the splits, and the paired gains of ours over each rival."""
    sign = 1 if sp.ask(rows[0]["ask"]).maximize else -1
    taken = {ours: [chosen(row, OURS[ours]) for row in rows] for ours in present(rows)}
    found: dict[str, Any] = {"set": rows[0]["set"], "ask": rows[0]["ask"], "splits": len(rows)}
    for judged in JUDGED:
        values = {rival: [row["methods"][rival][judged] for row in rows] for rival in RIVALS}
        for ours, names in taken.items():
            values[ours] = [row["methods"][name][judged] for row, name in zip(rows, names)]
        found[judged] = {name: statistics.mean(figures) for name, figures in values.items()}
        found[f"gain, {judged}"] = {
            ours: {
                rival: paired([sign * (a - b) for a, b in zip(values[ours], values[rival])], test_share, train_share)
                for rival in RIVALS
            }
            for ours in taken
        }
    seconds = {rival: statistics.mean(row["methods"][rival]["seconds"] for row in rows) for rival in RIVALS}
    for ours in taken:
        # The matched start is shared by all strengths.
        refined = [name for name in OURS[ours] if name.startswith("anchored")]
        own = [[row["methods"][name]["seconds"] for name in refined] for row in rows]
        start = [row["methods"]["matched"]["seconds"] for row in rows]
        seconds[ours] = statistics.mean(sum(times) - (len(times) - 1) * one for times, one in zip(own, start))
    found["seconds"] = seconds
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


def advance(cells: list[dict[str, Any]], ours: str, earlier: str) -> dict[str, float]:
    """By how many standard errors of a cell ours is ahead of an earlier form of it, over all cells."""
    rival = RIVALS[0]
    gains = [
        (one["gain, test"][ours][rival]["mean"] - one["gain, test"][earlier][rival]["mean"])
        / max(one["gain, test"][ours][rival]["standard_error"], 1e-9)
        for one in cells
    ]
    return {"mean": statistics.mean(gains), "standard_error": statistics.stdev(gains) / len(gains) ** 0.5}


def summary(rows: list[dict[str, Any]], test_share: float, train_share: float) -> dict[str, Any]:
    """Cells and counts of a study whose rows have a set, an ask, a seed and methods."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["ask"]), []).append(row)
    cells = [cell(group, test_share, train_share) for group in groups.values()]
    found = {"cells": cells, "counts": counts(cells)}
    if FIRST in cells[0]["gain, test"] and len(cells) > 1:
        found["over the first form"] = advance(cells, "default", FIRST)
    return found
