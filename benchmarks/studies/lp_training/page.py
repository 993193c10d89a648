"""The page on networks trained through the LP solver."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from benchmarks.common.answers import ranged, side
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import changed, gain, share, table, wide
from benchmarks.studies.lp_training.losses import EPSILONS
from benchmarks.studies.lp_training.reduction import NONE, OWN, SLICED
from benchmarks.studies.lp_training.study import CLOSED, ENGINE, PLAIN, PLAN, SEEDS

TITLE = "A network trained through the LP solver"
QUESTION = (
    "Papers 001 / 002 solve a linear program in every step of a training. What does that cost and bring beside the "
    "closed form of the same program, and does a reduced program keep the gradient?"
)
THREATS = (
    "A net of five convolutions, a few hundred steps and three seeds stand for ResNet-18 and 40,000 steps: what is "
    "equal here need not be level there, and small differences cannot be seen.",
    "One learning rate for all methods, chosen in another study of the same images; the paper tunes its own.",
    "Our bare penalty follows the paper's text; its code releases the binary AUC alone and runs on an old PyTorch.",
    "Paper 002 names sufficient dimension reduction without the algorithm. Sliced inverse regression of the bounds on "
    "the rows is our reading of it.",
    "Reductions and costs are measured on made scores; processor time on a machine with other work.",
    chance_told(len(SEEDS)),
)
EPSILON_TWICE = (
    "The paper gives Newton's epsilon as 0.001 where it describes Table 1, and as 0.01 in its ablation, Table 2."
)
FIGURES = ("AUC", "F at zero")
#: Equal within so many points; a gradient is kept above this cosine.
EQUAL, KEPT = 1.0, 0.99
PAPER, PUBLISHED = "penalty, epsilon 0.01", "equation (3), margin and epsilon 0.01"
BURNT = "penalty after a burn-in"
Row = dict[str, Any]


def of(figures: Row, figure: str) -> dict[str, Row]:
    return {row["method"]: row for row in figures["rows"] if row["figure"] == figure}


def whole(figures: Row) -> bool:
    """Whether all methods were run; the short form of the study leaves most out, and shows no more than its times."""
    names = (ENGINE, *(f"penalty, epsilon {epsilon:g}" for epsilon in EPSILONS))
    return all(name in of(figures, figure) for name in names for figure in FIGURES)


def claims(figures: Row) -> list[Claim]:
    if not whole(figures):
        return []
    on = f"CIFAR-10, {len(figures['seeds'])} seeds"
    raised = {figure: of(figures, figure)[PAPER][f"minus {PLAIN}"] for figure in FIGURES}
    told = [
        Claim("paper 001, trained through the LP solver: AUC and F rise",
              "; ".join(f"{figure} {gain(one, 1)}" for figure, one in raised.items()),
              all(one["mean"] > 2 * one["standard_error"] for one in raised.values()), "cross-entropy",
              on.replace(",", ", margin 1,"), index=True)
    ]  # fmt: skip
    for figure in FIGURES:
        rows = of(figures, figure)
        own = rows[ENGINE][f"minus {CLOSED}"]
        told.append(Claim(f"through our engine: {figure} within {EQUAL:g} point", gain(own, 1),
                          level(own), "the closed form", on))  # fmt: skip
    values = {epsilon: of(figures, "AUC")[f"penalty, epsilon {epsilon:g}"]["AUC"]["mean"] for epsilon in EPSILONS}
    told.append(Claim("Table 2: Newton's epsilon 0.01 has the best AUC",
                      ", ".join(f"{epsilon:g}: {value:.1f}" for epsilon, value in values.items()),
                      max(values, key=lambda one: values[one]) == 0.01, "0.1 and 0.001", on))  # fmt: skip
    for size in sorted({row["samples"] for row in figures["reduction"] if row["form"] == "f-score"}):
        best = max(row["cosine"] for row in figures["reduction"]
                   if (row["form"], row["samples"], row["directions"]) == ("f-score", size, SLICED))  # fmt: skip
        told.append(Claim(f"reduction to at most half of the directions: cosine of {KEPT}", f"{best:.2f} at best",
                          best >= KEPT, "the exact gradient", f"F-score, batches of {size}"))  # fmt: skip
    return told


def level(found: Row) -> bool:
    """Whether a difference is shown to be small: it and two plain standard errors are within a point."""
    return bool(abs(found["mean"]) + 2 * found["standard_error"] <= EQUAL)


def beside_closed(figure: str, found: Row, seeds: int) -> str:
    """Level with the closed form, level in the mean alone, or not."""
    if level(found):
        return f"{figure} is level within {EQUAL:g} point ({gain(found, 1)})"
    if abs(found["mean"]) <= EQUAL:
        return (
            f"{figure} is level in the mean ({gain(found, 1)}), which {seeds} seeds do not show to be within "
            f"{EQUAL:g} point"
        )
    return f"{figure} is more than {EQUAL:g} point away ({gain(found, 1)})"


def answer(figures: Row) -> str:
    """What the solver brings beside the closed form and beside cross-entropy, what it costs, and reductions."""
    if not whole(figures):
        return ""
    beside = {figure: of(figures, figure)[ENGINE][f"minus {CLOSED}"] for figure in FIGURES}
    over = {figure: of(figures, figure)[PAPER][f"minus {PLAIN}"] for figure in FIGURES}
    return " ".join(
        [
            "Beside the closed form of the same program, through our engine, "
            f"{'; '.join(beside_closed(figure, one, len(figures['seeds'])) for figure, one in beside.items())}.",
            f"Over cross-entropy, the rival, the paper's penalty {risen(over)} beyond two plain standard errors: "
            f"{', '.join(f'{figure} {gain(one, 1)}' for figure, one in over.items())}{published_margin(figures)}.",
            f"A whole step, measured alone at batches of {' and '.join(map(str, sizes_of(figures)))}, takes as a "
            f"multiple of that with the closed form {', '.join(cost_told(figures))}; in the trainings below, at "
            f"batches of {PLAN.batch}, the mean step takes {' and '.join(trained_cost(figures))}.",
            f"A program reduced by {SLICED} {kept_told(figures)}.",
            f"Not shown: ResNet-18, 40,000 steps, and small differences, with {len(figures['seeds'])} seeds.",
        ]
    )


def risen(over: dict[str, Row]) -> str:
    """Which figures the penalty raises and which it lowers."""
    told = [f"{word} {' and '.join(names)}" for word, sign in (("raises", 1), ("lowers", -1))
            if (names := [figure for figure, one in over.items() if side(one) == sign])]  # fmt: skip
    return " and ".join(told) or "changes neither figure"


def published_margin(figures: Row) -> str:
    """The change in AUC at the published margin, which the penalty above does not have."""
    row = of(figures, "AUC").get(PUBLISHED)
    return f"; with the published margin of 0.01 AUC {gain(row[f'minus {PLAIN}'], 1)}" if row else ""


def cost_told(figures: Row) -> list[str]:
    """The time of a whole step by every way, as a multiple of that of the closed form, over forms and batches."""
    found = times_of(figures)
    names = {"penalty": "the paper's penalty", "unrolled": "unrolled steps"}
    return [
        f"{ranged([time for own in found[way].values() for time in own.values()])} by {names.get(way, way)}"
        for way in found
    ]


def sizes_of(figures: Row) -> list[int]:
    return sorted({row["samples"] for row in figures["costs"]})


def trained_cost(figures: Row) -> list[str]:
    """The mean step of a whole training, as a multiple of that with the closed form, over both figures."""
    rows = [of(figures, figure) for figure in FIGURES]

    def times(*names: str) -> list[float]:
        return [own[name]["milliseconds per step"] / own[CLOSED]["milliseconds per step"]
                for own in rows for name in names if name in own]  # fmt: skip

    others = times(*(name for epsilon in EPSILONS if (name := f"penalty, epsilon {epsilon:g}") != PAPER))
    longest = [f"up to {max(found):.1f} {where}" for found, where in
               ((others, "at the others"), (times(BURNT), "after a burn-in")) if found]  # fmt: skip
    epsilon = PAPER.removeprefix("penalty, ")
    return [f"{ranged(times(ENGINE))} by our engine", "by the paper's penalty "
            f"{listed([f'{ranged(times(PAPER))} at {epsilon}', *longest])}"]  # fmt: skip


def listed(parts: list[str]) -> str:
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def times_of(figures: Row) -> dict[str, dict[str, dict[int, float]]]:
    """By way, form and batch, the time of a whole step as a multiple of that of the closed form."""
    found = {(row["loss"], row["samples"]): row["step, ms"] for row in figures["costs"] if "step, ms" in row}
    sizes = sizes_of(figures)
    times: dict[str, dict[str, dict[int, float]]] = {}
    for way, form, size in itertools.product(("our engine", "penalty", "unrolled"), ("area", "f-score"), sizes):
        step, closed = (found.get((f"{form}, {name}", size)) for name in (way, "closed form"))
        if step is not None and closed is not None:
            times.setdefault(way, {}).setdefault(form, {})[size] = step / closed
    return times


def kept_told(figures: Row) -> str:
    """Whether the gradient of the F-score is kept by the published kind of reduction, and by the form's own."""
    best = {name: max((row["cosine"] for row in figures["reduction"]
                       if (row["form"], row["directions"]) == ("f-score", name)), default=None)
            for name in (SLICED, OWN)}  # fmt: skip
    if best[SLICED] is None:
        return "was not tried"
    word = "keeps" if best[SLICED] >= KEPT else "does not keep"
    own = f"; the form's own directions have {best[OWN]:.2f}" if best[OWN] is not None else ""
    return f"{word} the gradient of the F-score: its cosine is {best[SLICED]:.2f} at best, where {KEPT} is asked{own}"


def of_epsilon(figures: Row) -> str:
    """Why Newton's epsilon matters little, in a sentence."""
    rows = of(figures, "AUC")
    told = ", ".join(
        f"at {epsilon:g} cosine {rows[name]['cosine']:.4f}, {share(rows[name]['solved'])} of the batches proved optimal"
        for epsilon in EPSILONS for name in [f"penalty, epsilon {epsilon:g}"]
    )  # fmt: skip
    return f"Newton's epsilon hardly moves the gradient: {told}."


def forest(figures: Row) -> list[Panel]:
    return [
        Panel(f"{figure}: trained by the program against cross-entropy", "points",
              [Line.of(name, row[f"minus {PLAIN}"], 1) for name, row in of(figures, figure).items() if name != PLAIN])
        for figure in FIGURES
    ]  # fmt: skip


def trainings(figures: Row) -> str:
    parts = []
    for figure in FIGURES:
        rows = of(figures, figure)
        lines = [
            [name, changed(row[figure]["mean"], None if name == PLAIN else row[f"minus {PLAIN}"]),
             "" if name in (PLAIN, CLOSED) else gain(row[f"minus {CLOSED}"], 1), share(row["solved"]),
             "-" if row["cosine"] is None else f"{row['cosine']:.3f}", f"{row['milliseconds per step']:.0f}"]
            for name, row in rows.items()
        ]  # fmt: skip
        head = ["method", f"{figure}, and over cross-entropy", "over the closed form", "solved", "cosine", "ms a step"]
        parts.append(table(head, lines))
    other = ("F at the held-out threshold", "F at the best threshold of the test labels")
    lines = [[name, *(f"{row[column]['mean']:.1f}" for column in ("F at zero", *other))]
             for name, row in of(figures, "F at zero").items()]  # fmt: skip
    parts.append(wide("thresholds", table(["method", "F at zero", *other], lines)))
    return "\n\n".join(parts)


def rules(figures: Row) -> str:
    lines, enough = [], {figure: [0, 0] for figure in FIGURES}
    for row in figures["rule"]:
        often = Counter("none" if one is None else f"{one:g}" for one in row["epsilons"])
        large = sum(one is not None and one >= 0.01 for one in row["epsilons"])
        lines.append([row["figure"], row["net"], f"{row['margin']:g}",
                      ", ".join(f"{one}: {number}" for one, number in often.most_common()),
                      f"{large} of {len(row['epsilons'])}"])  # fmt: skip
        enough[row["figure"]][0] += large
        enough[row["figure"]][1] += len(row["epsilons"])
    told = ", ".join(f"{large} of {batches} batches of {figure}" for figure, (large, batches) in enough.items())
    head = ["program", "net", "margin", "epsilons by the rule, batches", "0.01 is small enough"]
    return f"By it 0.01 is small enough for {told}.\n\n{wide('rule', table(head, lines))}"


def reductions(figures: Row) -> str:
    rows = figures["reduction"]
    head = ["program", "batch", "directions", "number", "batches", "cosine, mean", "least", "ms"]
    lines = [
        [row["form"], str(row["samples"]), row["directions"], str(row["number"]), str(row["batches"]),
         f"{row['cosine']:.3f}", f"{row['least']:.3f}", f"{1e3 * row['seconds']:.0f}"] for row in rows
    ]  # fmt: skip
    kept: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        place = (row["form"], row["samples"], row["directions"])
        if place not in kept or row["number"] > kept[place]["number"]:
            kept[place] = row
    names = list(dict.fromkeys(row["directions"] for row in rows))
    short = [
        [f"{form}, {size}",
         *(f"{kept[form, size, name]['cosine']:.2f} ({kept[form, size, name]['number']})"
           if (form, size, name) in kept else "" for name in names)]
        for form, size in dict.fromkeys((row["form"], row["samples"]) for row in rows)
    ]  # fmt: skip
    return f"{table(['program, batch', *names], short)}\n\n{wide('reduction', table(head, lines))}"


def costs(figures: Row) -> str:
    sizes = sizes_of(figures)
    found = {(row["loss"], row["samples"]): row for row in figures["costs"]}
    lines = []
    for name in dict.fromkeys(row["loss"] for row in figures["costs"]):
        cells = []
        for size in sizes:
            row = found.get((name, size), {"not tried": "not tried"})
            if "not tried" in row:
                cells += [row["not tried"], "", ""]
            else:
                cells += [f"{row['loss, ms']:.3g}", f"{row['step, ms']:.0f}", f"{max(row['megabytes'], 0):.0f}"]
        lines.append([name, *cells])
    head = ["loss", *(f"{what}, batch {size}" for size in sizes for what in ("loss, ms", "step, ms", "MB"))]
    times, forms = times_of(figures), ("area", "f-score")
    brief = [
        [way, *(f"{own[form][size]:.1f}" if size in own.get(form, {}) else "" for form in forms for size in sizes)]
        for way, own in times.items()
    ]
    names = ["way", *(f"{form}, batch {size}" for form in forms for size in sizes)]
    return f"{table(names, brief)}\n\n{wide('costs', table(head, lines))}"


def section(figures: Row) -> str:
    return "\n\n".join(
        [
            "In percent, in brackets the corrected error. *Solved*: the share of batches whose answer is proved "
            "optimal. *Cosine*: of the loss's gradient to that of the closed form, every tenth step. *Ms a step*: the "
            "mean of the whole training.",
            trainings(figures),
            "## Mangasarian's rule for epsilon\n\nThe first of 1, 0.1, ... 1e-6 whose prices have the same norm as "
            "those of the next smaller one.",
            rules(figures),
            "## The penalty in fewer directions\n\nMean cosine to the exact gradient, in brackets the number of "
            f"directions, the largest tried. *{NONE[0].upper()}{NONE[1:]}* solves nothing.",
            reductions(figures),
            "## What a step costs\n\nThe whole step with a new net, measured alone, as a multiple of that of the "
            "closed form:",
            costs(figures),
        ]
    )


def design(figures: Row) -> str:
    seeds = figures["seeds"]
    return (
        f"Fixed before the first result. Halves of CIFAR-10 as in [Tables 1 to 4](paper_programs.md): AUC at 91 % "
        f"positive, F-score at 50 %; `{figures['plan']}`, {figures['largest class']:,} images in the largest class, "
        f"seeds {seeds[0]} to {seeds[-1]}, the same images, order and first weights for every method. *Penalty*: full "
        "Newton steps on the bare exterior penalty, prices give the active rows, these give the gradient, as published "
        "but for the margin of pairs: 1, where the paper has 0.01, which the row *equation (3)* has. The F-score has "
        f"the published margin of 0, a pair a cost of 1. {EPSILON_TWICE} *Burn-in*: 100 steps through unrolled Newton "
        "steps while epsilon grows from 0.001 by 2 % per step. *Our engine*: `lp.Newton` with `lp.ActiveSet`. "
        "cvxpylayers and ap-perf run in environments of their own. A training was to equal the closed form within "
        f"{EQUAL:g} point in the mean; since then two plain standard errors are added to it. A gradient is kept at a "
        f"mean cosine of {KEPT}. Corrected errors go by counts of images: 10,000 to test on over those trained on."
    )
