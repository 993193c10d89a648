"""The page on Tables 2 and 3 of the implicit-thresholds paper, run as published on Fashion-MNIST."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim, table_of
from benchmarks.common.words import counted, gain_or_loss, mean_and_error, share, short, table, wide
from benchmarks.common.words import gain as written
from benchmarks.studies.paper_fashion.page_changes import (
    asked,
    changes_table,
    gains,
    more_time,
    rows_of,
    sides_of,
    stepwise,
    time_closes,
    worth_of,
)
from benchmarks.studies.paper_fashion.study import (
    ANCHORED,
    AREAS,
    FNR_ASKS,
    LONGER,
    METHODS,
    OFTEN,
    OURS,
    PLAIN,
    PUBLISHED,
    RIVALS,
    SEEDS,
    TUNED,
    WARM,
)
from benchmarks.studies.paper_fashion.training import Plan

TITLE = "Tables 2 and 3 of the implicit-thresholds paper as published, on Fashion-MNIST"
QUESTION = (
    "Do implicit thresholds lower the FNR of a network at a fixed FPR when run as the paper runs them: its schedule of "
    "corrections, its temperatures, Adam without a schedule, many images?"
)
THREATS = (
    "CelebA cannot be had; 70,000 grey images of clothes stand for 202,599 faces, and three linear layers for five "
    "convolutions of 128 to 512 filters.",
    "The paper does not say how long it trains; 1,200 batches of 512 are 17.6 passes, with two corrections.",
    "Nothing was tuned for the Lagrangian, method 2 and the ablation: their prices and penalties have the defaults and "
    "the rate of the net. From a random start many of their runs collapse, so that they say little about TFCO or "
    "paper 004 as tuned by their authors.",
    "Splits overlap; the corrected errors say by how much. Few seeds make these errors uncertain. "
    + chance_told(len(SEEDS)),
)
Row = dict[str, Any]
#: Pairs of a method and a rival: those of the page, and those that stand in the full table of claims alone.
ASKED = ((PUBLISHED, PLAIN), (PUBLISHED, TUNED), (ANCHORED, PLAIN), (ANCHORED, LONGER))
ASKED_TOO = ((PUBLISHED, LONGER), (OURS, PLAIN))
#: The lines of the figure, in this order.
DRAWN = (PUBLISHED, ANCHORED, TUNED, LONGER)


def claims(figures: dict[str, Any]) -> list[Claim]:
    return claims_of(figures, ASKED)


def claims_of(figures: dict[str, Any], pairs: tuple[tuple[str, str], ...]) -> list[Claim]:
    told = []
    for method, rival in pairs:
        for area in (False, True):
            if rows := rows_of(figures, method, area):
                gains = [row["gain"][rival] for row in rows]
                better, worse = sides_of(gains)
                what = "3, area" if area else "2, FNR"
                says = (
                    f"paper 000, Table {what}, Fashion-MNIST: {method.removeprefix('implicit, ')}, better in every cell"
                )
                effect = counted(gains, better, worse) + " (corrected)"
                on = f"MLP, {Plan().steps:,} steps, {min(row['seeds'] for row in rows)} seeds"
                first = (method, rival, area) == (*ASKED[0], False)
                told.append(Claim(says, effect, better == len(rows), rival, on, first, mean_and_error(gains)))
    return told


def answer(figures: dict[str, Any]) -> str:
    """Whether the published form gains, and why not, in a few sentences; none before the changes have been run."""
    steps = [rows for area in (False, True) if (rows := stepwise(figures, area))]
    if len(steps) < 2:
        return ""
    first = " and ".join(lost_or_gained(figures, area) for area in (False, True))
    worth = "; ".join(f"{worth_of(rows)} ({asked(rows[0]['ask'])})" for rows in steps)
    return (
        f"Run as the paper runs them, implicit thresholds {first}, against cross-entropy of the same steps. Changed "
        f"one thing at a time into our anchored form, they gain most by: {worth}. {time_closes(figures)}"
        f"{over_all(figures)}"
    )


def lost_or_gained(figures: dict[str, Any], area: bool) -> str:
    own = gains(figures, PUBLISHED, area)
    better, worse = sides_of(own)
    what, places = ("area", "ranges") if area else ("FNR", "bounds")
    told = gain_or_loss(mean_and_error(own)[0])
    return f"{told} of {what} (better in {better} of {len(own)} {places}, worse in {worse})"


def over_all(figures: dict[str, Any]) -> str:
    """The anchored form over cross-entropy of the same steps, and of three times as many."""
    means = {rival: [mean_and_error([row["gain"][rival] for row in rows_of(figures, ANCHORED, area)])[0]
                     for area in (False, True)] for rival in (PLAIN, LONGER)}  # fmt: skip
    (fnr, area), (fnr_longer, area_longer) = means[PLAIN], means[LONGER]
    return (
        f"Over all bounds and ranges the anchored form has {fnr:+.1f} points of FNR and {area:+.1f} of area over "
        f"cross-entropy of the same steps, but over cross-entropy with three times the steps {fnr_longer:+.1f} and "
        f"{area_longer:+.1f}."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    """The gain over cross-entropy of the same steps, by method and then by bound or range."""
    panels = []
    for area, title, axis in ((False, "FNR at a bound of the FPR", "points of FNR"),
                              (True, "ROC area over a range of the FPR", "points of area")):  # fmt: skip
        places = AREAS if area else FNR_ASKS
        lines = [
            Line.of(f"{row['method']}, {'0 to ' if area else 'FPR '}{places[row['ask']]} %", row["gain"][PLAIN])
            for method in DRAWN for row in sorted(rows_of(figures, method, area), key=lambda row: places[row["ask"]])
        ]  # fmt: skip
        panels.append(Panel(f"{title}: against cross-entropy of the same steps", axis, lines))
    return panels


def design(figures: dict[str, Any]) -> str:
    return (
        "Kumar, Narasimhan and Cotter, ICML 2021, Tables 2 and 3. Shirts against the rest, 35,000 images to train on, "
        "10,500 to choose on, 10,500 for the threshold, 14,000 to test; 784-32-32-1, batches of 512, Adam at 0.001, "
        "1,200 steps from one random start; the best of twelve states on held-out rows, for every method alike. "
        f"*{PUBLISHED}*: Algorithm 1 with the gradient step of the threshold, a correction by the true rates every "
        "1,000 steps on the next 10 batches, temperature 0.001, 0.01, 0.1 or 1 by held-out rows (areas: every 100 "
        f"steps). *{OURS}*: `sp.ImplicitThreshold(problem)`. *{ANCHORED}*: a quarter of the steps by "
        f"cross-entropy, then both. Seeds {figures['seeds'][0]} to {figures['seeds'][-1]}; written down in "
        "`benchmarks/studies/paper_fashion/study.py` before the first result."
    )


def found_out(figures: dict[str, Any]) -> list[str]:
    """Where a gain comes from, counted."""
    told = [line for area in (False, True) for line in more_time(figures, area)]
    for method in (OFTEN, WARM):
        for row in rows_of(figures, method):
            told.append(
                f"*{method[0].upper()}{method[1:]}* ({asked(row['ask'])}, {row['seeds']} seeds, added after the "
                f"results): {written(row['gain'][PLAIN])} over cross-entropy; FNR {share(row['test'])}."
            )
    for method in (PUBLISHED, OURS, ANCHORED):
        if own := rows_of(figures, method):
            gains = {rival: statistics.mean(100 * row["gain"][rival]["mean"] for row in own) for rival in RIVALS}
            means = ", ".join(f"{value:+.2f} over {rival}" for rival, value in gains.items())
            told.append(f"*{method[0].upper()}{method[1:]}*, FNR in the mean of {len(own)} bounds: {means}.")
    if own := rows_of(figures, PUBLISHED):
        chosen = [setting for row in own for setting in row["settings"]]
        counts = ", ".join(f"{setting} in {chosen.count(setting)}" for setting in sorted(set(chosen), key=float))
        shipped = statistics.mean(100 * row["shipped gain"][PLAIN]["mean"] for row in own)
        told.append(
            f"*As shipped*, at the threshold set on calibration rows, the published form has {shipped:+.2f} over "
            f"cross-entropy. Temperatures chosen for FNR: {counts}."
        )
    if rows := rows_of(figures, LONGER):
        told.append(
            "*More steps*: cross-entropy with three times the steps gains "
            f"{statistics.mean(100 * row['gain'][PLAIN]['mean'] for row in rows):+.2f} points of FNR over itself."
        )
    return told


def section(figures: dict[str, Any]) -> str:
    full = []
    for row in figures["rows"]:
        shipped = row.get("shipped gain")
        cells = [short(row["ask"]), row["method"], str(row["seeds"]), share(row["test"]),
                 *("" if row["method"] == rival else written(row["gain"][rival]) for rival in RIVALS),
                 share(row.get("at threshold")), share(row.get("fpr")),
                 written(shipped[PLAIN]) if shipped else "", ", ".join(row["settings"]),
                 f"{row['seconds']:.0f}"]  # fmt: skip
        full.append(cells)
    head = ["ask", "method", "seeds", "best cut", *(f"over {rival}" for rival in RIVALS), "as shipped", "FPR there",
            "over cross-entropy there", "chosen", "seconds"]  # fmt: skip
    return "\n\n".join(
        [
            *changes_table(figures),
            "\n".join(f"- {line}" for line in found_out(figures)),
            "**All methods** over cross-entropy of the same steps, in points: FNR at the best cut of the test curve, "
            "as published, and the area by McClish; the mean over bounds or ranges ± its error. Methods of a single "
            "bound, figures as shipped, temperatures and other rivals stand in the full tables:",
            by_method(figures),
            wide("cells", table(head, full)),
            wide("claims", table_of(claims_of(figures, (*ASKED, *ASKED_TOO)))),
        ]
    )


def by_method(figures: dict[str, Any]) -> str:
    """A row per method: its mean gain over the four bounds and over the five ranges."""
    rows = []
    for method in (TUNED, LONGER, *METHODS):
        cells = []
        for area in (False, True):
            own = gains(figures, method, area)
            seeds = min((row["seeds"] for row in rows_of(figures, method, area)), default=0)
            mean, error = mean_and_error(own) if own else (0.0, 0.0)
            cells += [f"{mean:+.2f} ± {error:.2f}", f"{len(own)}, {seeds}"] if len(own) > 1 else ["", ""]
        if any(cells):
            rows.append([method, *cells])
    return table(["method", "FNR", "bounds, seeds", "area", "ranges, seeds"], rows)
