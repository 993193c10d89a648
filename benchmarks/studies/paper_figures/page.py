"""The page with the papers' figures as pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.common.telling import Claim
from benchmarks.common.words import share, table, wide
from benchmarks.studies.paper_figures.study import IMPLICIT, NARROW, PLAIN, PROGRAM, RECALLS, rates

TITLE = "The papers' figures as pictures"
QUESTION = "Do the papers' curves, heat maps and toy example look here as they look there?"
THREATS = (
    "A picture is no test: one to three splits and no errors; the studies of the tables have those.",
    "Shirts stand for CelebA and CIFAR-10 for STL10, with smaller nets.",
    "The heat maps are of images made here, on which an object is known by its texture; the paper shows photographs "
    "and no figures. Their mean AUC had been seen for two images and a net trained for 100 steps before the run below.",
    "The Lagrangian, untuned, collapses from a random start on shirts (see [Fashion-MNIST](paper_fashion.md)), so that "
    "its curve says nothing of TFCO as tuned by its authors.",
    "The places of the ten samples of the toy example are inferred from the two figures in the paper's text.",
)
ROW = dict[str, Any]
AREA, LAST = "area", "mean over recall 95 % to 100 %"
SAYS = {
    "000, 1": ("implicit thresholds have the largest area in the range", "shirts for CelebA"),
    "000, 2": ("cross-entropy ahead at recall 50 %, implicit over recall 95 % to 100 %", "Letter, ijcnn1"),
    "001, 1": ("the program has the larger area for each group", "CIFAR-10 for STL10"),
    "001, 2": ("maps of a factored layer show the objects: AUC above 75 %", "images made here"),
    "003, 1": ("two swaps save what the text says", "ten samples"),
}
#: The methods that stand for the paper's, in words that a row of a table can have.
NAMED = {IMPLICIT: "implicit thresholds", PROGRAM: "the program (margin 1)"}
PLACES = {"000, 1": AREA, "000, 2": LAST, "001, 1": AREA}


def of(figures: dict[str, Any], number: str) -> list[ROW]:
    return [row for row in figures["rows"].values() if row["figure"] == number]


def found(figures: dict[str, Any], number: str) -> str:
    """What was measured, in one line."""
    told = []
    for row in of(figures, number):
        if "curves" in row:
            ours = PROGRAM if number == "001, 1" else IMPLICIT
            pair = [share(row["curves"][method][PLACES[number]]) for method in (ours, PLAIN)]
            told.append(f"{row['panel']}: {NAMED[ours]} {pair[0]}, cross-entropy {pair[1]}")
        elif "true of" in row:
            fits = len(row["true of"])
            told.append(
                f"of all {row['rows']} orders of five positives and five negatives, "
                f"{'one fits' if fits == 1 else f'{fits} fit'} both numbers in the paper's text"
            )
        else:
            told.append(
                f"AUC {share(row['rank 1'])} at rank 1, {share(row['rank 2'])} at rank 2, {row['images']} images"
            )
    return "; ".join(told)


def differs(figures: dict[str, Any], number: str) -> str:
    """Which panels are not as the paper says, and where their study is."""
    study = {"000, 1": "paper_fashion", "000, 2": "paper_tabular", "001, 1": "paper_programs"}.get(number)
    why = f" Why is a question of its table: [study]({study}.md)." if study else ""
    if number == "001, 2":
        one = of(figures, number)[0]
        why = (
            f" At rank 1 the one map shows one of the two objects: against the object that it fits better its AUC is "
            f"{share(one['rank 1, one object'])} (added after the result)."
        )
    return f"Asked for: {SAYS[number][0]}. Here: {found(figures, number)}.{other_margin(figures, number)}{why}"


def other_margin(figures: dict[str, Any], number: str) -> str:
    """The areas at the published margin, by which Table 3 is judged; a space before it."""
    if number != "001, 1":
        return ""
    areas = ", ".join(share(row["curves"][NARROW][AREA]) for row in of(figures, number))
    return f" At the published margin of 0.01, by which Table 3 is judged, the program has {areas}."


def claims(figures: dict[str, Any]) -> list[Claim]:
    return [
        Claim(f"paper {number.split(',')[0]}, Figure {number[-1]}: {says}", found(figures, number),
              figures["true"][number], "the paper's words", on)
        for number, (says, on) in SAYS.items() if number in figures["true"]
    ]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """Which pictures look as the papers say, and how far the others are from it."""
    told = claims(figures)
    kept, missed = ([named(claim) for claim in told if claim.met == met] for met in (True, False))
    if not told:
        return ""
    behind = [
        f"In Figure {number[-1]} of {number.split(',')[0]} {ahead_in(figures, number)}."
        for number in ("000, 1", "001, 1") if number in figures["true"] and not figures["true"][number]
    ]  # fmt: skip
    return " ".join(
        [
            f"{len(kept)} of {len(told)} do: {listed(kept) or 'none'}{', but not ' * bool(missed)}{listed(missed)}.",
            *behind,
            "A picture has one to three splits and no errors, so nothing here is a test; the studies of the papers' "
            "tables have repeats and errors.",
        ]
    )


def named(claim: Claim) -> str:
    """The picture of a claim: 'Figure 2 of 000'."""
    paper, number = claim.says.split(":")[0].removeprefix("paper ").split(", ")
    return f"{number} of {paper}"


def listed(names: list[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))


def ahead(figures: dict[str, Any], number: str, method: str) -> int:
    """In how many panels a method has a larger area than cross-entropy."""
    place = PLACES[number]
    return sum(row["curves"][method][place] > row["curves"][PLAIN][place] for row in of(figures, number))


def ahead_in(figures: dict[str, Any], number: str) -> str:
    """In how many panels ours has the larger area; the program at both margins."""
    rival = f"a larger area than cross-entropy, the rival, in {{}} of {len(of(figures, number))} panels"
    if number == "001, 1":
        wide_margin, narrow = (ahead(figures, number, method) for method in (PROGRAM, NARROW))
        return f"the program has {rival.format(wide_margin)} at margin 1, in {narrow} at the published 0.01"
    return f"implicit thresholds have {rival.format(ahead(figures, number, IMPLICIT))}"


def design(figures: dict[str, Any]) -> str:
    return (
        "Written down in `benchmarks/studies/paper_figures/study.py` before the first result: which panels, which "
        "splits, and what of each figure must be true for it to count. Everything is trained as in the studies of the "
        "tables: [Fashion-MNIST](paper_fashion.md) seeds 20 and 21, [Table 5](paper_tabular.md) its first three "
        "splits, [programs](paper_programs.md) the first seed at its one rate; curves are means over splits. Figure 1 "
        "of 001 is judged by the program with margin 1, Table 3 with 0.01, which is drawn too. On shirts two "
        "temperatures, 0.1 and 1, of the paper's four were run, in both ranges. Heat maps: a net of three convolutions "
        "learns which of three textured objects are in an image; its 20 channels of 8 x 8 are factored by "
        "`setpoint.lp.factorize`. Toy example: every row of five positives and five negatives is tried with the loss "
        "of `sp.AugmentedLagrangian` itself."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [f"{number.split(',')[0]}, Figure {number[-1]}", row["panel"], method, share(own[PLACES[number]])]
        for number in PLACES for row in of(figures, number) for method, own in row["curves"].items()
    ]  # fmt: skip
    return wide(
        "areas", table(["figure", "panel", "method", "area, or mean precision over recall 95 % to 100 %"], rows)
    )


def figure(figures: dict[str, Any]) -> Figure | None:
    """A row per figure of a paper."""
    if not figures["rows"]:
        return None
    drawn = Figure(figsize=(9.6, 13.2), layout="constrained")
    parts = drawn.subfigures(5, 1, height_ratios=(1, 1, 1, 1.1, 0.5))
    ranges(parts[0], of(figures, "000, 1"), "000, Figure 1: recall over FPR, shirts in place of faces",
           lambda row: rates(row["beta"]), "FPR", "recall")  # fmt: skip
    ranges(parts[1], of(figures, "000, 2"), "000, Figure 2: precision over recall, trained for recall 95 % to 100 %",
           lambda row: RECALLS, "recall", "precision")  # fmt: skip
    groups(parts[2], of(figures, "001, 1"))
    heat(parts[3], of(figures, "001, 2"))
    toy(parts[4], of(figures, "003, 1"))
    return drawn


def small(panel: Any, title: str, x: str = "", y: str = "") -> None:
    panel.set_title(title, fontsize=8)
    panel.set_xlabel(x, fontsize=7)
    panel.set_ylabel(y, fontsize=7)
    panel.tick_params(labelsize=6)


def ranges(part: Any, rows: list[ROW], title: str, places: Any, x: str, y: str) -> None:
    """The whole curve and the range that is asked for, side by side for each panel."""
    part.suptitle(title, fontsize=9)
    if not rows:
        return
    panels = part.subplots(1, 2 * len(rows), squeeze=False)[0]
    for number, row in enumerate(rows):
        for panel, which in zip(panels[2 * number : 2 * number + 2], ("whole", "range")):
            at = places(row)[which]
            for method, own in row["curves"].items():
                panel.plot(at, own[which], linewidth=1, label=method)
            if which == "range":
                values = np.array([own[which] for own in row["curves"].values()])
                panel.set_ylim(max(0.0, float(values.min()) - 0.02), min(1.0, float(values.max()) + 0.02))
            small(panel, f"{row['panel']}, {'whole' if which == 'whole' else 'the range'}", x, y)
    panels[0].legend(fontsize=5.5, frameon=False)


def groups(part: Any, rows: list[ROW]) -> None:
    part.suptitle("001, Figure 1: recall over FPR, CIFAR-10 in place of STL10", fontsize=9)
    if not rows:
        return
    for panel, row in zip(part.subplots(1, len(rows), squeeze=False)[0], rows):
        for method, own in row["curves"].items():
            panel.plot(rates(1)["whole"], own["whole"], linewidth=1, label=f"{method}: {share(own[AREA])}")
        small(panel, row["panel"], "FPR", "recall")
        panel.legend(fontsize=5.5, frameon=False)


def heat(part: Any, rows: list[ROW]) -> None:
    """The image, the map of rank 1 and the two of rank 2, a row each as in the paper."""
    part.suptitle("001, Figure 2: heat maps of a factored layer, images made here", fontsize=9)
    if not rows:
        return
    shown = rows[0]["shown"]
    panels = part.subplots(len(shown), 4, squeeze=False) if len(shown) < 4 else part.subplots(2, 8, squeeze=False)
    cells = [cell for one in shown for cell in (one["image"], one["rank 1"], *one["rank 2"])]
    for panel, (number, cell) in zip(panels.flat, enumerate(cells)):
        panel.imshow(cell, cmap="gray" if number % 4 == 0 else "inferno", interpolation="nearest")
        panel.set_axis_off()
        panel.set_title(("image", "rank 1", "rank 2", "rank 2")[number % 4], fontsize=6)


def toy(part: Any, rows: list[ROW]) -> None:
    part.suptitle(
        "003, Figure 1: an order of ten samples that fits both numbers of the text, and what a swap saves", fontsize=9
    )
    if not rows or not rows[0]["true of"]:
        return
    panel, one = part.subplots(), rows[0]["true of"][0]
    for place, positive in enumerate(one["row"]):
        panel.scatter(place, 0, marker="o" if positive else "^", color="#0969da" if positive else "#bc4c00", s=40)
    first, last = one["row"].index(1), len(one["row"]) - 1 - one["row"][::-1].index(0)
    for left, (square, price), words in zip(
        (first, last - 1), one["saved"], ("leftmost positive", "rightmost negative")
    ):
        panel.annotate("", (left + 1, 0.25), (left, 0.25), arrowprops={"arrowstyle": "<->", "linewidth": 1})
        panel.text(left + 0.5, 0.45, f"{words}:\n{square:.2f} mu + {price:.2f} price", ha="center", fontsize=7)
    panel.set_ylim(-0.4, 1.2)
    panel.set_axis_off()
