"""The page on Tables 1 to 4 of the paper on linear programs."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import counted_sides
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain as written
from benchmarks.studies.paper_programs import page_no_choice
from benchmarks.studies.paper_programs.page_rates import as_weak, of_rates, rates_table
from benchmarks.studies.paper_programs.page_tables import (
    CLAIMED,
    Row,
    all_of_program,
    main_table,
    margins,
    of_program,
    of_tables,
    place,
)
from benchmarks.studies.paper_programs.published import TABLE_1, TABLE_4
from benchmarks.studies.paper_programs.study import SEEDS

TITLE = "Tables 1 to 4 of the paper on linear programs, on CIFAR-10"
QUESTION = "Do linear programs as losses beat cross-entropy on AUC and F-score, as paper 001 / 002 has it?"
THREATS = (
    "A net of five convolutions and few steps stand for ResNet-18 and 40,000 steps, Adam on a cosine for a rate that "
    "is decayed three times, and a JPEG copy of CIFAR-10 for the originals.",
    "The programs are trained through their closed forms; [another study](lp_training.md) trains through the solver.",
    "Table 2 is on Cat&Dog and Table 3 on STL10 in the paper; only the changes can be compared. The pairwise squared "
    "hinge stands beside PPD-SG, which is another method.",
    chance_told(len(SEEDS)),
)


def section(figures: dict[str, Any]) -> str:
    rows, tuned = figures["rows"], figures.get("rate chosen", [])
    parts = [*main_table(rows, tuned)]
    weak = [*of_rates(rows, tuned), *as_weak(figures)] if tuned else []
    over = page_no_choice.told(page_no_choice.trained()) if tuned else []
    if weak or over:
        parts += ["## Is the published gain one over a weak baseline?", bullets([*weak, *over[:1]]), *over[1:]]
        parts += rates_table(figures)
    if told := found_out(rows):
        parts += ["## What makes the difference", bullets(told)]
    return "\n\n".join([*parts, *all_rows(figures)])


def bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def all_rows(figures: dict[str, Any]) -> list[str]:
    """The full tables, which become CSV files."""
    rows, tuned = figures["rows"], figures.get("rate chosen", [])
    halves = [row for row in rows if row["table"] == "halves"]
    first = [row for row in halves if row["method"].split(" ")[-1] not in ("0.1", "0.001")]
    rest = [row for row in rows if row["table"] != "halves"]
    parts = [*of_tables(first), margins(halves), *of_tables(rest)]
    if tuned:
        rates = ", ".join(f"{rate:g}" for rate in figures["rates"])
        parts.append(f"With the learning rate of every method chosen on held-out images as well, of {rates}:")
        parts += [one.replace("<!-- table", "<!-- rate-chosen-table") for one in of_tables(tuned)]
    return ["## All rows", *(one for one in parts if one)]


def answer(figures: dict[str, Any]) -> str:
    """Whether the program is ahead, where the paper claims it, and which part of the reason is seen."""
    rows, tuned = figures["rows"], figures.get("rate chosen", [])
    found = [row["minus cross-entropy"] for row in all_of_program(rows)]
    if not found or not tuned:
        return ""
    chosen = [row["minus cross-entropy"] for row in all_of_program(tuned)]
    (better, worse), (ahead, behind) = counted_sides(found), counted_sides(chosen)
    word = "No" if better + ahead == 0 else "Yes" if better == len(found) and ahead == len(chosen) else "Not in general"
    at_91 = of_program(tuned, "halves", "AUC", (91,))
    published = TABLE_1[91]["program"] - TABLE_1[91]["cross-entropy"]
    return " ".join(
        [
            f"{word}: with the paper's margin the program is better than cross-entropy, beyond two plain standard "
            f"errors, in {better} and worse in {worse} of {len(found)} cells; with the rate of every method chosen, in "
            f"{ahead} and {behind} of {len(chosen)}{beside_weights(rows)}.",
            f"At 91 % positive, where the paper gains {published:.1f} points of AUC, it has "
            f"{effect_of(at_91).replace('; ', ', ')}, rates chosen.",
            *page_no_choice.answered(page_no_choice.trained()),
            *threshold_told(rows),
            "Not shown: ResNet-18, 45,000 images, and the sets of Tables 2 and 3.",
        ]
    )


def beside_weights(rows: list[Row]) -> str:
    """In how many cells the program has the better mean than the stronger rival, weighted cross-entropy."""
    weighted = {place({**row, "method": ""}): row["minus cross-entropy"]["mean"] for row in rows
                if row["method"] == "weighted cross-entropy"}  # fmt: skip
    pairs = [(row["minus cross-entropy"]["mean"], weighted[where]) for row in all_of_program(rows)
             if (where := place({**row, "method": ""})) in weighted]  # fmt: skip
    if not pairs or sum(other for _, other in pairs) <= 0:
        return ""
    ahead = sum(ours > other for ours, other in pairs)
    return (
        f"; beside weighted cross-entropy, the strongest rival, its mean is better in {ahead} of {len(pairs)} cells at "
        "the plan's rate"
    )


def threshold_told(rows: list[Row]) -> list[str]:
    """What a tuned threshold alone is worth to cross-entropy, beside the published gain of the F-score."""
    at = {row["figure"]: row for row in rows if row["table"] == "f-score" and row["method"] == "cross-entropy"}
    if not at:
        return []
    gained = at["F at the held-out threshold"]["value"]["mean"] - at["F at zero"]["value"]["mean"]
    published = TABLE_4["program"] - TABLE_4["cross-entropy"]
    return [
        f"A tuned threshold, which the published cross-entropy does not have, is worth {gained:+.2f} points of F-score "
        f"to it; the published gain is {published:+.1f}."
    ]


def claims(figures: dict[str, Any]) -> list[Claim]:
    """With the rate of the plan, and with the rate of every method chosen."""
    told: list[Claim] = []
    for kind, rows in (("", figures["rows"]), (", rate chosen", figures.get("rate chosen", []))):
        for name, figure, number, levels in CLAIMED:
            own = of_program(rows, name, figure, levels)
            if own:
                gains = [row["minus cross-entropy"] for row in own]
                best = max(gains, key=lambda one: one["mean"])
                at = " at 91 % positive" if name == "halves" else ""
                # The picture has the form that does best.
                told.append(Claim(f"paper 001, Table {number}: program raises {figure}{at}{kind}",
                                  effect_of(own), all(one["mean"] > 2 * one["standard_error"] for one in gains),
                                  "cross-entropy", f"CIFAR-10, {len(figures['seeds'])} seeds",
                                  bool(kind) and figure == "AUC", (best["mean"], best["standard_error"])))  # fmt: skip
    return told


def effect_of(rows: list[Row]) -> str:
    """The gain of every form, or of every level where there is one form."""
    several = len({row["method"] for row in rows}) > 1
    named = [row["method"].split(",")[0] if several else
             f"{row['level']} % {'dropped' if row['table'] == 'groups' else 'positive'}" for row in rows]  # fmt: skip
    return "; ".join(f"{name} {written(row['minus cross-entropy'], 1)}" for name, row in zip(named, rows))


def where_it_loses(rows: list[Row]) -> str:
    """Table 1 at 50 % positive, where the published program is behind cross-entropy as well; a space before it."""
    own, published = of_program(rows, "halves", "AUC", (50,)), TABLE_1[50]
    if not own:
        return ""
    return (
        f" At 50 % positive the published program is behind too ({published['program']:.1f}, cross-entropy "
        f"{published['cross-entropy']:.1f}); here {effect_of(own)}."
    )


def forest(figures: dict[str, Any]) -> list[Panel]:
    """Beside the paper's program, by table and share of positives: at the rate of the plan, and with rates chosen."""
    told = {
        "at the rate of the plan": figures["rows"],
        "the rate of every method chosen": figures.get("rate chosen", []),
    }
    return [
        Panel(f"Linear programs against cross-entropy, {name}", "points",
              [Line.of(f"{figure}, {row['level']} %: {row['method']}", row["minus cross-entropy"], 1)
               for table_name, figure, *_ in CLAIMED for row in of_program(rows, table_name, figure)])
        for name, rows in told.items()
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    return (
        "Published: *Differentiable optimization of generalized nondecomposable functions using linear programs*, "
        "ICLR 2021 submission: ResNet-18, up to 45,000 images, 40,000 steps of 64, learning rate tuned, one seed, no "
        "errors; the program is claimed to gain most on imbalanced sets, and loses to cross-entropy at 50 % positive. "
        "Table 2 is on Cat&Dog and Table 3 on STL10, which are not here, so that only the changes can be set beside "
        "ours. Here: a JPEG copy of CIFAR-10, a net of five convolutions, Adam on a cosine, "
        f"`{figures['plan']}`, the largest class "
        f"{figures['largest class']:,} images (two thirds of it in Table 3), {figures['held out']:,} more to choose "
        f"the epoch and the class weight by, all 10,000 test images, {len(seeds)} seeds planned ({seeds[0]} to "
        f"{seeds[-1]}). Halves: classes 0 to 4 against 5 to 9, negatives dropped. Groups: classes 0 to 2, 3 to 5, 6 "
        "to 9, the first two dropped. In percent; after the mean the paired change against cross-entropy of the same "
        "seed, its standard error and, in brackets, the corrected one, by counts of "
        "images: 10,000 to test on over those trained on. Hinge is the value of the paper's program (2), "
        "ramp that of its equation (3), both in closed form; the paper's epsilon is both this margin and the tolerance "
        "of its Newton method, of which a closed form has none. Weighted cross-entropy is the best of three weights on "
        "held-out images, no weight among them."
    )


def spreads_of(rows: list[Row]) -> dict[str, float]:
    """By method, the standard deviation of the test scores at 91 % positive."""
    there = [row for row in rows if (row["table"], row["level"]) == ("halves", 91)]
    return {row["method"]: row["spread of scores"] for row in there if row["spread of scores"] is not None}


def of_margin(rows: list[Row]) -> str:
    """What a small margin does to the scores, in a sentence for the list of the papers."""
    spreads = spreads_of(rows)
    return (
        f"Under the hinge the test scores have a standard deviation of {spreads['hinge, margin 0.01']:.2g} with a "
        f"margin of 0.01 and of {spreads['hinge, margin 1']:.2g} with one of 1 ([why](paper_programs.md))."
    )


def found_out(rows: list[Row]) -> list[str]:
    told = []
    spreads = spreads_of(rows)
    narrow, wide = spreads.get("hinge, margin 0.01"), spreads.get("hinge, margin 1")
    if narrow and wide:
        told.append(
            "A pair in the wrong order costs the hinge its distance, so that a small margin is cheapest met by scores "
            f"that hardly differ: at 91 % positive the test scores have a standard deviation of {narrow:.2g} at margin "
            f"0.01, {wide:.2g} at margin 1 and {spreads['cross-entropy']:.2g} under cross-entropy. The ramp gives a "
            "gradient to pairs within the margin only."
        )
    at = {row["figure"]: row for row in rows if row["table"] == "f-score" and row["method"] == "cross-entropy"}
    if at:
        zero, held = at["F at zero"]["value"]["mean"], at["F at the held-out threshold"]["value"]["mean"]
        gain = TABLE_4["program"] - TABLE_4["cross-entropy"]
        told.append(
            f"Cross-entropy's F-score is {zero:.1f} at the threshold zero, where the published comparison has it, and "
            f"{held:.1f} at a threshold set on held-out images. The gain before rounding is {held - zero:+.2f}, beside "
            f"a published gain of {gain:+.1f}."
        )
    return told
