"""The rows of a contest summed up: means over its splits, and by how much ours is better than each other method."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.data import paired
from benchmarks.common.harness import Journal
from benchmarks.peers.contest import MOST, SHARES, Contest


def summary(contest: Contest, journal: Journal) -> dict[str, Any]:
    """A row a method, of the sets that are done."""
    rows, seeds = [], contest.seeds
    for name in contest.sets:
        found = {
            method: [journal[key] for seed in seeds if (key := contest.key(name, seed, method)) in journal]
            for method in contest.methods
        }
        if all(len(own) == len(seeds) for own in found.values()):
            ours = found[contest.ours]
            rows += [{"set": name, "peer": method, **row(contest, own, ours)} for method, own in found.items()]
    return {"ask": str(contest.problem), "seeds": list(seeds), "most training rows": MOST, "rows": rows}


def row(contest: Contest, found: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Any]:
    """One method on one set; if it did not run on one split, why."""
    broken = [one["error"] for one in found if "error" in one]
    if broken:
        return {"version": "", "error": broken[0]}
    summed: dict[str, Any] = {"version": found[0]["version"]}
    for figure in (*contest.averaged, "seconds", "peak megabytes", "candidates"):
        if all(figure in one for one in found):
            summed[figure] = statistics.mean(one[figure] for one in found)
    if found is not ours and not any("error" in one for one in ours):
        summed["better by"] = {
            figure: paired(
                [better(contest, a[figure], b[figure]) for a, b in zip(ours, found)], 1 - sum(SHARES), SHARES[0]
            )
            for figure in contest.compared
        }
    return {**summed, "note": found[0]["note"]}


def better(contest: Contest, ours: float, its: float) -> float:
    """By how much ours is better."""
    return ours - its if contest.problem.maximize else its - ours
