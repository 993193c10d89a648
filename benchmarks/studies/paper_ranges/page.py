"""The section on Figure 3 of the implicit-thresholds paper."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.figure import Figure

from benchmarks.common.answers import counted_sides
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, gain, table, wide
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.paper_tabular.study import AS_PUBLISHED, FOLLOWING

CAPTION = (
    "Points over cross-entropy by the start of the range of recall, with two plain standard errors to either side; "
    "above zero is better."
)
TITLE = "Figure 3 of the implicit-thresholds paper"
QUESTION = "Is the gain of implicit thresholds largest where the range of recall is narrow, as Figure 3 shows?"
THREATS = (
    "The paper prints a plot without figures, so only the direction can be compared.",
    "Two sets; splits of one set overlap.",
    "Against the best of 21 weights little of the gain over cross-entropy is left; the sentences count it.",
)
OURS = ("default", AS_PUBLISHED, "auto")
Row = dict[str, Any]


def claims(figures: dict[str, Any]) -> list[Claim]:
    rows = [row for row in figures["rows"] if row["method"] == AS_PUBLISHED]
    if not rows:
        return []
    most = [max((row for row in rows if row["set"] == name), key=lambda row: row["minus cross-entropy"]["mean"])
            for name in dict.fromkeys(row["set"] for row in rows)]  # fmt: skip
    shown = [(row["set"], row["minus cross-entropy"]) for row in most]
    told = "; ".join(f"{name} {gain['mean']:+.2f} ± {gain['standard_error']:.2f}" for name, gain in shown)
    near = all(row["beta"] >= 0.95 for row in most)
    on = f"{len(most)} sets, {len(figures['seeds'])} splits"
    claim = "paper 000, Figure 3: implicit most ahead for recall from 95 %"
    return [Claim(claim, told, near, "cross-entropy", on)]


def answer(figures: dict[str, Any]) -> str:
    """Where the gain over cross-entropy is largest and least, and what is left over tuned weights."""
    rows = [row for row in figures["rows"] if row["method"] == AS_PUBLISHED]
    if not rows:
        return ""
    over = [row["minus best of 21 weights"] for row in rows]
    mean = statistics.mean(one["mean"] for one in over)
    plain, strict = counted_sides(over), counted_sides(over, "corrected_standard_error")
    return (
        f"{'Yes' if claims(figures)[0].met else 'No'}, over cross-entropy: {'; '.join(by_set(rows))}. Over the best of "
        f"21 class weights, the strongest rival, which the paper does not try, the mean "
        f"{'gain' if mean > 0 else 'loss'} is {abs(mean):.1f} points: beyond two plain standard errors better in "
        f"{plain[0]} and worse in {plain[1]} of {len(rows)} cells, beyond two corrected ones in {strict[0]} and "
        f"{strict[1]}. Not shown: the size of the paper's gains, which it plots without figures, and other sets."
    )


def by_set(rows: list[Row]) -> list[str]:
    """The ranges with the largest and the least gain over cross-entropy, of every set."""
    told = []
    for name in dict.fromkeys(row["set"] for row in rows):
        own = sorted((row for row in rows if row["set"] == name), key=lambda row: row["minus cross-entropy"]["mean"])
        most, least = (f"{row['minus cross-entropy']['mean']:+.1f} points (recall from {100 * row['beta']:g} %)"
                       for row in (own[-1], own[0]))  # fmt: skip
        told.append(f"on {name} the largest gain is {most} and the least {least}")
    return told


def design(figures: dict[str, Any]) -> str:
    return (
        "The area under the precision-recall curve over recall from beta to 100 %, in percent, trained and judged anew "
        f"for each beta; splits of 50/25/25, seeds {figures['seeds'][0]} to {figures['seeds'][-1]}, and what is "
        "tuned as in [Table 5](paper_tabular.md)."
    )


def section(figures: dict[str, Any]) -> str:
    rows = figures["rows"]
    if not rows:
        return "No set has two splits yet."
    methods = list(dict.fromkeys(row["method"] for row in rows))
    ours = [method for method in OURS if method in methods]
    areas, gains = [], []
    for name, beta in dict.fromkeys((row["set"], row["beta"]) for row in rows):
        own = {row["method"]: row for row in rows if (row["set"], row["beta"]) == (name, beta)}
        splits = next(iter(own.values()))["splits"]
        shown = [f"{found['mean']:.2f} ± {found['standard_error']:.2f}" for found in (own[m]["area"] for m in methods)]
        areas.append([name, f"{beta:g}", str(splits), *shown])
        for method in ours:
            gains.append([name, f"{beta:g}", method, gain(own[method]["minus cross-entropy"], 1),
                          gain(own[method]["minus best of 21 weights"], 1)])  # fmt: skip
    brief = table(
        ["set", "recall from", "implicit as published over cross-entropy", "over the best of 21 weights"],
        [[name, f"{100 * float(beta):g} %", *both] for name, beta, method, *both in gains if method == AS_PUBLISHED],
    )
    of_gains = table(["set", "beta", "method", "over cross-entropy", "over the weights"], gains)
    told = "\n".join(f"- {verdict([row for row in rows if row['method'] == method])}" for method in ours)
    of_areas = table(["set", "beta", "splits", *methods], areas)
    parts = [
        "Points of area, in brackets the corrected error:",
        brief,
        told,
        wide("areas", of_areas),
        wide("gains", of_gains),
    ]
    return "\n\n".join([*parts, *changed([row for row in rows if f"minus {FOLLOWING}" in row])])


def changed(rows: list[Row]) -> list[str]:
    """By how much the form with held thresholds differs from the one with the linearised update."""
    if not rows:
        return []
    found = [row[f"minus {FOLLOWING}"] for row in rows]
    means = [one["mean"] for one in found]
    better, worse = ([sides(one, "standard_error") for one in found].count(side) for side in (1, -1))
    return [
        f"*{AS_PUBLISHED}* and *{FOLLOWING}* are those of Table 5. The first minus the second lies between "
        f"{min(means):+.2f} and {max(means):+.2f} points; of {len(rows)} cells it is better in {better} by plain "
        f"errors, worse in {worse}."
    ]


def verdict(rows: list[Row]) -> str:
    """Where a method is most ahead of cross-entropy, and how often it is ahead of the best weight and behind it."""
    most = [max((r for r in rows if r["set"] == name), key=lambda r: r["minus cross-entropy"]["mean"])
            for name in dict.fromkeys(row["set"] for row in rows)]  # fmt: skip
    found = {error: [sides(row["minus best of 21 weights"], error) for row in rows] for error in ERRORS}
    better, worse = ([of.count(side) for of in found.values()] for side in (1, -1))
    at = " and ".join(f"{row['beta']:g} ({row['set']})" for row in most)
    return (
        f"*{rows[0]['method']}* is most ahead of cross-entropy at beta {at}; of {len(rows)} cells it is better than "
        f"the best of 21 weights in {better[0]} by plain errors ({better[1]} by corrected ones), worse in {worse[0]} "
        f"({worse[1]})."
    )


def figure(figures: dict[str, Any]) -> Figure | None:
    """A panel a set: over the start of the range, each method's gain over cross-entropy, with two standard errors."""
    rows = figures["rows"]
    if not rows:
        return None
    sets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "method"))
    methods.remove("cross-entropy")
    drawn = Figure(figsize=(3.6 * len(sets) + 1.6, 3.0))
    panels = drawn.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, sets):
        for place, method in enumerate(methods):
            own = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            gains = [row["minus cross-entropy"] for row in own]
            # Side by side, and evenly spaced: most of the betas lie near 1.
            places = [number + 0.08 * (place - (len(methods) - 1) / 2) for number in range(len(own))]
            panel.errorbar(places, [gain["mean"] for gain in gains], [2 * gain["standard_error"] for gain in gains],
                           fmt="o-", markersize=3, linewidth=1, label=method)  # fmt: skip
            panel.set_xticks(range(len(own)), [f"{row['beta']:g}" for row in own])
        panel.axhline(0, color="#888888", linewidth=0.8)
        panel.set_title(name, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("recall from", fontsize=7)
    panels[0].set_ylabel("points over cross-entropy", fontsize=7)
    panels[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    drawn.tight_layout()
    return drawn
