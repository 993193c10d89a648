"""The page on Table 4 of the paper on critical classes."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.answers import ranged
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import (
    ERRORS,
    beyond,
    changed,
    counted,
    mean_and_error,
    ratios,
    repeated,
    table,
    turned,
    wide,
)
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.long_tailed.ladder import NAME as LADDER
from benchmarks.studies.long_tailed.published import COLUMNS
from benchmarks.studies.long_tailed.study import ALONE, BASES, BY_PROBABILITY, SEEDS

TITLE = "Table 4 of the paper on critical classes: long-tailed CIFAR-10"

QUESTION = "Do constraints on the rarest of ten classes lower the errors of the others, as Table 4 of paper 003 has it?"
THREATS = (
    "A net of five convolutions stands for ResNet-32; its accuracy is far below the published one.",
    f"Few seeds; splits share the test images. {chance_told(len(SEEDS))}",
)

#: The rankings of images: by the logit, as published, and by the probability; the end of a column's name.
RANKINGS = ("", BY_PROBABILITY)
BY_LOGIT = ", by logit"


def claims(figures: dict[str, Any]) -> list[Claim]:
    cells = constrained(figures["rows"])
    told = []
    for how in RANKINGS if cells else ():
        column = COLUMNS[0] + how
        better, worse = lowered_and_raised(cells, column)
        gains = turned(cells, column, -1)
        claim = f"paper 003, Table 4: constraint lowers {COLUMNS[0]}{how or BY_LOGIT}, in every cell"
        told.append(Claim(claim, counted(gains, better, worse, 1), better == len(cells), "the base loss alone",
                          f"10 classes, {len(cells)} cells", False, mean_and_error(gains, 1)))  # fmt: skip
    return told


def constrained(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with a constraint that more than one seed stands for."""
    return repeated([row for row in rows if row["demand"] != ALONE])


def lowered_and_raised(cells: list[dict[str, Any]], column: str, error: str = "standard_error") -> tuple[int, int]:
    """In how many cells a constraint lowers and raises a column of errors by two standard errors."""
    return beyond(cells, column, -1, error), beyond(cells, column, 1, error)


def answer(figures: dict[str, Any]) -> str:
    """How the constraints do by either ranking beside the base loss, beside the paper, and what moves errors more."""
    cells = constrained(figures["rows"])
    if not cells:
        return ""
    lowered = [lowered_and_raised(cells, column + how, "corrected_standard_error")[0]
               for how in RANKINGS for column in COLUMNS[:-1]]  # fmt: skip
    word = "No" if not any(lowered) else "In every cell" if min(lowered) == len(cells) else "In some cells"
    plain, sure = ([lowered_and_raised(cells, COLUMNS[0] + how, error) for how in RANKINGS] for error in ERRORS)
    means = [f"{mean_change(cells, column + how):+.1f}" for column in COLUMNS[:-1] for how in RANKINGS]
    published = [statistics.mean(row[column]["published minus alone"] for row in cells) for column in COLUMNS[:-1]]
    kept = [row["accuracy"] for row in figures["rows"] if row["demand"] == ALONE]
    more, many = ranking_matters_more(figures["rows"])
    return (
        f"{word}: ranked by the logit, as published, the constraints change the error of the base loss at 80 % TPR by "
        f"{means[0]} points in the mean (published {published[0]:+.1f}): lower in {plain[0][0]} and higher in "
        f"{plain[0][1]} of {len(cells)} cells by plain errors, {sure[0][0]} and {sure[0][1]} by corrected ones. Ranked "
        f"by the probability: {means[1]}; {plain[1][0]} and {plain[1][1]}, by corrected errors {sure[1][0]} and "
        f"{sure[1][1]}. At 90 % TPR: {means[2]} and {means[3]} (published {published[1]:+.1f}). The choice of the "
        f"ranking alone changes the error by {ranged(ranking_moves(figures['rows']), '+.1f')} "
        f"points, in {'every cell' if more == many else f'{more} of {many} errors'} more than the constraint does. Not "
        f"shown: nets as accurate as the paper's ({ranged([one['mean'] for one in kept], '.0f')} %, published "
        f"{ranged([one['published'] for one in kept], '.0f')} %)."
    )


def mean_change(cells: list[dict[str, Any]], column: str) -> float:
    return statistics.mean(row[column]["minus alone"]["mean"] for row in cells)


def by_ranking(cells: list[dict[str, Any]]) -> str:
    """A row per error and ranking: the mean change by the constraints, and the cells that it is lower and higher in."""
    rows = []
    for column in COLUMNS[:-1]:
        for how in RANKINGS:
            counts = [str(count) for error in ERRORS for count in lowered_and_raised(cells, column + how, error)]
            change = f"{mean_change(cells, column + how):+.2f}"
            rows.append([f"{column}{how or BY_LOGIT}", change, *counts, str(len(cells))])
    sides = [f"{side}, {kind}" for kind in ERRORS.values() for side in ("lower", "higher")]
    told = "The change by the constraints in points, and the cells in which the error is lower and higher:"
    return f"{told}\n\n{table(['error', 'mean change', *sides, 'cells'], rows)}"


def ranking_matters_more(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """In how many constrained errors the choice of the ranking moves more than the constraint, and of how many.

    The ranking moves the error of the base loss alone; the constraint moves it by the one ranking and by the other.
    """
    moved = [
        abs(alone[column + BY_PROBABILITY]["mean"] - alone[column]["mean"])
        > max(abs(row[column + how]["minus alone"]["mean"]) for how in RANKINGS)
        for row in rows if row["demand"] != ALONE for column in COLUMNS[:-1]
        for alone in [alone_of(rows, row)]
    ]  # fmt: skip
    return sum(moved), len(moved)


def alone_of(rows: list[dict[str, Any]], row: dict[str, Any]) -> dict[str, Any]:
    """The base loss alone beside a constrained cell."""
    own = (row["imbalance"], row["base"], ALONE)
    return next(one for one in rows if (one["imbalance"], one["base"], one["demand"]) == own)


def ranking_told(rows: list[dict[str, Any]]) -> str:
    """What the choice of the ranking moves beside what the constraints move."""
    moved, (more, many) = ranking_moves(rows), ranking_matters_more(rows)
    logit, other = (ranged(constraints_move(rows, how), "+.1f") for how in RANKINGS)
    where = "every cell" if more == many else f"{more} of {many} errors"
    return (
        f"In {where} the choice of the ranking, with nothing trained anew, changes the error more than the constraint "
        f"does: to rank the images of the base losses by the probability changes it by {ranged(moved, '+.1f')} points, "
        f"the constraints by {logit} where images are ranked by the logit and by {other} by the probability."
    )


def ranking_moves(rows: list[dict[str, Any]]) -> list[float]:
    """By how much the errors of base losses change if images are ranked by the probability."""
    alone = [row for row in rows if row["demand"] == ALONE]
    return [row[column + BY_PROBABILITY]["mean"] - row[column]["mean"] for row in alone for column in COLUMNS[:-1]]


def constraints_move(rows: list[dict[str, Any]], how: str) -> list[float]:
    """By how much the constraints change the errors of a ranking."""
    return [
        row[column + how]["minus alone"]["mean"] for row in rows if row["demand"] != ALONE for column in COLUMNS[:-1]
    ]


def forest(figures: dict[str, Any]) -> list[Panel]:
    cells = constrained(figures["rows"])
    lines = [Line.of(f"1:{row['imbalance']}, {row['base']}, {row['demand']}", row[COLUMNS[0]]["minus alone"], 1)
             for row in cells]  # fmt: skip
    return [Panel(f"{COLUMNS[0]}: with constraints less the base loss alone", "points", lines, higher=False)]


def section(figures: dict[str, Any]) -> str:
    rows, compared = [], []
    plain = {row["imbalance"]: row for row in figures["rows"] if (row["base"], row["demand"]) == ("CE", ALONE)}
    for row in figures["rows"]:
        alone = row["demand"] == ALONE
        cells = [f"1:{row['imbalance']}", row["base"], row["demand"], str(len(row["seeds"]))]
        compared.append((cells[:3], row, plain[row["imbalance"]]))
        for column in COLUMNS:
            found = row[column]
            cells.append(changed(found["mean"], None if alone else found["minus alone"]))
            cells.append(f"{found['published']:.1f}" + f", {found['published minus alone']:+.1f}" * (not alone))
        for column in COLUMNS[:-1]:
            found = row[column + BY_PROBABILITY]
            cells.append(changed(found["mean"], None if alone else found["minus alone"]))
        rows.append(cells)
    header = ["imbalance", "base loss", "", "seeds"]
    header += [name for column in COLUMNS for name in (column, "published")]
    header += [column + BY_PROBABILITY for column in COLUMNS[:-1]]
    parts = [
        *([by_ranking(whole)] if (whole := constrained(figures["rows"])) else []),
        short_table(figures["rows"]),
        wide("cells", table(header, rows)),
        ratios(header[:3], compared, COLUMNS),
        "\n".join(f"- {line}" for line in found_out(figures["rows"])),
    ]
    return "\n\n".join(parts)


def short_table(rows: list[dict[str, Any]]) -> str:
    """A row per constrained cell: the error alone and its change, ours and published."""
    column, lines = COLUMNS[0], []
    for row in rows:
        if row["demand"] != ALONE:
            alone = alone_of(rows, row)[column]
            lines.append([f"1:{row['imbalance']}", row["base"], row["demand"], f"{alone['mean']:.1f}",
                          changed(row[column]["mean"], row[column]["minus alone"]).split(", ")[1],
                          f"{alone['published']:.1f}", f"{row[column]['published minus alone']:+.1f}"])  # fmt: skip
    head = ["imbalance", "base loss", "", f"{column} alone", "change", "alone, published", "change, published"]
    return f"In percent; in brackets the corrected error:\n\n{table(head, lines)}"


def design(figures: dict[str, Any]) -> str:
    counts = figures["images of each class"]
    sizes = "; ".join(f"1:{name}: {', '.join(map(str, n))}" for name, n in counts.items())
    return (
        "Published: Sangalli and others, NeurIPS 2021, Table 4: ResNet-32, the whole long-tailed set, no errors. Here: "
        f"a net of five convolutions, `{figures['plan']}`, all images but those held out "
        f"({sizes}), {figures['held out of each class']} more of each class to choose the epoch and (mu, margin) by, "
        f"{len(figures['seeds'])} seeds planned ({figures['seeds'][0]} to {figures['seeds'][-1]}), all 10,000 test "
        "images. Trucks, the rarest, are critical. Error: of "
        "the nine other classes, where 80 or 90 % of the trucks pass a threshold on their logit that is set on the "
        "test labels, as published, and on their probability; accuracy: of all ten. In percent; lower errors and "
        "higher accuracy are better. After the mean the paired change against the base loss alone, its standard error "
        f"and, in brackets, the corrected one{not_run(figures['rows'])}."
    )


def found_out(rows: list[dict[str, Any]]) -> list[str]:
    """What the table says, counted; how much of it the measure itself does; how far the nets are from the published."""
    cells = constrained(rows)
    better = [f"{beyond(cells, column, 1 if column == COLUMNS[-1] else -1)} in {column}" for column in COLUMNS]
    worse = [f"{beyond(cells, column, -1 if column == COLUMNS[-1] else 1)}" for column in COLUMNS]
    alone = [row for row in rows if row["demand"] == ALONE]
    low, high = ends([row["accuracy"]["mean"] for row in alone])
    told_low, told_high = ends([row["accuracy"]["published"] for row in alone])
    return [
        f"Of {len(cells)} constrained cells of more than one seed, better than alone by more than two plain "
        f"standard errors: {', '.join(better)}; worse: {', '.join(worse)}. The published changes come without errors.",
        "The logit of one class is not a score that a softmax pins down: the same number added to all ten leaves the "
        "loss as it is. "
        f"{ranking_told(rows)}",
        f"These nets are weaker than the published: the accuracy alone is {low:.0f} to {high:.0f} %, published "
        f"{told_low:.0f} to {told_high:.0f} %.",
        *stronger(),
    ]


def stronger() -> list[str]:
    """Is the weakness of the nets the reason? What makes them stronger, and the constraints on the strongest."""
    ladder = load_figures(LADDER)
    if not ladder:
        return []
    rungs = ", ".join(f"{row['rung']} {row['accuracy']:.1f}" for row in ladder["rungs"])
    return [
        "Stronger nets, one change at a time (`python -m benchmarks.studies.long_tailed.ladder`): the accuracy of "
        f"cross-entropy alone at 1:100 is, {rungs}. {on_the_strongest()}"
    ]


def on_the_strongest() -> str:
    """The constraints on the strongest nets; also in the list of the papers. Empty before they have run."""
    ladder = load_figures(LADDER)
    if not ladder:
        return ""
    gains = [row[COLUMNS[0]]["minus alone"] for row in ladder["cells"]]
    cells = ", ".join(f"{row['demand']} {changed(row[COLUMNS[0]]['mean'], gain)}"
                      for row, gain in zip(ladder["cells"], gains))  # fmt: skip
    shown = "is" if any(sides(gain, "standard_error") < 0 for gain in gains) else "is not"
    return (
        f"On the strongest net, *{ladder['strongest']}*, the {COLUMNS[0]}, after it less that of the base loss alone: "
        f"{cells}. By the rule fixed before, the weakness of the nets {shown} shown to be the reason, up to this "
        "accuracy."
    )


def not_run(rows: list[dict[str, Any]]) -> str:
    """Base losses of the paper without a result or of one seed, as the end of a sentence; empty if there are none."""
    left = [base for base in BASES if base not in {row["base"] for row in rows}]
    once = [base for base in BASES if base in {row["base"] for row in rows} - {row["base"] for row in repeated(rows)}]
    return f"; base losses not run: {', '.join(left)}" * bool(left) + (
        f"; of one seed, so that nothing is said of them: {', '.join(once)}" * bool(once)
    )


def ends(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)
