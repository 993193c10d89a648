"""The page on Tables 2 to 4 of the implicit-thresholds paper and on the last-layer paper, on other images."""

from __future__ import annotations

from typing import Any

from benchmarks.common.answers import counted_sides, ranged
from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, mean_and_error, short, table, wide
from benchmarks.studies.paper_images.page_tables import (
    TUNED,
    Row,
    cell_table,
    count_table,
    method_table,
    of_method,
    ratio_table,
    told_before,
)
from benchmarks.studies.paper_images.published import IMPLICIT_TABLE_2
from benchmarks.studies.paper_images.study import FIRST_SEED

TITLE = "The papers' image tables, on images that can be had"
QUESTION = "Do implicit thresholds, on all layers or on the last, lower the FNR of image networks at a fixed FPR?"
THREATS = (
    "CelebA and BigEarthNet cannot be had, so no published figure can be reproduced as it stands; the ratio to the "
    "cross-entropy of the same run is compared.",
    "The nets are a fraction of the papers' and see far fewer images; implicit thresholds may need more.",
    "Settings of the implicit methods are not tuned; the paper chooses one of four temperatures.",
    "X-rays of one patient may fall into two parts. Pooled errors are too narrow where splits share images.",
)


def flat(cell: dict[str, Any]) -> list[Row]:
    """The rows of a set and an ask, a method each."""
    return [{"set": cell["set"], "ask": cell["ask"], **row} for row in cell["methods"]]


def rows_of(figures: dict[str, Any]) -> list[Row]:
    """The rows of all sets and asks."""
    return [row for cell in figures["cells"] for row in flat(cell)]


def plan_table(figures: dict[str, Any]) -> str:
    done = {
        name: max((row["splits"] for cell in figures["cells"] for row in flat(cell) if row["set"] == name), default=0)
        for name in figures["plan"]
    }
    rows = [
        [name, *(f"{size:,}" for size in one["sizes"]), str(one["epochs"]), f"{done[name]} of {one['splits']}"]
        for name, one in figures["plan"].items()
    ]
    return table(["set, positive class", "train", "validation", "calibration", "test", "epochs", "splits"], rows)


def mean_of(rows: list[Row], name: str) -> float:
    """The mean over cells, each as heavy as it has splits: that of the pooled gain, which counts splits."""
    return sum(row["splits"] * row[name]["mean"] for row in rows) / sum(row["splits"] for row in rows)


def pooled_of(figures: dict[str, Any], method: str, rival: str = "cross-entropy") -> dict[str, float] | None:
    """The gain of a method in FNR over a rival, over all sets and splits."""
    found = [one["pooled"] for one in figures["counts"]
             if (one["method"], one["rival"]) == (method, rival) and "pooled" in one]  # fmt: skip
    return found[0] if found else None


def outcomes(figures: dict[str, Any], method: str, area: bool = False) -> str:
    """In how many cells, of FNR or of areas, a method is better and worse than cross-entropy."""
    gains = [row["over cross-entropy"] for row in of_method(figures, method, area)]
    better, worse = counted_sides(gains)
    return f"{better} better, {worse} worse of {len(gains)}"


def pooled_told(figures: dict[str, Any], method: str) -> str:
    """The pooled gain of a method in FNR, and in how many cells of FNR it is better and worse."""
    pooled = pooled_of(figures, method)
    effect = f"{pooled['mean']:+.2f} ± {pooled['standard_error']:.2f}; " if pooled else ""
    return f"{effect}{outcomes(figures, method)}"


def answer(figures: dict[str, Any]) -> str:
    """Whether implicit thresholds lower the FNR, what training longer and class weights do, and how much was seen."""
    figures = {**figures, "rows": rows_of(figures)}
    found = {(one["method"], one["rival"]): one["pooled"] for one in figures["counts"] if "pooled" in one}
    if not {("implicit", "cross-entropy"), ("method 2", "cross-entropy")} <= set(found):
        return ""
    both = [found[method, "cross-entropy"] for method in ("implicit", "method 2")]
    lowered = sum(one["mean"] > 2 * one["standard_error"] for one in both)
    cells = [cell for row in IMPLICIT_TABLE_2.values() for cell in row.values()]
    told = [
        f"{('No', 'One of them', 'Yes')[lowered]}: over cross-entropy of the same epochs{stronger(figures)}, "
        f"thresholds on all layers {in_points(both[0], outcomes(figures, 'implicit') + ' cells', ' of FNR')} and on "
        f"the last layer {in_points(both[1], outcomes(figures, 'method 2'))}, pooled over {len(figures['plan'])} sets; "
        f"those of the paper are ahead of cross-entropy in {sum(cell[2] < cell[0] for cell in cells)} of {len(cells)} "
        "cells."
    ]
    if areas := area_gains(figures):
        mean, error = mean_and_error(areas, 1)
        beside = f"{outcomes(figures, 'implicit', True)} cells"
        told.append(
            "In partial ROC area, thresholds on all layers "
            f"{in_points({'mean': mean, 'standard_error': error}, beside)}."
        )
    if ("implicit", TUNED) in found:
        told.append(f"Over the best of 5 class weights those on all layers {in_points(found['implicit', TUNED])}.")
    longer = found.get(("twice the epochs", "cross-entropy"))
    if longer:
        told.append(f"Beside cross-entropy of the same epochs, twice its epochs {in_points(longer)}.")
    unseen = ranged([2 * one["standard_error"] for one in both])
    return " ".join([*told, f"Gains below {unseen} points would not show here, and no published set or net was tried."])


def stronger(figures: dict[str, Any]) -> str:
    """That plain cross-entropy is ahead of tuned weights, and whether this is beyond noise; else nothing."""
    weights = pooled_of(figures, TUNED)
    if weights is None or weights["mean"] >= 0:
        return ""
    sure = "" if weights["mean"] < -2 * weights["standard_error"] else " in the mean"
    return f", here{sure} a stronger rival than the best of 5 class weights"


def in_points(found: dict[str, float], beside: str = "", unit: str = "", one: bool = False) -> str:
    """'gain 0.80 ± 0.30 points', or 'lose'; 'are level (+0.20 ± 0.30 points)' within two errors. One: 'gains'."""
    mean, error = found["mean"], found["standard_error"]
    if abs(mean) <= 2 * error:
        told = f"{mean:+.2f} ± {error:.2f} points{unit}{'; ' * bool(beside)}{beside}"
        return f"{'is' if one else 'are'} level ({told})"
    verb = f"{'gain' if mean > 0 else 'lose'}{'s' * one}"
    return f"{verb} {abs(mean):.2f} ± {error:.2f} points{unit}{f' ({beside})' if beside else ''}"


def area_gains(figures: dict[str, Any]) -> list[dict[str, float]]:
    return [row["over cross-entropy"] for row in of_method(figures, "implicit", True)]


def reasons(figures: dict[str, Any]) -> list[str]:
    """Three ways in which a gain can arise that is none, each with its figure here; FNR at FPR only."""
    plain, own = of_method(figures, "cross-entropy"), of_method(figures, "implicit")
    if not own:
        return []
    same = {(row["set"], row["ask"]) for row in own}
    plain = [row for row in plain if (row["set"], row["ask"]) in same]
    found = [
        f"*Training time.* Implicit thresholds are ahead of the net that they began from by "
        f"{mean_of(own, 'over warm start'):+.2f} points of FNR, pooled over {len(own)} cells; cross-entropy that "
        f"just goes on for the same epochs is ahead of it by {mean_of(plain, 'over warm start'):+.2f}. What is left "
        f"for the criterion is {mean_of(own, 'over cross-entropy'):+.2f}.",
    ]
    longer = [row for row in of_method(figures, "twice the epochs") if (row["set"], row["ask"]) in same]
    sets = dict.fromkeys(row["set"] for row in longer)
    by_set = [
        f"{name} {mean_of([row for row in longer if row['set'] == name], 'over cross-entropy'):+.2f}" for name in sets
    ]
    if pooled := pooled_of(figures, "twice the epochs"):
        found.append(
            "*Is the yardstick converged?* Beside cross-entropy of the same epochs, twice the epochs "
            f"{in_points(pooled, f'pooled over {len(longer)} cells')}; by set {', '.join(by_set)}."
        )
    weights, ours = pooled_of(figures, TUNED), pooled_of(figures, "implicit", TUNED)
    if weights and ours:
        found.append(
            f"*Class weights.* Beside plain cross-entropy, the best of five weights {in_points(weights, one=True)}, "
            f"pooled over the same cells; beside those weights, implicit thresholds {in_points(ours)}."
        )
    at = mean_of(own, "at threshold, over cross-entropy")
    over = sum(row["fpr"] > bound_of(row["ask"]) for row in own)
    found.append(
        f"*A threshold on test labels.* At the threshold set on calibration rows the same difference to cross-entropy "
        f"is {at:+.2f} points, and the mean FPR is above its bound in {over} of {len(own)} cells: the best cut of "
        "the test curve hides both."
    )
    return found


def bound_of(ask: str) -> float:
    return float(ask.split("<=")[1].strip(" %"))


def claims(figures: dict[str, Any]) -> list[Claim]:
    figures = {**figures, "rows": rows_of(figures)}
    told: list[Claim] = []
    on = f"{len(figures['plan'])} sets"
    for method, says in (("implicit", "paper 000, Table 2: implicit"), ("method 2", "paper 004, Table 1: last layer")):
        if pooled := pooled_of(figures, method):
            gain = pooled["mean"], pooled["standard_error"]
            told.append(Claim(f"{says} lowers FNR on images", pooled_told(figures, method), gain[0] > 2 * gain[1],
                              "cross-entropy", on, gain=gain))  # fmt: skip
    if areas := area_gains(figures):
        mean, error = mean_and_error(areas, 1)
        told.append(Claim("paper 000, Table 3: implicit raises partial ROC area on images",
                          counted(areas, *counted_sides(areas), 1), mean > 2 * error, "cross-entropy", on,
                          gain=(mean, error)))  # fmt: skip
    return told


def forest(figures: dict[str, Any]) -> list[Panel]:
    rows = [row for row in rows_of(figures) if "fpr" in row]
    return [
        Panel(f"{method} against cross-entropy of the same epochs", "points of FNR",
              [Line.of(f"{row['set']}: {short(row['ask'])}", row["over cross-entropy"], 1) for row in rows
               if row["method"] == method])
        for method in ("implicit", "method 2")
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    net = figures["net"]
    return "\n\n".join(
        [
            "Kumar, Narasimhan and Cotter, ICML 2021, Tables 2 to 4; Chen, Kumar, Liu and Amid, 2022, Table 1. Reduced "
            f"for one core: five convolutions of {net['width']} to {4 * net['width']} filters (the papers': 128 to "
            f"512), the training images below (of 202,599), {net['batch']} a batch (512). All images of a set are "
            f"pooled and each seed, from {FIRST_SEED} on, draws its own parts. Lagrangian, implicit (all layers), "
            "method 1, method 2 and ablation (thresholds as a function of the last layer) take over from plain "
            "cross-entropy half-way and have the same epochs in all. *Warm start* is that net half-way, *proximal "
            "head* the whole run of cross-entropy with its last layer re-fitted. Epochs and weights (1/8, 1/2, 1, 2, "
            "8) are chosen on validation rows by the exact metric, for every method alike.",
            plan_table(figures),
        ]
    )


def section(figures: dict[str, Any]) -> str:
    figures = {**figures, "rows": rows_of(figures)}
    net, steps = figures["net"], figures["step ratios"]
    parts = [
        *(f"{name} was not there: `apt-get install dataset-fashion-mnist`." for name in figures["left out"]),
        told_before(),
        "Here, over cross-entropy of the same epochs, FNR at an FPR only:",
        method_table(figures),
        "Ratios to cross-entropy, means over splits; published: the mean over attributes, and their range. FNR is "
        "better below 1, areas (McClish, FPR 0 to 5 %) above:",
        wide("ratios", ratio_table(figures)),
        "Where a gain may come from:",
        "\n".join(f"- {told}" for told in reasons(figures)),
        "Cells (a set and an ask) in which a method is better or worse by two standard errors, of the plain kind and "
        "of Nadeau and Bengio's for overlapping splits, which is too wide here where parts of a large pool hardly "
        "overlap. *By chance* is how many would pass two plain ones on either side without any difference, by "
        "Student's t: with so few splits, many. The gain in FNR is over all sets and splits, each the mean of its "
        "asks, with its standard error (too narrow in so far as splits of the medical sets share images); that in "
        "area is the mean over sets:",
        wide("counts", count_table(figures)),
        "All cells, in percent: FNR or area at the best cut of the test curve, as the papers judge, gains in points "
        "(positive is better) with plain and corrected errors; FNR and FPR at the threshold set on calibration rows; "
        "seconds of one thread's processor, five trainings for the weights, the second half alone for what takes "
        "over:",
        wide("cells", cell_table(figures)),
    ]
    if steps:
        parts += [
            f"A step on this narrow net with {net['batch']} images, as a ratio to cross-entropy (the last-layer paper "
            "claims a speed-up and prints no times; the papers' own net is in [measured](../measured.md)):",
            table(list(steps), [[f"{ratio:.2f}" for ratio in steps.values()]]),
        ]
    return "\n\n".join(part for part in parts if part)
