"""The section on Tables 2 to 4 of the implicit-thresholds paper and on the last-layer paper, on other images."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, gain, short, table, wide
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
TUNED = "best of 5 weights"
TRAINED = ("Lagrangian", "implicit", "method 1", "method 2", "ablation", "proximal head")
Row = dict[str, Any]


def flat(cell: dict[str, Any]) -> list[Row]:
    """The rows of a set and an ask, a method each."""
    return [{"set": cell["set"], "ask": cell["ask"], **row} for row in cell["methods"]]


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


def ratio_table(figures: dict[str, Any]) -> str:
    """Ratios to cross-entropy: what is published over its attributes, and ours set by set."""
    sets = list(dict.fromkeys(row["set"] for row in figures["rows"]))
    found = {(row["ask"], row["method"], row["set"]): row for row in figures["rows"]}
    rows = []
    for ask, method in dict.fromkeys((row["ask"], row["method"]) for row in figures["rows"]):
        cells = [found.get((ask, method, name)) for name in sets]
        told = next((cell["published"] for cell in cells if cell and "published" in cell), None)
        if method in (TUNED, *TRAINED) and any(cells):
            published = f"{told['ratio']:.2f} ({told['lowest']:.2f} to {told['highest']:.2f})" if told else ""
            rows.append([short(ask), method, published, *(ratio_of(cell) for cell in cells)])
    return table(["ask", "method", "published", *sets], rows)


def ratio_of(row: Row | None) -> str:
    return "" if row is None or row["ratio to cross-entropy"] is None else f"{row['ratio to cross-entropy']:.2f}"


def count_table(figures: dict[str, Any]) -> str:
    rows = []
    for one in figures["counts"]:
        if one["method"] in ("cross-entropy", "warm start") or one["rival"] == "warm start":
            continue
        outcome = [f"{one[error][side]}" for error in ERRORS for side in ("better", "worse")]
        chance = f"{one['by chance']:.1f}"
        pooled = f"{one['pooled']['mean']:+.2f} ± {one['pooled']['standard_error']:.2f}" if "pooled" in one else ""
        rows.append(
            [one["method"], one["rival"], str(one["cells"]), f"{one['mean gain']:+.2f}", *outcome, chance, pooled]
        )
    sides = [f"{side}, {kind}" for kind in ERRORS.values() for side in ("better", "worse")]
    return table(["method", "against", "cells", "mean gain", *sides, "by chance", "pooled"], rows)


def cell_table(figures: dict[str, Any]) -> str:
    rows = []
    for row in figures["rows"]:
        at = [f"{row['at threshold']:.2f}", f"{row['fpr']:.2f}"] if "fpr" in row else ["", ""]
        told = gain(row["at threshold, over cross-entropy"], 1) if "fpr" in row else ""
        rows.append(
            [row["set"], short(row["ask"]), row["method"], str(row["splits"]), f"{row['mean']:.2f}",
             gain(row["over cross-entropy"], 1), gain(row[f"over {TUNED}"], 1), *at, told, f"{row['seconds']:.0f}",
             note(row)]
        )  # fmt: skip
    header = ["set", "ask", "method", "splits", "best cut", "over cross-entropy", "over the weights", "at threshold",
              "FPR there", "over cross-entropy there", "seconds", ""]  # fmt: skip
    return table(header, rows)


def note(row: Row) -> str:
    """Which weights were chosen, or how often the re-fitted head was kept."""
    if "kept" in row:
        return f"kept in {row['kept']} of {row['splits']}"
    return ", ".join(one.removeprefix("weight ").replace("cross-entropy", "1") for one in row.get("chosen", []))


def of_method(figures: dict[str, Any], method: str, area: bool = False) -> list[Row]:
    return [row for row in figures["rows"] if row["method"] == method and ("fpr" not in row) == area]


def mean_of(rows: list[Row], name: str) -> float:
    return statistics.mean(row[name]["mean"] for row in rows)


def sentences(figures: dict[str, Any]) -> list[str]:
    """What the papers report, and what was found, in as many sentences."""
    cells = [cell for row in IMPLICIT_TABLE_2.values() for cell in row.values()]
    over_plain, over_tfco = (sum(cell[2] < cell[rival] for cell in cells) for rival in (0, 1))
    told = (
        f"Published: implicit thresholds have a lower FNR than cross-entropy in {over_plain} of {len(cells)} cells of "
        f"Table 2, and than TFCO in {over_tfco}; no class weights are tried, errors stand in an appendix that we have "
        "not seen, and the figures are points of the test curve. The last-layer paper takes the figures of "
        "cross-entropy, TFCO and ICO from there, and prints no times."
    )
    found = []
    for method in ("implicit", "method 2", "Lagrangian"):
        own = of_method(figures, method)
        if own:
            lower = sum(row["over cross-entropy"]["mean"] > 0 for row in own)
            weights = sum(row[f"over {TUNED}"]["mean"] > 0 for row in own)
            found.append(
                f"{method} has a lower mean FNR than cross-entropy of the same epochs in {lower} of {len(own)} cells, "
                f"and than the best of five weights in {weights}"
            )
    return [told, f"Here: {'; '.join(found)}.", *expected(figures)] if found else [told]


def expected(figures: dict[str, Any]) -> list[str]:
    """The gain that the published ratios would bring here, beside the one that was found."""
    plain = {(row["set"], row["ask"]): row["mean"] for row in of_method(figures, "cross-entropy")}
    found = []
    for one in figures["counts"]:
        own = [row for row in of_method(figures, one["method"]) if "published" in row]
        if own and one["rival"] == "cross-entropy" and "pooled" in one:
            promised = statistics.mean((1 - row["published"]["ratio"]) * plain[row["set"], row["ask"]] for row in own)
            pooled = one["pooled"]
            told = f"{pooled['mean']:+.2f} ± {pooled['standard_error']:.2f}"
            found.append(f"{one['method']} {promised:+.1f}, found {told}")
    return [f"In points of FNR over cross-entropy, at the published ratios and pooled as below: {'; '.join(found)}."]


def reasons(figures: dict[str, Any]) -> list[str]:
    """Three ways in which a gain can arise that is none, each with its figure here; FNR at FPR only."""
    plain, own = of_method(figures, "cross-entropy"), of_method(figures, "implicit")
    if not own:
        return []
    same = {(row["set"], row["ask"]) for row in own}
    plain = [row for row in plain if (row["set"], row["ask"]) in same]
    found = [
        f"*Training time.* Implicit thresholds are ahead of the net that they began from by "
        f"{mean_of(own, 'over warm start'):+.2f} points of FNR in the mean of {len(own)} cells; cross-entropy that "
        f"just goes on for the same epochs is ahead of it by {mean_of(plain, 'over warm start'):+.2f}. What is left "
        f"for the criterion is {mean_of(own, 'over cross-entropy'):+.2f}.",
    ]
    longer = [row for row in of_method(figures, "twice the epochs") if (row["set"], row["ask"]) in same]
    sets = dict.fromkeys(row["set"] for row in longer)
    by_set = [
        f"{name} {mean_of([row for row in longer if row['set'] == name], 'over cross-entropy'):+.2f}" for name in sets
    ]
    if longer:
        found.append(
            f"*Is the yardstick converged?* Cross-entropy with twice the epochs gains "
            f"{mean_of(longer, 'over cross-entropy'):+.2f} points in the mean of {len(longer)} cells, by set "
            f"{', '.join(by_set)}."
        )
    tuned = [row for row in of_method(figures, TUNED) if (row["set"], row["ask"]) in same]
    found.append(
        f"*Class weights.* The best of five weights gains {mean_of(tuned, 'over cross-entropy'):+.2f} points over "
        f"plain cross-entropy in the mean of the same cells, implicit thresholds {mean_of(own, f'over {TUNED}'):+.2f} "
        "over those weights."
    )
    at = statistics.mean(row["at threshold, over cross-entropy"]["mean"] for row in own)
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
    told: list[Claim] = []
    for one in figures["counts"]:
        if one["method"] in ("implicit", "method 2") and one["rival"] == "cross-entropy" and "pooled" in one:
            mean, error = one["pooled"]["mean"], one["pooled"]["standard_error"]
            found = one["standard_error"]
            effect = f"{mean:+.2f} ± {error:.2f}; {found['better']} better, {found['worse']} worse of {one['cells']}"
            paper = {"implicit": "paper 000, Tables 2-3: implicit", "method 2": "paper 004, Table 1: last layer"}
            told.append(
                Claim(
                    f"{paper[one['method']]} lowers FNR on images",
                    effect,
                    mean > 2 * error,
                    "cross-entropy",
                    f"{len(figures['plan'])} sets",
                    gain=(mean, error),
                )
            )
    return told


def forest(figures: dict[str, Any]) -> list[Panel]:
    rows = [row for cell in figures["cells"] for row in flat(cell) if "fpr" in row]
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
    figures = {**figures, "rows": [row for cell in figures["cells"] for row in flat(cell)]}
    net, steps = figures["net"], figures["step ratios"]
    parts = [
        *(f"{name} was not there: `apt-get install dataset-fashion-mnist`." for name in figures["left out"]),
        *sentences(figures),
        "Ratios to cross-entropy, means over splits; published: the mean over attributes, and their range. FNR is "
        "better below 1, areas (McClish, FPR 0 to 5 %) above:",
        wide("ratios", ratio_table(figures)),
        "Where a gain may come from:",
        "\n".join(f"- {told}" for told in reasons(figures)),
        "Cells (a set and an ask) in which a method is better or worse by two standard errors, of the plain kind and "
        "of Nadeau and Bengio's for overlapping splits, which is too wide here where parts of a large pool hardly "
        "overlap; the mean gain is in points, FNR and areas together. *By chance* is how many would pass two plain "
        "ones on either side without any difference, by Student's t: with so few splits, many. *Pooled* is the gain in "
        "FNR over all sets and splits, each the mean of its asks, with its standard error (too narrow in so far as "
        "splits of the medical sets share images):",
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
