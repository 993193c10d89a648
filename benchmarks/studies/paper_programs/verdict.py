"""What the runs of `paper_programs` say: chosen on held-out images, beside cross-entropy and what was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import mean
from typing import Any

from benchmarks.common.data import paired
from benchmarks.studies.paper_programs.published import TABLE_1, TABLE_3, TABLE_4

TEST_IMAGES = 10_000
FIGURES = {
    "halves": ("AUC",),
    "groups": ("one against all", "AUC-mu"),
    "f-score": ("F at zero", "F at the held-out threshold", "F at the best threshold of the test labels"),
}
#: The column of the paper's tables that a method stands beside.
COLUMN = {
    "cross-entropy": "cross-entropy", "pairwise squared hinge": "PPD-SG", "hinge, margin 0.01": "program",
    "ramp, margin 0.01": "program", "class pairs, margin 0.01": "program", "program, margin 0 as published": "program",
    "program, margin 0.4": "program",
}  # fmt: skip
PLAIN, WEIGHTED = "cross-entropy", "weighted cross-entropy"
Row = dict[str, Any]


def chosen(rows: list[Row], method: str) -> dict[int, Row]:
    """By seed, the setting that is best on held-out images; no weight at all is among the weights."""
    settings = (method, PLAIN) if method == WEIGHTED else (method,)
    best: dict[int, Row] = {}
    for row in rows:
        if row["method"] in settings and row["seed"] in {r["seed"] for r in rows if r["method"] == method}:
            held = best.get(row["seed"])
            if held is None or row["validation"] > held["validation"]:
                best[row["seed"]] = row
    return best


def at_every_pace(rows: list[Row], paces: int) -> list[Row]:
    """The rows of what was run at so many learning rates."""
    same = ("table", "level", "method", "setting", "seed")
    done = Counter(tuple(row[name] for name in same) for row in rows)
    return [row for row in rows if done[tuple(row[name] for name in same)] == paces]


def by_rate(rows: list[Row], paces: Iterable[float]) -> list[Row]:
    """Where several rates were run: cross-entropy at each, and the gain of the losses beside it at that same rate."""
    found = []
    for pace in paces:
        at = [row for row in rows if row.get("pace", 1) == pace]
        for row in summary(at):
            told = {name: row[name] for name in ("table", "level", "method", "figure", "value", "minus cross-entropy")}
            found.append({"pace": pace, **told})
    kept = ("AUC", "AUC-mu", "F at zero")
    found = [row for row in found if row["figure"] in kept and (row["method"] in COLUMN or "margin 1" in row["method"])]
    rates = Counter((row["table"], row["level"]) for row in found if row["method"] == PLAIN)
    return [row for row in found if rates[row["table"], row["level"]] > 1]


def published(table: str, level: int, figure: str) -> dict[str, float]:
    """The paper's columns for a figure; F-scores were published at the threshold zero."""
    if table == "halves":
        return TABLE_1[level]
    if table == "groups":
        return {name: values[FIGURES["groups"].index(figure)] for name, values in TABLE_3[level].items()}
    return TABLE_4 if figure == "F at zero" else {}


def summary(rows: Iterable[Row]) -> list[Row]:
    """A row a table, level, method and figure, over the seeds on which both it and cross-entropy are done."""
    everything, found = list(rows), []
    for table, figures in FIGURES.items():
        of_table = [row for row in everything if row["table"] == table]
        for level in sorted({row["level"] for row in of_table}, reverse=True):
            here = [row for row in of_table if row["level"] == level]
            plain = chosen(here, PLAIN)
            for method in dict.fromkeys(row["method"] for row in here):
                best = chosen(here, method)
                seeds = sorted(set(best) & set(plain))
                found += [line(table, level, method, figure, best, plain, seeds) for figure in figures if seeds]
    return found


def line(
    table: str, level: int, method: str, figure: str, best: dict[int, Row], plain: dict[int, Row], seeds: list[int]
) -> Row:
    values, base = ([100 * of[seed][figure] for seed in seeds] for of in (best, plain))
    share = (TEST_IMAGES, mean(best[seed]["images"] for seed in seeds))
    row: Row = {"table": table, "level": level, "method": method, "figure": figure, "seeds": seeds}
    row["settings"] = [best[seed]["setting"] for seed in seeds]
    row["paces"] = [best[seed].get("pace", 1) for seed in seeds]
    row["value"] = paired(values, *share)
    row["minus cross-entropy"] = paired([a - b for a, b in zip(values, base)], *share)
    row["ratio to cross-entropy"] = mean(values) / mean(base)
    row["seconds"] = mean(best[seed]["seconds"] for seed in seeds)
    spreads = [best[seed]["spread"] for seed in seeds if "spread" in best[seed]]
    row["spread of scores"] = mean(spreads) if spreads else None
    told = published(table, level, figure)
    if COLUMN.get(method) in told:
        value, beside = told[COLUMN[method]], told[PLAIN]
        row["published"] = {"column": COLUMN[method], "value": value, "minus cross-entropy": value - beside,
                            "ratio to cross-entropy": value / beside}  # fmt: skip
    return row
