"""The page on rare events in real tables."""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.common.answers import counted_sides, ranged
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import by_source, counted, gain, mean_and_error, of_sources, share, short, table, wide
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.rare_events.study import OURS, RIVALS

TITLE = "Rare events in real tables: 0.2 % positives, certified recall"
QUESTION = "How much of a rare class does a linear model find under a certified bound, if one row in 500 is positive?"
#: The numbers of splits that its cells have.
REPEATS = sorted({cell["splits"] for cell in load_figures("rare_events").get("cells", ())} - {1})
THREATS = (
    "Thinned positives are still those of a table with many: a class that is rare by nature may be harder.",
    "Two tables, one of them twice; a hundred positives train a model, and fewer set its threshold. Errors of means "
    "count tables, not cells, and so few tables say little of an error.",
    "A bound that is broken on the test rows may hold in truth: an FPR of 0.1 % is that of some 25 of them.",
    "Splits of one table overlap; the errors are corrected for that. " + chance_told(*REPEATS),
    "A linear model is asked for; trees are far better on ijcnn1 (see [tables](tables.md)).",
)


def claims(figures: dict[str, Any]) -> list[Claim]:
    told, cells = [], figures["cells"]
    for rival in RIVALS if cells else ():
        gains = gains_of(cells, rival)
        found = [sides(one, "corrected_standard_error") for one in gains]
        on = of_sources(len(cells), "cells", [cell["set"] for cell in cells])
        on += f", {min(cell['splits'] for cell in cells)} splits"
        told.append(Claim("rare events (0.2 %), linear: more certified recall in every cell",
                          counted(gains, found.count(1), found.count(-1)) + " (corrected)",
                          found.count(1) == len(cells), rival, on,
                          rival == RIVALS[-1], mean_and_error(gains)))  # fmt: skip
    return told


def gains_of(cells: list[dict[str, Any]], rival: str) -> list[dict[str, Any]]:
    return by_source(cells, lambda cell: cell["gain"][rival])


def shipped(cells: list[dict[str, Any]]) -> tuple[int, float]:
    """The number of cuts that flag any row, and the share of them whose bound is broken on test rows.

    A certificate that was refused ships a cut that flags nothing and cannot break a bound.
    """
    tried = round(sum(cell["splits"] * (1 - cell[OURS]["refused"]) for cell in cells))
    return tried, sum(cell["splits"] * cell[OURS]["broken"] for cell in cells) / tried


def answer(figures: dict[str, Any]) -> str:
    """How much is found, by how much more than by the strongest rival, and how often the bound was broken."""
    cells = figures["cells"]
    if not cells:
        return ""
    found = {name: 100 * statistics.mean(cell[name]["recall"] for cell in cells) for name in (OURS, *RIVALS)}
    strongest = max(RIVALS, key=lambda rival: found[rival])
    gains = gains_of(cells, strongest)
    (mean, error), (better, worse) = mean_and_error(gains), counted_sides(gains, "corrected_standard_error")
    none = sum(cell[OURS]["recall"] == 0 for cell in cells)
    within = "" if abs(mean) > 2 * error else " (within two standard errors)"
    splits = ranged([cell["splits"] for cell in cells], ".0f")
    return (
        f"The default finds {ranged([100 * cell[OURS]['recall'] for cell in cells])} % of the rare class, "
        f"{found[OURS]:.1f} % in the mean of {len(cells)} cells, and nothing in {none} of them. The strongest rival, "
        f"{strongest}, finds {found[strongest]:.1f} %: a {'gain' if mean > 0 else 'loss'} of {abs(mean):.1f} ± "
        f"{error:.1f} points{within}. Beyond two corrected standard errors the default is better in {better} "
        f"and worse in {worse} of {len(cells)} cells. {of_promises(cells)} Not shown: classes that are rare by "
        f"nature, other models than linear ones, and more than {splits} of {figures['planned']} planned splits."
    )


def of_promises(cells: list[dict[str, Any]]) -> str:
    """How many cuts break their bound, and whether so many could show that 5 % holds."""
    tried, broken = shipped(cells)
    # With fewer cuts than this none may be broken although more than 5 % are.
    needed = math.ceil(math.log(0.05) / math.log(0.95))
    few = f"; these are too few to say whether 5 % holds, which takes {needed} even if none is broken" * (
        tried < needed
    )
    return f"The bound is broken on test rows by {round(broken * tried)} of {tried} cuts that flag any row{few}."


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [
        Panel(f"Certified recall: the default against {rival}", "points of recall",
              [Line.of(f"{cell['set']}, {short(cell['ask'])}", cell["gain"][rival]) for cell in figures["cells"]])
        for rival in RIVALS
    ]  # fmt: skip


def section(figures: dict[str, Any]) -> str:
    brief, full = [], []
    for cell in figures["cells"]:
        own = [cell["set"], short(cell["ask"]), str(cell["splits"])]
        recalls = [share(cell[name]["recall"]) for name in (OURS, *RIVALS)]
        brief.append([*own, *recalls, gain(cell["gain"][RIVALS[-1]])])
        gains = [gain(cell["gain"][rival]) for rival in RIVALS]
        shares = [share(cell[name][what]) for name in (OURS, *RIVALS) for what in ("refused", "broken")]
        full.append([*own, *recalls, *gains, *shares])
    head = ["set", "ask", "splits", *(f"recall, {name}" for name in (OURS, *RIVALS))]
    more = [*(f"gain over {rival}" for rival in RIVALS),
            *(f"{name}: {what}" for name in (OURS, *RIVALS) for what in ("flags nothing", "bound broken"))]  # fmt: skip
    return "\n\n".join(
        [
            "Recall on test rows at the certified cut; gain in points, in brackets the corrected error:",
            table([*head, "gain over the weights"], brief),
            wide("cells", table([*head, *more], full)),
        ]
    )


def design(figures: dict[str, Any]) -> str:
    sizes = {cell["set"]: cell["sizes"] for cell in figures["cells"]}
    told = "; ".join(
        f"{name}: " + ", ".join(f"{part} {rows:,} ({positives:,} positive)" for part, (rows, positives) in own.items())
        for name, own in sizes.items()
    )
    return (
        f"Positives are thinned at random to {share(figures['share'])} of the rows to train on, to choose on and for "
        "the threshold; those left over are test rows, so that a recall is known well, and the precision is computed "
        f"at that share. Rows: {told}. Certified at {share(figures['confidence'])}; a refusal, or a cut that flags "
        "nothing, has a recall of zero. All models are linear with the same ridge and are trained on training and "
        f"held-out rows; the weight is chosen on held-out rows by the exact ask. {figures['planned']} splits planned, "
        f"{figures['seeds'][0]} to {figures['seeds'][-1]}; written down in "
        "`benchmarks/studies/rare_events/study.py` before the first result."
    )
