"""What the rows of the image study say: paired differences a set, ask and method, and what is published beside."""

from __future__ import annotations

import statistics
from typing import Any

from scipy import stats

import setpoint as sp
from benchmarks.common.data import paired
from benchmarks.common.harness import Journal
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.paper_images.published import IMPLICIT_TABLE_2, IMPLICIT_TABLES_3_AND_4, LAST_LAYER_TABLE_1
from benchmarks.studies.paper_images.sets import ImageSet
from benchmarks.studies.paper_images.training import CRITERIA

WEIGHTS = (0.125, 0.5, 2.0, 8.0)
TUNED = "best of 5 weights"
BASE = ("cross-entropy", *(f"weight {weight:g}" for weight in WEIGHTS))
RIVALS = ("cross-entropy", TUNED, "warm start")
Split = dict[str, dict[str, Any]]
METHODS = ("cross-entropy", TUNED, *CRITERIA, "proximal head", "warm start", "twice the epochs")


def key(name: str, ask: str, method: str, seed: int) -> str:
    return f"{name} | {ask} | {method} | {seed}"


def trained_for(ask: str) -> list[str]:
    """What depends on the ask; the last-layer paper has no areas."""
    return list(CRITERIA) if sp.ask(ask).over is None else ["Lagrangian", "implicit"]


def published_ratios(of: int | str) -> dict[str, list[float]]:
    """Ratios to the published cross-entropy, an attribute each, by our names of the columns.

    `of` is the bound on the FPR in percent, or "area".
    """
    if of == "area":
        rows = list(IMPLICIT_TABLES_3_AND_4.values())
        return {"Lagrangian": [row[1] / row[0] for row in rows], "implicit": [row[2] / row[0] for row in rows]}
    assert isinstance(of, int)
    rows = [row[of] for row in IMPLICIT_TABLE_2.values()]
    found = {"Lagrangian": [row[1] / row[0] for row in rows], "implicit": [row[2] / row[0] for row in rows]}
    for column, method in enumerate(("method 1", "method 2", "ablation")):
        found[method] = [row[of][column] / IMPLICIT_TABLE_2[name][of][0] for name, row in LAST_LAYER_TABLE_1.items()]
    return found


def chosen_weight(rows: dict[str, dict[str, Any]], maximize: bool) -> str:
    """The weight that is best on validation rows, ties to the plain one."""
    sign = 1 if maximize else -1
    return max(BASE, key=lambda method: sign * rows[method]["validation"])


def rows_of_split(journal: Journal, name: str, ask: str, seed: int) -> Split:
    """The finished rows of one split by method, the tuned weight among them; nothing while one is not done."""
    methods = (*BASE, *METHODS)
    rows = {
        method: journal[key(name, ask, method, seed)] for method in methods if key(name, ask, method, seed) in journal
    }
    if not all(method in rows for method in (*BASE, "warm start", *trained_for(ask))):
        return {}
    tuned = chosen_weight(rows, sp.ask(ask).maximize)
    spent = sum(rows[method]["seconds"] for method in BASE)
    rows[TUNED] = {**rows[tuned], "chosen": tuned, "seconds": spent}
    return {method: row for method, row in rows.items() if method in METHODS and "failed" not in row}


def method_row(splits: list[Split], method: str, ask: str, shares: tuple[float, float]) -> dict[str, Any]:
    """Means and paired gains over the splits that have this method; a gain is positive when it is better."""
    sign = 1 if sp.ask(ask).maximize else -1
    done = [split for split in splits if method in split]
    values = [100 * split[method]["test"] for split in done]
    plain = [100 * split["cross-entropy"]["test"] for split in done]
    row: dict[str, Any] = {"method": method, "splits": len(done), "mean": statistics.mean(values)}
    row["ratio to cross-entropy"] = statistics.mean(values) / statistics.mean(plain) if any(plain) else None
    for rival in RIVALS:
        theirs = [100 * split[rival]["test"] for split in done]
        row[f"over {rival}"] = paired([sign * (a - b) for a, b in zip(values, theirs)], *shares)
    if "at threshold" in done[0][method]:
        for judged in ("at threshold", "fpr"):
            row[judged] = statistics.mean(100 * split[method][judged] for split in done)
        gains = [-100 * (s[method]["at threshold"] - s["cross-entropy"]["at threshold"]) for s in done]
        row["at threshold, over cross-entropy"] = paired(gains, *shares)
    row["seconds"] = statistics.mean(split[method]["seconds"] for split in done)
    if method == TUNED:
        row["chosen"] = [split[method]["chosen"] for split in done]
    if method == "proximal head":
        row["kept"] = sum(split[method]["kept"] for split in done)
    return row


def pooled_gain(units: dict[tuple[str, int], list[Split]], method: str, rival: str) -> dict[str, float] | None:
    """The gain in FNR over all sets and seeds, each the mean of its asks; splits of the small sets share images."""
    gains = []
    for asked in units.values():
        both = [100 * (split[rival]["test"] - split[method]["test"]) for split in asked if method in split]
        gains += [statistics.mean(both)] if both else []
    if len(gains) < 2:
        return None
    spread = statistics.stdev(gains) / len(gains) ** 0.5
    return {"mean": statistics.mean(gains), "standard_error": spread, "units": len(gains)}


def counts(rows: list[dict[str, Any]], units: dict[tuple[str, int], list[Split]]) -> list[dict[str, Any]]:
    """In how many cells a method is better or worse than a rival, by two standard errors of either kind.

    `by chance` is how many would pass two plain ones on either side if there were no difference, by Student's t.
    """
    found = []
    for method in METHODS:
        for rival in RIVALS:
            own = [row for row in rows if row["method"] == method and method != rival]
            gains = [row[f"over {rival}"] for row in own]
            if not gains:
                continue
            one: dict[str, Any] = {"method": method, "rival": rival, "cells": len(gains)}
            one["mean gain"] = statistics.mean(gain["mean"] for gain in gains)
            if found_pooled := pooled_gain(units, method, rival):
                one["pooled"] = found_pooled
            one["by chance"] = sum(2 * float(stats.t.sf(2, row["splits"] - 1)) for row in own)
            for error in ("standard_error", "corrected_standard_error"):
                outcome = [sides(gain, error) for gain in gains]
                one[error] = {"better": outcome.count(1), "worse": outcome.count(-1)}
            found.append(one)
    return found


def summary(
    journal: Journal, sets: dict[str, ImageSet], seeds: dict[str, list[int]], asks: dict[str, int | str]
) -> dict[str, Any]:
    """The methods of each set and ask that have two splits; the counts over those; the times of a step."""
    rows = []
    units: dict[tuple[str, int], list[Split]] = {}
    for ask, of in asks.items():
        told = published_ratios(of)
        for name, one in sets.items():
            done = {seed: split for seed in seeds[name] if (split := rows_of_split(journal, name, ask, seed))}
            splits = list(done.values())
            if sp.ask(ask).over is None:
                for seed, split in done.items():
                    units.setdefault((name, seed), []).append(split)
            for method in METHODS:
                if sum(method in split for split in splits) < 2:
                    continue
                row = {"set": name, "ask": ask, **method_row(splits, method, ask, (one.sizes[3], one.sizes[0]))}
                if method in told:
                    row["published"] = {"ratio": statistics.mean(told[method]), "lowest": min(told[method]),
                                        "highest": max(told[method]), "attributes": len(told[method])}  # fmt: skip
                rows.append(row)
    steps = {method: journal[f"step | {method}"]["ratio"] for method in CRITERIA if f"step | {method}" in journal}
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["set"], row["ask"]), []).append(
            {name: value for name, value in row.items() if name not in ("set", "ask")}
        )
    return {
        "cells": [{"set": name, "ask": ask, "methods": methods} for (name, ask), methods in cells.items()],
        "counts": counts(rows, units), "step ratios": steps,
    }  # fmt: skip
