"""The earlier, smaller study: three base losses, one model per seed, at the first rate."""

from __future__ import annotations

from typing import Any

from benchmarks.common.telling import Claim
from benchmarks.common.words import beyond, changed, counted, mean_and_error, ratios, repeated, table, turned, wide
from benchmarks.studies.critical_class.page_limits import most
from benchmarks.studies.critical_class.published import COLUMNS, TABLE_1
from benchmarks.studies.critical_class.verdict import ALONE, CONSTRAINED, LISTED, STARTS

UNTUNED = "The same at 1:100 with settings as published and nothing chosen:"
WORST = COLUMNS[0]


def cells_of(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The constrained cells of more than one seed."""
    return repeated([row for row in figures["tuned"] if row["way"] == CONSTRAINED])


def claims(figures: dict[str, Any], index: bool) -> list[Claim]:
    told, cells = [], cells_of(figures)
    for column, side in ((WORST, -1), ("AUC", 1)) if cells else ():
        better, worse = (beyond(cells, column, side * of) for of in (1, -1))
        gains = turned(cells, column, side)
        told.append(Claim(f"earlier, smaller study: constraint improves {column} in most cells",
                          counted(gains, better, worse, 1), most(better, worse, len(cells)),
                          "the base loss alone", f"1 pair, {len(cells)} cells, 1 model per seed",
                          index and column == "AUC", mean_and_error(gains, 1)))  # fmt: skip
    return told


def section(figures: dict[str, Any]) -> str:
    rows, compared = [], []
    plain = {row["ratio"]: row for row in figures["tuned"] if (row["loss"], row["way"]) == ("BCE", ALONE)}
    for row in figures["tuned"]:
        cells = [f"1:{row['ratio']}", row["loss"], way(row), str(len(row["seeds"]))]
        compared.append((cells[:3], row, plain[row["ratio"]]))
        for column in COLUMNS:
            found = row[column]
            cells.append(changed(found["mean"], None if row["way"] == ALONE else found["minus alone"]))
            told, change = found.get("published"), found.get("published minus alone")
            cells.append("" if told is None else f"{told:.1f}" + f", {change:+.1f}" * (row["way"] != ALONE))
        rows.append(cells)
    header = ["ratio", "base loss", "", "seeds"]
    header += [name for column in COLUMNS for name in (column, "published")]
    parts = [
        "## An earlier, smaller study",
        "Three base losses, one model per seed, at the first rate, at which the nets are weaker. After the mean stands "
        "the paired change against the base loss alone.",
        found_out(figures),
        wide("cells", table(header, rows)),
        ratios(header[:3], compared, COLUMNS),
        *([f"{UNTUNED}\n\n{untuned(figures)}"] if "rows" in figures else []),
    ]
    return "\n\n".join(parts)


def untuned(figures: dict[str, Any]) -> str:
    """Settings as published, nothing chosen."""
    rows = []
    for row in figures["rows"]:
        rows.append([row["method"], *(f"{row[name]:.1f}" for name in COLUMNS)])
        if "minus alone" in row:
            gaps = [row["minus alone"][name] for name in COLUMNS]
            rows.append(["minus alone", *(f"{gap['mean']:+.1f} ± {gap['standard_error']:.1f}" for gap in gaps)])
    return table(["method", *COLUMNS], rows) + f"\n\n{figures['settings']}, 3 seeds; nothing was tuned."


def way(row: dict[str, Any]) -> str:
    return row["way"] + (f", best of {row['choices']}" if row["choices"] > 1 else "")


def found_out(figures: dict[str, Any]) -> str:
    """The findings, a bullet each."""
    of = {name: [row for row in figures["tuned"] if row["way"] == name] for name in (STARTS, LISTED)}
    cells, listed = cells_of(figures), repeated(of[LISTED])
    corrected = beyond(cells, WORST, -1, "corrected_standard_error")
    told = [
        f"*Beyond two plain standard errors*, of {len(cells)} cells: better in {beyond(cells, WORST, -1)} for {WORST} "
        f"({corrected} by the corrected error) and in {beyond(cells, 'AUC', 1)} for AUC; worse in "
        f"{beyond(cells, WORST, 1)} and {beyond(cells, 'AUC', -1)}. With so few seeds that is a low bar: a mu that "
        f"hardly charges anything passes it in {beyond(listed, WORST, -1)} of {len(listed)}."
    ]
    if of[STARTS]:
        spread = " and ".join(f"{row['deviation over starts']:.1f} (1:{row['ratio']})" for row in of[STARTS])
        plain = [row for row in cells if row["loss"] == "BCE"]
        told += [
            f"*The start alone* moves the test AUC of BCE by a standard deviation of {spread} points.",
            "*To choose among runs is worth something by itself.* The best of several starts of BCE on validation rows "
            f"gains {changes(of[STARTS], 'validation AUC')} points of AUC there and {changes(of[STARTS], 'AUC')} on "
            f"test rows; the best of the constrained runs {changes(plain, 'validation AUC')} and "
            f"{changes(plain, 'AUC')}.",
        ]
    if of[LISTED]:
        price = max(row["highest price"] for row in of[LISTED])
        told.append(
            "*The listed mu.* For BCE at 1:100 the authors' code has a mu of 1e-07, up to 3.2e-06. Here no price is "
            f"then above {price:.1g}, and the AUC changes by {changes(of[LISTED], 'AUC')}."
        )
    if lift := [row["ensemble"]["AUC"] - row["AUC"] for row in figures.get("rows", [])]:
        told.append(
            f"*Ensembles.* Three wider nets together (table below) have an AUC {min(lift):.1f} to {max(lift):.1f} "
            "points above the mean of the three; the published figures are of ten."
        )
    plain_bce, balanced = TABLE_1[100]["BCE"], TABLE_1[100]["CB-BCE"]
    told.append(
        f"*The largest published gain*, {balanced[1][-1] - balanced[0][-1]:.1f} points of AUC on CB-BCE at 1:100, is "
        f"over a baseline {plain_bce[0][-1] - balanced[0][-1]:.1f} points below plain BCE. The public code leaves the "
        "weights of CB-BCE at 0.026 and 0.010, with the rate of all other losses, which alone could make it learn so "
        "little. Here the weights have a mean of 1."
    )
    return "\n".join(f"- {line}" for line in told)


def changes(rows: list[dict[str, Any]], column: str) -> str:
    return " and ".join(f"{row[column]['minus alone']['mean']:+.1f} (1:{row['ratio']})" for row in rows)
