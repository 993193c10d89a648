"""The page on the default for linear models and heads."""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks import looks
from benchmarks.common.answers import counted_sides
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import (
    ERRORS,
    by_source,
    counted,
    gain,
    mean_and_error,
    of_sources,
    short,
    source,
    table,
    verdict,
    wide,
)
from benchmarks.studies.default_study.study import SEEDS, SHARES
from benchmarks.studies.default_study.verdict import AGAIN, BASELINE, DEFAULT, ONCE, SMALL, TUNED, sides

TITLE = "The default, linear models and heads"
QUESTION = "With a linear model, does `sp.fit` with no solver beat cross-entropy under the best of 21 class weights?"
THREATS = (
    "Part of the lead is that the grid has fewer rows to choose a weight on: on earlier splits of 60/20/20 the default "
    "was ahead in fewer cells.",
    "In seconds of a thread the grid of a small linear model is cheaper than the default.",
    "Splits of one set overlap; by corrected errors far fewer cells are won. " + chance_told(len(SEEDS)),
    "Letter, ijcnn1 and the images of CIFAR-10 are in twice. Errors of means count these data once.",
    "Judged at the best cut of the test curve, which compares models; the counts at a threshold set on calibration "
    "rows are in the CSV.",
)
#: This share of the cells is to be won.
ASKED = 0.4
JUDGED = {"test": "best cut of the test curve", "at threshold": "threshold set on calibration rows"}
#: What is held against what: each against rivals that had the same rows, and the default against a mere grid as well.
PAIRS = ((DEFAULT, ""), (DEFAULT, AGAIN), (ONCE, ""))
SHOWN = (BASELINE, TUNED, BASELINE + AGAIN, TUNED + AGAIN, ONCE, DEFAULT)


def targets(figures: dict[str, Any]) -> str:
    """What was asked of the default, and in how many cells it holds, by both standard errors."""
    rows = []
    for ours, again in PAIRS:
        found = {rival: [figures["counts"][f"{ours} | {rival + again} | test | {error}"] for error in ERRORS]
                 for rival in (TUNED, BASELINE)}  # fmt: skip
        rows_too = ", trained on held-out rows too," if again else ""
        cells = found[TUNED][0]["cells"]
        claims = [
            (f"better than the {TUNED}{rows_too} in 40 % of {cells} cells", TUNED, "better", ASKED * cells),
            ("worse than them in none", TUNED, "worse", 0),
            (f"worse than {BASELINE}{rows_too} by {100 * SMALL:g} points as well in none", BASELINE,
             "worse by half a point as well", 0),
        ]  # fmt: skip
        for claim, rival, key, limit in claims:
            numbers = [own[key] for own in found[rival]]
            met = [verdict(number >= limit if key == "better" else number <= limit) for number in numbers]
            rows.append([ours, claim, *(f"{number}, {told}" for number, told in zip(numbers, met))])
    return table(["method", "two standard errors or more", "cells, met", "cells, met, corrected"], rows)


def claims(figures: dict[str, Any], models: str = "linear models") -> list[Claim]:
    """Against weights and cross-entropy that were trained on the same rows."""
    names = {cell["set"] for cell in figures["cells"]}
    on = f"{of_sources(len(names), 'sets', names)}, {len(figures['seeds'])} splits"
    told: list[Claim] = []
    for rival in (TUNED, BASELINE):
        plain, corrected = (figures["counts"][f"{DEFAULT} | {rival + AGAIN} | test | {error}"] for error in ERRORS)
        gains = gains_of(figures["cells"], rival)
        effect = counted(gains, plain["better"], plain["worse"])
        effect += f" (corrected {corrected['better']}, {corrected['worse']})"
        # The index has room for the asks with bounds alone.
        more = (rival, on, models == "linear models", mean_and_error(gains))
        if rival == TUNED:
            met = plain["better"] >= ASKED * plain["cells"] and plain["worse"] == 0
            told.append(Claim(f"{models}: better in 40 % of the cells, worse in none", effect, met, *more))
        else:
            met = plain["worse by half a point as well"] == 0
            told.append(Claim(f"{models}: worse by {100 * SMALL:g} points in no cell", effect, met, *more))
    return told


def gains_of(cells: list[dict[str, Any]], rival: str) -> list[dict[str, Any]]:
    """The gains over a rival that had the same rows, each with the data behind its set."""
    return by_source(cells, lambda cell: cell["gain, test"][DEFAULT][rival + AGAIN])


def answer(figures: dict[str, Any]) -> str:
    times = [cell["seconds"][DEFAULT] / cell["seconds"][TUNED + AGAIN] for cell in figures["cells"]]
    over = [cell["gain, test"][DEFAULT][TUNED + AGAIN] for cell in figures["cells"]]
    few = 2 * counted_sides(over, "corrected_standard_error")[0] < len(over)
    return " ".join(
        [
            *beside_weights(figures),
            f"The default takes {statistics.median(times):.1f} times the seconds of the whole grid, the median of all "
            "cells.",
            f"Not shown: {'a gain beyond corrected errors in most cells, and ' * few}other models than linear ones.",
        ]
    )


def beside_weights(figures: dict[str, Any]) -> list[str]:
    """The mean gain over both rivals, the counts over the stronger one, and where it is behind."""
    cells = figures["cells"]
    over = {rival: gains_of(cells, rival) for rival in (TUNED, BASELINE)}
    means = {rival: mean_and_error(gains) for rival, gains in over.items()}
    sure = {rival: "" if abs(mean) > 2 * error else " (within two standard errors)"
            for rival, (mean, error) in means.items()}  # fmt: skip
    strongest = ", the strongest rival in the mean" * (means[TUNED][0] <= means[BASELINE][0])
    better, worse = counted_sides(over[TUNED])
    lost = [f"{cell['set']}, {short(cell['ask'])}, by {-100 * gain['mean']:.2f} points"
            for cell, gain in zip(cells, over[TUNED]) if sides(gain, "standard_error") < 0]  # fmt: skip
    strict = counted_sides(over[TUNED], "corrected_standard_error")
    at = figures["counts"][f"{DEFAULT} | {TUNED + AGAIN} | at threshold | standard_error"]
    return [
        f"In the mean {'yes' if means[TUNED][0] > 0 else 'no'}: over the best of {TUNED.split()[2]} class weights "
        f"trained on the same rows{strongest}, the default has {gained(*means[TUNED])}{sure[TUNED]}, and "
        f"{gained(*means[BASELINE])}{sure[BASELINE]} over plain cross-entropy.",
        *filter(None, [carried(cells)]),
        f"It beats the weights beyond two plain standard errors in {better} of {len(cells)} cells "
        f"({beside_asked(better, len(cells))}) and is worse in {worse}{f' ({lost[0]})' if len(lost) == 1 else ''}; by "
        f"corrected errors in {strict[0]} ({beside_asked(strict[0], len(cells))}) and {strict[1]}; at the threshold "
        f"set on calibration rows in {at['better']} and {at['worse']}, by plain errors.",
    ]


def beside_asked(better: int, cells: int) -> str:
    """The share of cells that are won, beside the share that was asked for."""
    word = "at least" if better >= ASKED * cells else "under"
    return f"{100 * better / cells:.0f} %, {word} the {100 * ASKED:.0f} % asked for"


def carried(cells: list[dict[str, Any]]) -> str:
    """The two data sources that gain most over cross-entropy, and the means without them."""
    names = list(dict.fromkeys(source(cell["set"]) for cell in cells))
    own = {name: mean_and_error(gains_of([cell for cell in cells if source(cell["set"]) == name], BASELINE))[0]
           for name in names}  # fmt: skip
    most = sorted(names, key=lambda name: -own[name])[:2]
    rest = [cell for cell in cells if source(cell["set"]) not in most]
    if not rest:
        return ""
    whole, without = ([mean_and_error(gains_of(some, rival)) for rival in (TUNED, BASELINE)] for some in (cells, rest))
    carry = all(abs(left[0]) < abs(mean[0]) / 2 for mean, left in zip(whole, without))
    low, high = (edge(own[name] for name in names if name not in most) for edge in (min, max))
    return (
        f"{' and '.join(most).capitalize()} {'carry the mean' if carry else 'gain most'}: over cross-entropy they have "
        f"{' and '.join(f'{own[name]:+.1f}' for name in most)} points, the other {len(names) - len(most)} data sources "
        f"{low:+.1f} to {high:+.1f}; without the two the mean is "
        f"{without[0][0]:+.2f} over the weights and {without[1][0]:+.2f} over cross-entropy."
    )


def gained(mean: float, error: float) -> str:
    return f"a {'gain' if mean > 0 else 'loss'} of {abs(mean):.1f} ± {error:.1f} points"


def count_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, found in figures["counts"].items():
        ours, rival, judged, error = name.split(" | ")
        rows.append([ours, rival, JUDGED[judged], ERRORS[error], str(found["better"]), str(found["worse"]),
                     str(found["worse by half a point as well"])])  # fmt: skip
    return table(["method", "against", "judged at", "errors", "better", "worse", "by half a point too"], rows)


def cell_table(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        gains = cell["gain, test"][DEFAULT]
        row = [cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in SHOWN)]
        for rival in (TUNED, TUNED + AGAIN):
            outcome = {1: ", better", 0: "", -1: ", worse"}[sides(gains[rival], "standard_error")]
            row.append(gain(gains[rival]) + outcome)
        rows.append([*row, gain(gains[BASELINE + AGAIN])])
    over = ["default over the weights", "over the weights, again", "over cross-entropy, again"]
    return table(["set", "ask", *SHOWN, *over], rows)


def by_ask(figures: dict[str, Any]) -> str:
    """A row per ask: the mean gain of all sets over both rivals, and the counts by both errors over the weights."""
    rows = []
    for ask in dict.fromkeys(cell["ask"] for cell in figures["cells"]):
        own = [cell["gain, test"][DEFAULT] for cell in figures["cells"] if cell["ask"] == ask]
        means = [mean_and_error(gains_of([c for c in figures["cells"] if c["ask"] == ask], rival))
                 for rival in (TUNED, BASELINE)]  # fmt: skip
        sides = [counted_sides((gains[TUNED + AGAIN] for gains in own), error) for error in ERRORS]
        rows.append([short(ask), str(len(own)), *(f"{mean:+.2f} ± {error:.2f}" for mean, error in means),
                     *(f"{better}, {worse}" for better, worse in sides)])  # fmt: skip
    head = ["ask", "sets", f"over the {TUNED}", f"over {BASELINE}", "better, worse than the weights",
            "by corrected errors"]  # fmt: skip
    return f"Mean gain in points over rivals that had the same rows:\n\n{table(head, rows)}"


def by_set(figures: dict[str, Any]) -> str:
    """By set: seconds of a thread's processor, and how often the bounds held at the threshold."""
    rows = []
    for one in dict.fromkeys(cell["set"] for cell in figures["cells"]):
        own = [cell for cell in figures["cells"] if cell["set"] == one]
        times = [f"{statistics.mean(cell['seconds'][name] for cell in own):.2f}" for name in SHOWN]
        bounded = [cell for cell in own if " where " in cell["ask"]]
        held = [f"{100 * statistics.mean(cell['bounds hold'][name] for cell in bounded):.0f}" for name in SHOWN]
        rows.append([one, *(f"{spent}; {share} %" for spent, share in zip(times, held))])
    return table(["set", *SHOWN], rows)


def rows_gain(figures: dict[str, Any]) -> str:
    """What the held-out rows are worth to each, in points, the mean over all cells."""

    def mean(name: str, without: str) -> str:
        signs = [1 if cell["ask"].startswith("maximize") else -1 for cell in figures["cells"]]
        gains = [{"mean": sign * (cell["test"][name] - cell["test"][without]), "of": source(cell["set"]),
                  "standard_error": math.nan} for sign, cell in zip(signs, figures["cells"])]  # fmt: skip
        mean, error = mean_and_error(gains)
        return f"{mean:+.2f} ± {error:.2f}"

    return (
        f"By the held-out rows the default gains {mean(DEFAULT, ONCE)} points, the mean of all cells; tuned weights "
        f"gain {mean(TUNED + AGAIN, TUNED)}, cross-entropy {mean(BASELINE + AGAIN, BASELINE)}."
    )


def design(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    return (
        f"{len(seeds)} of {figures['planned splits']} planned splits, seeds {seeds[0]} to {seeds[-1]}, of 50/15/15/20: "
        f"train, at most {figures['most training rows']:,} rows; held-out rows to choose on; calibration rows that "
        "only set a threshold; test. All models are linear, with the same features and ridge. Cross-entropy under each "
        "of the 21 class weights (2^-10 to 2^10) is trained to convergence, and the weight is chosen on held-out rows "
        "by the exact metric. The default chooses nothing, so it trains on held-out rows as well. To be fair, *again* "
        "trains the rivals once more on those rows too, under the weight that was chosen; the claims are against "
        "these. FNR is better when lower, precision when higher; gains are positive when ours is better. "
        f"Corrected errors go by shares of the splits, {100 * (1 - sum(SHARES)):.0f} % to test on over "
        f"{100 * SHARES[0]:.0f} % to train on, on sets too whose training rows are capped: by counts of rows they "
        "would be larger there.\n\n" + "\n\n".join(looks.told("default_study"))
    )


def section(figures: dict[str, Any]) -> str:
    parts = [
        targets(figures),
        rows_gain(figures),
        by_ask(figures),
        wide("cells", cell_table(figures)),
        wide("counts", count_table(figures)),
        "Seconds of one thread, and the share of splits in which all bounds held on test rows at the threshold that "
        "was best on calibration rows; a threshold that is to hold more often than half the time asks for "
        "`confidence`:",
        wide("seconds", by_set(figures)),
    ]
    return "\n\n".join(parts)


def forest(figures: dict[str, Any]) -> list[Panel]:
    """A panel per ask, a line per set: the gain over the best weight, trained again."""
    cells = figures["cells"]
    return [
        Panel(
            ask,
            "points over the best of 21 weights, trained on the same rows",
            [Line.of(cell["set"], cell["gain, test"][DEFAULT][TUNED + AGAIN]) for cell in cells if cell["ask"] == ask],
        )
        for ask in dict.fromkeys(cell["ask"] for cell in cells)
    ]
