"""What the learning rate does to cross-entropy and to the programs of Tables 1 to 4."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.common.answers import ranged
from benchmarks.common.words import changed, table
from benchmarks.studies.paper_programs.published import TABLE_1
from benchmarks.studies.paper_programs.verdict import COLUMN

Row = dict[str, Any]


def of_rates(rows: list[Row], tuned: list[Row]) -> list[str]:
    """How often each rate is chosen, so that one sees whether the best lies at their end; what the rate does alone."""
    chosen = Counter(pace for row in tuned if row["figure"] in ("AUC", "AUC-mu", "F at zero") for pace in row["paces"])
    often = ", ".join(f"{pace:g} in {chosen[pace]}" for pace in sorted(chosen))
    often = f"Multiples of the plan's rate chosen in {chosen.total()} cases: {often}."
    told = []
    at_91 = [
        {row["method"]: row for row in here if (row["table"], row["level"]) == ("halves", 91)} for here in (rows, tuned)
    ]
    if all("cross-entropy" in here for here in at_91):
        gain = at_91[1]["cross-entropy"]["value"]["mean"] - at_91[0]["cross-entropy"]["value"]["mean"]
        published = TABLE_1[91]["program"] - TABLE_1[91]["cross-entropy"]
        told.append(
            f"*The rate.* A chosen rate alone is worth {gain:+.1f} points to cross-entropy at 91 % positive; the "
            f"published gain of the program is {published:+.1f}, at a rate of three tried that is the same in all of "
            f"the paper's experiments. {often}"
        )
    return told or [often]


def as_weak(figures: dict[str, Any]) -> list[str]:
    """Is the published gain that over an under-trained baseline? The rate at which ours is as weak as the published."""
    rows = of_level(figures, "halves", 91)
    told, published = TABLE_1[91]["cross-entropy"], TABLE_1[91]["program"]
    plain = [row for row in rows if row["method"] == "cross-entropy"]
    if not plain:
        return []
    weak = min(plain, key=lambda row: abs(row["value"]["mean"] - told))
    there = [row for row in rows if row["pace"] == weak["pace"] and COLUMN.get(row["method"]) == "program"]
    rate = dict(zip(sorted({row["pace"] for row in rows}), figures["rates"]))[weak["pace"]]
    gains = ", ".join(f"{row['method']} {changed(row['value']['mean'], row['minus cross-entropy'])}" for row in there)
    none = all(row["minus cross-entropy"]["mean"] <= 0 for row in there)
    return [
        f"*Under-trained?* Published at 91 % positive: cross-entropy {told:.1f}, the program {published:.1f}. At the "
        f"rate where ours is nearest to as weak, {rate:g}, cross-entropy has {weak['value']['mean']:.1f} and the "
        f"program {gains}.{' So a weak baseline alone does not make the gain.' * none}"
    ]


def gains_at(rows: list[Row]) -> dict[str, list[dict[str, float]]]:
    """By method, its gain over cross-entropy at each rate; the programs, and their forms with a margin of 1."""
    found: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        if COLUMN.get(row["method"]) == "program" or row["method"].endswith("margin 1"):
            found.setdefault(row["method"], []).append(row["minus cross-entropy"])
    return found


#: The cells that were run at every rate.
PLACES = (("halves", 91), ("halves", 50), ("groups", 90), ("f-score", 50))


def rates_table(figures: dict[str, Any]) -> list[str]:
    """What the rate does to cross-entropy, and whether there is a rate at which the program is ahead of it."""
    lines = []
    for name, level in PLACES:
        rows = of_level(figures, name, level)
        plain = [row["value"]["mean"] for row in rows if row["method"] == "cross-entropy"]
        for method, gains in gains_at(rows).items() if plain else ():
            ahead, behind = (sum(side * one["mean"] > 2 * one["standard_error"] for one in gains) for side in (1, -1))
            lines.append([f"{rows[0]['figure']} of {name}, {level} %", method, ranged(plain),
                          ranged([one["mean"] for one in gains], "+.1f"), f"{ahead}, {behind}"])  # fmt: skip
    if not lines:
        return []
    head = ["cell", "program", "cross-entropy", "gain at the same rate", "better, worse"]
    return [
        f"At one rate for both, over {len(figures['rates'])} rates, from the least to the most; better and worse count "
        "rates beyond two plain standard errors:",
        table(head, lines),
    ]


def best_of_rates(figures: dict[str, Any], name: str, level: int) -> list[str]:
    """The same in one short sentence, for the list of the papers: the best gain at any of the rates."""
    gains = gains_at(of_level(figures, name, level))
    best = "; ".join(f"{method} {max(one['mean'] for one in own):+.1f}" for method, own in gains.items())
    return [f"At one rate for both, the best gain at any rate ([all rates](paper_programs.md)): {best}."] * bool(gains)


def of_level(figures: dict[str, Any], name: str, level: int) -> list[Row]:
    return [row for row in figures.get("by rate", []) if (row["table"], row["level"]) == (name, level)]
