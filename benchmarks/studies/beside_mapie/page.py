"""The page on our certificates beside MAPIE's controller."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.answers import counted_sides, ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain, share, short, table, wide
from benchmarks.studies.beside_mapie.study import OURS, REPEATS, WAYS
from benchmarks.studies.default_study.verdict import sides

TITLE = "Certificates beside MAPIE, set up in its favour"
QUESTION = "How much of the difference to MAPIE's certificates comes from the grid of thresholds that it is given?"
THREATS = (
    "MAPIE tests a grid of about 100 cuts; a finer one costs it power where it corrects for their number.",
    "`split_fixed_sequence` loses a quarter of the rows to learn an order that is known beforehand for FPR; it is "
    "meant for risks without such an order.",
    "A refusal counts as the objective of the cut that flags nothing.",
    "The cut above all scores was left out for precision after ten repeats, since MAPIE then refused everything.",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    told = []
    for way in WAYS:
        gains = [row[way]["gain"] for row in figures["rows"]]
        found = [sides(one, "standard_error") for one in gains]
        refused = max(row[way]["refused"] for row in figures["rows"])
        effect = (
            f"{found.count(1)} better, {found.count(-1)} worse of {len(found)}; it refuses {share(refused)} at most"
        )
        told.append(Claim("certificates: our objective worse in no cell", effect, -1 not in found, f"MAPIE, {way}",
                          f"{len(found)} cells, {figures['rows'][0]['repeats']} repeats"))  # fmt: skip
    return told


def answer(figures: dict[str, Any]) -> str:
    """How much of the gain is left where MAPIE has a wider grid, and where ours is worse."""
    rows = figures["rows"]
    quantiles, above, split = WAYS
    before, after, other = (100 * statistics.mean(row[way]["gain"]["mean"] for row in rows) for way in WAYS)
    worse = [row for row in rows if sides(row[above]["gain"], "standard_error") < 0]
    lost = "; ".join(f"{label(row)} by {-100 * row[above]['gain']['mean']:.1f} points" for row in worse)
    return " ".join(
        [
            f"{part_of(before, after)}: with a wider grid, and for FPR a cut above all scores, MAPIE refuses "
            f"{most_refused(rows, above)} of the repeats at most, not {most_refused(rows, quantiles)}, and the mean "
            f"gain of our objective over {len(rows)} cells goes from {before:+.2f} to {after:+.2f} points.",
            f"Against the wider grid ours is {in_cells(rows, above)}{f': {lost}' * bool(lost)}.",
            f"Against `split_fixed_sequence` it is {in_cells(rows, split)}, by {other:+.2f} points in the mean.",
            f"The bound is broken in {ranged([100 * row[OURS]['broken'] for row in rows])} % of repeats by ours and in "
            f"{ranged([100 * row[way]['broken'] for row in rows for way in WAYS])} % by MAPIE; 5 % is promised.",
            "Not shown: grids of more than about 100 cuts, and real data.",
        ]
    )


def part_of(before: float, after: float) -> str:
    """How much of the gain comes from the grid, in words."""
    if before <= 0:
        return "There is no gain to explain"
    left = after / before
    return "Little of it" if left >= 0.9 else "A part of it" if left >= 0.5 else "Most of it"


def most_refused(rows: list[dict[str, Any]], way: str) -> str:
    return share(max(row[way]["refused"] for row in rows))


def in_cells(rows: list[dict[str, Any]], way: str) -> str:
    better, worse = counted_sides(row[way]["gain"] for row in rows)
    return f"better in {better} and worse in {worse} of {len(rows)} cells"


def label(row: dict[str, Any]) -> str:
    return f"{short(row['ask'])}, {row['scores']}, n = {row['n']:,}"


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [
        Panel(f"The true objective: ours against MAPIE, {way}", "points",
              [Line.of(label(row), row[way]["gain"]) for row in figures["rows"]])
        for way in WAYS
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    return (
        f"{figures['rows'][0]['repeats']} of {REPEATS} planned repeats per cell. Worlds with known "
        f"truth, confidence {share(figures['confidence'])}. *Quantiles*: 100 quantiles from 0.5 % "
        "to 99.5 % as parameters, as other studies of ours had set it up. *Cut above*: quantiles from 0 to 100 % and a "
        "cut above all scores. *Split*: `split_fixed_sequence`, a quarter of the rows learns the order. FPR is tested "
        "by fixed sequence from the safe end, precision by MAPIE's default. MAPIE 1.6.0 in an environment of its own."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [label(row), *(f"{share(row[name]['broken'])}, {share(row[name]['refused'])}" for name in (OURS, *WAYS)),
         *(gain(row[way]["gain"]) for way in WAYS)]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["cell", *(f"{name}: broken, refused" for name in (OURS, *WAYS)), *(f"gain over {way}" for way in WAYS)]
    brief = table(["cell", *(f"gain over {way}" for way in WAYS)], [[row[0], *row[-len(WAYS) :]] for row in rows])
    return f"Gain in points, in brackets the corrected error:\n\n{brief}\n\n{wide('cells', table(head, rows))}"
