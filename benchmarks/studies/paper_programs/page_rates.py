"""What the learning rate does to cross-entropy and to the programs of Tables 1 to 4."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.common.words import changed
from benchmarks.studies.paper_programs.published import TABLE_1
from benchmarks.studies.paper_programs.verdict import COLUMN

Row = dict[str, Any]


def of_rates(rows: list[Row], tuned: list[Row]) -> list[str]:
    """How often each rate is chosen, so that one sees whether the best lies at their end; what the rate does alone."""
    chosen = Counter(pace for row in tuned if row["figure"] in ("AUC", "AUC-mu", "F at zero") for pace in row["paces"])
    often = ", ".join(f"{pace:g} in {chosen[pace]}" for pace in sorted(chosen))
    told = [f"Multiples of the plan's rate chosen in {chosen.total()} cases: {often}."]
    at_91 = [
        {row["method"]: row for row in here if (row["table"], row["level"]) == ("halves", 91)} for here in (rows, tuned)
    ]
    if all("cross-entropy" in here for here in at_91):
        gain = at_91[1]["cross-entropy"]["value"]["mean"] - at_91[0]["cross-entropy"]["value"]["mean"]
        published = TABLE_1[91]["program"] - TABLE_1[91]["cross-entropy"]
        told.append(
            f"The rate alone is worth {gain:+.1f} points to cross-entropy at 91 % positive; the published gain of the "
            f"program is {published:+.1f}, at a rate of three tried that is the same in all of the paper's experiments."
        )
    return told


def as_weak(figures: dict[str, Any]) -> str:
    """Is the published gain that over an under-trained baseline? The rate at which ours is as weak as the published."""
    rows = of_level(figures, "halves", 91)
    told, published = TABLE_1[91]["cross-entropy"], TABLE_1[91]["program"]
    weak = min(
        (row for row in rows if row["method"] == "cross-entropy"), key=lambda row: abs(row["value"]["mean"] - told)
    )
    there = [row for row in rows if row["pace"] == weak["pace"] and COLUMN.get(row["method"]) == "program"]
    rate = dict(zip(sorted({row["pace"] for row in rows}), figures["rates"]))[weak["pace"]]
    gains = ", ".join(f"{row['method']} {changed(row['value']['mean'], row['minus cross-entropy'])}" for row in there)
    return (
        f"Published at 91 % positive: cross-entropy {told:.1f}, the program {published:.1f}. Is that a gain over an "
        f"under-trained baseline? At the rate at which cross-entropy is nearest to as weak here, {rate:g}, it has "
        f"{weak['value']['mean']:.1f}, and the program at the same rate: {gains}. So a weak baseline alone does not "
        "make the gain."
    )


def gains_at(rows: list[Row]) -> dict[str, list[dict[str, float]]]:
    """By method, its gain over cross-entropy at each rate; the programs, and their forms with a margin of 1."""
    found: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        if COLUMN.get(row["method"]) == "program" or row["method"].endswith("margin 1"):
            found.setdefault(row["method"], []).append(row["minus cross-entropy"])
    return found


def at_one_rate(figures: dict[str, Any], name: str, level: int) -> list[str]:
    """What the rate does to cross-entropy, and whether there is a rate at which the program is ahead of it."""
    rows = of_level(figures, name, level)
    plain = [row["value"]["mean"] for row in rows if row["method"] == "cross-entropy"]
    if not plain:
        return []
    told = []
    for method, gains in gains_at(rows).items():
        ahead = sum(one["mean"] > 2 * one["standard_error"] for one in gains)
        means = [one["mean"] for one in gains]
        told.append(f"{method} {min(means):+.1f} to {max(means):+.1f}, better at {ahead}")
    return [
        f"At one rate for both, {name} at {level} %: over {len(plain)} rates cross-entropy's {rows[0]['figure']} goes "
        f"from {min(plain):.1f} to {max(plain):.1f}; the gains over it at the same rate are: {'; '.join(told)}."
    ]


def best_of_rates(figures: dict[str, Any], name: str, level: int) -> list[str]:
    """The same in one short sentence, for the list of the papers: the best gain at any of the rates."""
    gains = gains_at(of_level(figures, name, level))
    best = "; ".join(f"{method} {max(one['mean'] for one in own):+.1f}" for method, own in gains.items())
    return [f"At one rate for both, the best gain at any rate ([all rates](paper_programs.md)): {best}."] * bool(gains)


def of_level(figures: dict[str, Any], name: str, level: int) -> list[Row]:
    return [row for row in figures.get("by rate", []) if (row["table"], row["level"]) == (name, level)]
