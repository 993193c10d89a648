"""Paired differences between ours and each rival, cell by cell, and how many cells are won and lost."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import setpoint as sp
from benchmarks.common.data import paired
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.tables.rows import ASKS

AUTO, TUNED, PLAIN, SINGLE = "auto", "LightGBM tuned", "cross-entropy", "LightGBM"
#: What changed the results of `auto` last; rows of `auto` name it, so that the page can tell which rows are older.
STATE = "Newton steps, ridges scouted"
JUDGED = ("test", "at threshold")
#: The shares of test rows and of rows to train on, for the corrected standard error.
TEST_SHARE, TRAIN_SHARE = 0.2, 0.65

#: A cell of fewer splits has no standard error to speak of, and is shown but not counted.
LEAST_SPLITS = 3

Row = dict[str, Any]


def by_method(rows: list[Row]) -> dict[str, dict[tuple[str, int], Row]]:
    """The rows by method, then by table and seed."""
    found: dict[str, dict[tuple[str, int], Row]] = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["table"], row["seed"]] = row
    return found


def gains(ours: dict[tuple[str, int], Row], theirs: dict[tuple[str, int], Row], ask: str, table: str, by: str) -> Any:
    """The paired gains of ours in one cell over the splits that both have; None if there is none."""
    sign = 1 if sp.ask(ask).maximize else -1
    found = [
        sign * (row["figures"][ask][by] - theirs[key]["figures"][ask][by])
        for key, row in ours.items()
        if key[0] == table and key in theirs and all(by in one["figures"].get(ask, ()) for one in (row, theirs[key]))
    ]
    return {"splits": len(found), **paired(found, TEST_SHARE, TRAIN_SHARE)} if found else None


def cells(rows: list[Row], ours: str = AUTO, judged: tuple[str, ...] = JUDGED) -> list[Row]:
    """One row per table and ask: means of all methods, and the gains of ours over each other method."""
    methods = by_method(rows)
    own = methods.get(ours, {})
    found = []
    for table in dict.fromkeys(key[0] for key in own):
        for ask in ASKS:
            cell: Row = {"table": table, "ask": ask, "gain": {}, "mean": {}}
            for by in judged:
                against = {
                    rival: gain
                    for rival, theirs in methods.items()
                    if rival != ours and (gain := gains(own, theirs, ask, table, by)) is not None
                }
                cell["gain"][by] = against
                cell["mean"][by] = {
                    name: statistics.mean(values)
                    for name, kept in methods.items()
                    if (values := [r["figures"][ask][by] for k, r in kept.items() if k[0] == table and k in own
                                   and by in r["figures"].get(ask, ())])
                }  # fmt: skip
            if ours in cell["mean"]["test"]:
                found.append(cell)
    return found


def counted_gains(found: list[Row], rival: str, judged: str) -> list[Row]:
    """The gains over a rival in all cells with enough splits, each with its table."""
    gains = [{**cell["gain"][judged][rival], "of": cell["table"]} for cell in found if rival in cell["gain"][judged]]
    return [gain for gain in gains if gain["splits"] >= LEAST_SPLITS]


def counts(found: list[Row], judged: tuple[str, ...] = JUDGED) -> dict[str, Row]:
    """How many cells ours wins and loses against each rival, by plain and by corrected standard errors."""
    told: dict[str, Row] = {}
    for by in judged:
        for rival in dict.fromkeys(name for cell in found for name in cell["gain"][by]):
            gains = counted_gains(found, rival, by)
            for error in ("standard_error", "corrected_standard_error"):
                outcomes = [sides(gain, error) for gain in gains]
                told[f"{rival} | {by} | {error}"] = {
                    "cells": len(gains), "better": outcomes.count(1), "worse": outcomes.count(-1),
                    "ahead": sum(gain["mean"] > 0 for gain in gains),
                    "behind": sum(gain["mean"] < 0 for gain in gains),
                }  # fmt: skip
    return told


def choices(rows: list[Row], ours: str = AUTO) -> dict[str, str]:
    """By table, what `auto` has chosen, and how often, over all splits and asks."""
    found: dict[str, Counter[str]] = {}
    for (table, _), row in by_method(rows).get(ours, {}).items():
        found.setdefault(table, Counter()).update(name for names in row["chosen"].values() for name in names)
    return {table: ", ".join(f"{name} {n}" for name, n in own.most_common()) for table, own in found.items()}


def summary(rows: list[Row], sizes: dict[str, Row], methods: tuple[str, ...] = (), splits: int = 0) -> Row:
    """Everything that the page shows; `sizes`, `methods` and `splits` say what was planned."""
    found = cells(rows)
    known = {cell["table"] for cell in found} | set(by_method(rows))
    return {
        "seeds": sorted({row["seed"] for row in rows if row["method"] == AUTO}),
        "planned": {"tables": len(sizes), "splits": splits},
        "not run": [name for name in (*sizes, *methods) if name not in known],
        "sizes": {cell["table"]: sizes[cell["table"]] for cell in found},
        "chosen": choices(rows), "cells": found, "counts": counts(found), "earlier": earlier(rows),
    }  # fmt: skip


def earlier(rows: list[Row]) -> list[str]:
    """The tables on which some rows of `auto` were made before its results changed last."""
    own = [row for row in rows if row["method"] == AUTO and row.get("state") != STATE]
    return list(dict.fromkeys(row["table"] for row in own))
