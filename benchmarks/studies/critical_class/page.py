"""The page on Table 1 of the paper on critical classes: all its base losses at both ratios."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.harness import Journal, load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, mean_and_error, table, wide
from benchmarks.studies.critical_class import page_earlier as earlier
from benchmarks.studies.critical_class.ladder import FIRST
from benchmarks.studies.critical_class.page_ladder import largest, rungs, some
from benchmarks.studies.critical_class.page_limits import capped, most, of_choice, of_claim, of_draws
from benchmarks.studies.critical_class.published import COLUMNS, TABLE_1
from benchmarks.studies.critical_class.verdict import ALONE, CONSTRAINED

TITLE = "Table 1 of the paper on critical classes: a pair of CIFAR-10"
QUESTION = "Does the augmented Lagrangian of paper 003 help a rare, critical class, whatever the base loss?"
CAPTION = (
    "Ten models together; positive is better for AUC and for the FPR, and the errors are from drawing models and test "
    "images anew. A hollow diamond is the published gain, which has no error."
)
THREATS = (
    "A net of five convolutions of 8 to 64 filters stands for the ResNet-10 of the paper, and a JPEG copy of CIFAR-10 "
    "for the originals; the paper does not say which two classes it drew, and pairs differ by more than methods do.",
    "One pair of classes and one test set: the error is of models and of test images, not of pairs.",
    of_draws(),
    of_choice(),
    "The earlier study rests on three of nine base losses, one model per seed in place of an ensemble of ten, few "
    "seeds, and a rate at which the nets are worse than they could be.",
)
#: BCE alone counts as reproduced if its AUC is within so many points, what the start alone moves a single model by.
WITHIN = 2.0
WORST = COLUMNS[0]
MAIN = "critical_class_nine"
Row = dict[str, Any]


def constrained(whole: dict[str, Any]) -> list[Row]:
    """The cells of all base losses that more than one model stands for."""
    return [row for row in whole.get("rows", ()) if CONSTRAINED in row and row["models"] > 1]


def main_rows() -> list[Row]:
    return constrained(load_figures(MAIN))


def together(rows: list[Row], column: str) -> tuple[list[dict[str, float]], int, int]:
    """The gains of averaged logits, and how many of them are above and below zero by two standard errors."""
    gains = [row["gain"][column]["together"] for row in rows]
    better, worse = (sum(side * gain["mean"] > 2 * gain["standard_error"] for gain in gains) for side in (1, -1))
    return gains, better, worse


def claims(figures: dict[str, Any]) -> list[Claim]:
    main = of_main(main_rows())
    return [*main, *level(load_figures("critical_class_ladder")), *earlier.claims(figures, index=not main)]


def of_main(rows: list[Row]) -> list[Claim]:
    """The claims over all base losses at the rate where BCE alone is as good as published."""
    told = []
    for column in ("AUC", WORST) if rows else ():
        gains, better, worse = together(rows, column)
        on = f"1 pair, {len(rows)} cells, {some([row['models'] for row in rows])} models"
        told.append(Claim(f"paper 003, Table 1: constraint improves {column} in most cells",
                          counted(gains, better, worse, 1), most(better, worse, len(rows)), "the base loss alone", on,
                          column == "AUC", mean_and_error(gains, 1)))  # fmt: skip
    return told


def level(ladder: dict[str, Any]) -> list[Claim]:
    """Whether BCE alone is as good as published, in ensembles as published; nothing if the ladder has not run.

    The first claim has the change that helps most, with what the plan of this study had before it.
    """
    own = [row for row in ladder.get("rows", ()) if row["change"] == FIRST]
    return [
        Claim(f"paper 003, Table 1: AUC of BCE alone within {WITHIN:g} points"
              + (f", {row['change']}" if row != own[0] else ", first rate"),
              f"{row['together']['AUC']:.1f} by {row['runs']} models together, {row['AUC']:.1f} by one"
              + f"; before {row['first rung together']['AUC']:.1f}, {row['first rung']:.1f}" * (row != own[0]),
              row["together"]["AUC"] >= ladder["published AUC"] - WITHIN, f"published {ladder['published AUC']:.1f}",
              "CIFAR-10 pair, 1:100")
        for row in (*([largest(ladder)] if own else []), *own)
    ]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """The answer in a few sentences, from all base losses; none before they have run."""
    rows = main_rows()
    if not rows:
        return ""
    gains, better, worse = together(rows, "AUC")
    rates, lower, higher = together(rows, WORST)
    mean, rate = (mean_and_error(own, 1)[0] for own in (gains, rates))
    published = [statistics.mean(row["gain"][column]["published"] for row in rows) for column in ("AUC", WORST)]
    unseen = [
        [f"{2 * end(gain['standard_error'] for gain in own):.1f}" for end in (min, max)] for own in (gains, rates)
    ]
    return (
        f"{verdict_of(better, worse, len(rows))} Over {len(rows)} cells (base losses at 1:100 and 1:200, "
        f"{some([row['models'] for row in rows])} models together) the mean gain is {mean:+.1f} points of "
        f"AUC and {rate:+.1f} points of {WORST} (better in {lower}, worse in {higher}); the paper reports "
        f"{published[0]:+.1f} and {published[1]:+.1f}. {over_weak_losses(rows)}In one cell a gain "
        f"of less than two standard errors, {' to '.join(unseen[0])} points of AUC and {' to '.join(unseen[1])} of "
        "this FPR, would not show here."
    )


def verdict_of(better: int, worse: int, cells: int) -> str:
    if better == worse == 0:
        return "No gain was found: every change in AUC is within two standard errors."
    if better == cells:
        return "Yes: every base loss gains AUC beyond two standard errors."
    return (
        f"Not in general: AUC is better in {better} and worse in {worse} of {cells} cells beyond two standard errors."
    )


def nine(figures: dict[str, Any]) -> str:
    """Table 1 whole: a short table of gains in AUC, and all columns as CSV."""
    short = [
        [f"1:{row['ratio']}", row["loss"], beside(row[ALONE], "AUC"), gained(row, "AUC")]
        for row in constrained(figures)
    ]
    rows = []
    for row in figures["rows"]:
        for way in (ALONE, CONSTRAINED) if CONSTRAINED in row else (ALONE,):
            told = [gained(row, column) for column in (WORST, "AUC")] if way == CONSTRAINED else ["", ""]
            shown = [beside(row[way], column) for column in COLUMNS]
            setting = row["setting"] if way == CONSTRAINED else ""
            rows.append([f"1:{row['ratio']}", row["loss"], way, str(row["models"]), *shown, *told, setting])
    head = ["ratio", "base loss", "", "models", *COLUMNS, f"gain in {WORST}", "gain in AUC", "chosen"]
    return "\n\n".join(
        [
            "AUC of the base loss alone and the gain that the constraint brings, in brackets as published:",
            table(["ratio", "base loss", "AUC alone", "gain in AUC"], short),
            "All columns, and mini-batch AUC, which takes no constraint (`python -m "
            "benchmarks.studies.critical_class.nine_losses`):",
            wide("nine", table(head, rows)),
        ]
    )


def beside(own: Row, column: str) -> str:
    return f"{own['together'][column]:.1f} ({own['published'][column]:.1f})"


def gained(row: Row, column: str) -> str:
    own = row["gain"][column]
    error = f" ± {own['together']['standard_error']:.1f}" * (row["models"] > 1)
    return f"{own['together']['mean']:+.1f}{error} ({own['published']:+.1f})"


def gains_told(figures: dict[str, Any]) -> str:
    """The gains of all base losses at the rate at which BCE alone is as good as published."""
    rows, told = constrained(figures), []
    for column in ("AUC", WORST):
        gains, better, worse = together(rows, column)
        published = statistics.mean(row["gain"][column]["published"] for row in rows)
        told.append(f"{column} {mean_and_error(gains, 1)[0]:+.1f} (published {published:+.1f}), better in {better}, "
                    f"worse in {worse}")  # fmt: skip
    counts = {ratio: [row["models"] for row in rows if row["ratio"] == ratio] for ratio in TABLE_1}
    cells = " and ".join(f"{len(own)} base losses at 1:{ratio}, {some(own)} models together"
                         for ratio, own in counts.items() if own)  # fmt: skip
    return f"At a rate of 0.001 ({cells}) the mean gains, counted beyond two standard errors: {'; '.join(told)}."


def levels_told(figures: dict[str, Any]) -> str:
    """Where BCE alone is, beside the published figures."""
    plain = [
        f"at 1:{row['ratio']} {row[ALONE]['together']['AUC']:.1f} and {row[ALONE]['together'][WORST]:.1f} "
        f"({row[ALONE]['published']['AUC']:.1f} and {row[ALONE]['published'][WORST]:.1f})"
        for row in constrained(figures) if row["loss"] == "BCE"
    ]  # fmt: skip
    return f"AUC and {WORST} of BCE alone at a rate of 0.001, in brackets as published: {', '.join(plain)}."


def weak_losses(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The cells whose base loss alone is clearly better here than published, and the others."""
    weak = [row for row in rows if row[ALONE]["together"]["AUC"] > row[ALONE]["published"]["AUC"] + WITHIN]
    return weak, [row for row in rows if row not in weak]


def gains_of(rows: list[Row]) -> tuple[float, float]:
    """The mean gain in AUC, published and here."""
    pairs = [(row["gain"]["AUC"]["published"], row["gain"]["AUC"]["together"]["mean"]) for row in rows]
    published, ours = (statistics.mean(values) for values in zip(*pairs))
    return published, ours


def over_weak_losses(rows: list[Row]) -> str:
    """Whether published gains are those over base losses that are trained too weakly there; a space after it."""
    weak, others = weak_losses(rows)
    if not weak or not others:
        return ""
    (large, ours), (small, rest) = gains_of(weak), gains_of(others)
    told = (
        f"Where the base loss alone has an AUC more than {WITHIN:g} points better here than published ({len(weak)} "
        f"cells), the mean gain is {large:+.1f} as published and {ours:+.1f} here; in the other {len(others)} it is "
        f"{small:+.1f} and {rest:+.1f}. "
    )
    return told + largest_gain(weak) * (large > small and ours < large)


def largest_gain(weak: list[Row]) -> str:
    """How much of the published gain over weak base losses is that of one cell; a space after it."""
    first, *rest = sorted(weak, key=lambda row: -row["gain"]["AUC"]["published"])
    cell = f"{first['loss']} at 1:{first['ratio']} ({first['gain']['AUC']['published']:+.1f})"
    if not rest:
        return f"The former is one cell, {cell}. "
    return f"Most of the former is one cell, {cell}; the other {len(rest)} have {gains_of(rest)[0]:+.1f} as published. "


def named_weak(figures: dict[str, Any]) -> str:
    """Which cells these are, and the errors of the others."""
    weak, others = weak_losses(constrained(figures))
    if not weak or not others:
        return ""
    errors = [row["gain"]["AUC"]["together"]["standard_error"] for row in others]
    names = ", ".join(f"{row['loss']} at 1:{row['ratio']}" for row in weak)
    return (
        f"Base losses that are more than {WITHIN:g} points of AUC better here than published: {names}. In the other "
        f"{len(others)} cells the standard errors of the gain are {min(errors):.1f} to {max(errors):.1f}."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    """All base losses at both ratios, the published gain beside each."""
    return [
        Panel(f"{column}: gain by the constraint over the base loss alone", "points; a hollow diamond is published",
              [Line.of(f"1:{row['ratio']}, {row['loss']}", row["gain"][column]["together"], 1,
                       row["gain"][column]["published"]) for row in main_rows()])
        for column in ("AUC", WORST)
    ]  # fmt: skip


def section(figures: dict[str, Any]) -> str:
    main, ladder = load_figures(MAIN), load_figures("critical_class_ladder")
    limits = f" {capped(Journal(MAIN).rows.values())}" if main.get("rows") else ""
    parts = [
        *([nine(main), f"{levels_told(main)} {named_weak(main)}{limits}".strip()] if main.get("rows") else []),
        *([rungs(ladder)] if ladder else []),
        earlier.section(figures),
    ]
    return "\n\n".join(parts)


def design(figures: dict[str, Any]) -> str:
    main = load_figures(MAIN)
    of_whole = (
        f"*All base losses*: `{main['plan']}`, the rate that [one change at a time](#the-level-of-bce-alone-one-change-"
        "at-a-time) picked out with BCE alone, logits of ten models averaged as published; mu and margin once per "
        "loss, on the validation images of seed 0 at 1:100. "
        if main else ""
    )  # fmt: skip
    return (
        "Published: Sangalli, Erdil, Hoetker, Donati and Konukoglu, NeurIPS 2021, Table 1: the ensemble of ten "
        f"ResNet-10 on two classes drawn at random, without errors. {of_claim()} Here: ship against aeroplane, "
        "aeroplanes being rare, all ships but the 100 of validation, a net of five convolutions. In percent; lower FPR "
        "and higher AUC "
        f"are better. The FPR is at the cut that the test labels give, as published. {of_whole}*Earlier study*: "
        f"`{figures['plan']}`, one model per seed, {len(figures['seeds'])} planned, {figures['seeds'][0]} to "
        f"{figures['seeds'][-1]}; after the mean the paired change against the base loss alone, its standard error "
        "and, in brackets, the one corrected for overlapping splits. Constrained: the augmented Lagrangian, the best "
        f"by AUC on 100 validation images of each class of {'; '.join(figures['choices'])}. Mu grows by 2, up to 32 "
        "times itself, as in the authors' public code, where the margin is between logits; the paper has it between "
        "probabilities."
    )
