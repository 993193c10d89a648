"""The page on our certificates beside MAPIE's controller."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain, share, short, table
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
    return table(head, rows)
