"""The page on tables as people have them."""

from __future__ import annotations

from typing import Any

from benchmarks import looks
from benchmarks.common.chance import chance_told
from benchmarks.common.forest import Line, Panel
from benchmarks.common.harness import load_figures
from benchmarks.common.telling import Claim
from benchmarks.common.words import ERRORS, counted, gain, mean_and_error, table, wide
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.tables import page_fresh
from benchmarks.studies.tables.verdict import AUTO, LEAST_SPLITS, PLAIN, TUNED, counted_gains

TITLE = "Tables: the default of the command line against other tools"
QUESTION = (
    "Is `setpoint fit table --target y --ask ...` as good an answer as a careful practitioner gives with other tools?"
)
THREATS = (
    "Splits of one table overlap, so plain errors are too small; corrected ones stand beside them.",
    chance_told(5, 10),
    "A test part has as few as 39 positives; FNR then moves in steps of 2 points.",
    "Six of the tables were used before, to develop the recipe of the trees.",
)
JUDGED = {"test": "best cut of the test curve", "at threshold": "threshold set on calibration rows"}
#: The regularised logistic regressions, and the tables on which ours must be no worse than the better of them.
LOGISTIC, HARD = ("logistic L1", "logistic L2"), ("wide", "grants", "caravan")


def found(figures: dict[str, Any], rival: str, judged: str = "test", error: str = "standard_error") -> dict[str, Any]:
    counts: dict[str, Any] = figures["counts"][f"{rival} | {judged} | {error}"]
    return counts


def against(figures: dict[str, Any], rival: str, judged: str = "test") -> str:
    """The mean gain over the cells, and the counts by plain and by corrected errors."""
    gains = counted_gains(figures["cells"], rival, judged)
    plain, corrected = (found(figures, rival, judged, error) for error in ERRORS)
    return f"{counted(gains, plain['better'], plain['worse'])} (corrected {corrected['better']}, {corrected['worse']})"


def claims(figures: dict[str, Any]) -> list[Claim]:
    if not counted_gains(figures["cells"], TUNED, "test"):
        return []
    ran = splits_of(figures).values()
    on = f"{len(figures['sizes'])} tables, {min(ran)} to {max(ran)} splits"
    told: list[Claim] = []
    fresh = page_fresh.claims()
    for judged, where in (("test", "best cut"), ("at threshold", "bare threshold")):
        trees = found(figures, TUNED, judged)
        claim = f"tables, {where}, 10 splits: better in half of the cells, worse in none"
        met = trees["better"] >= 0.5 * trees["cells"] and trees["worse"] == 0
        means = mean_and_error(counted_gains(figures["cells"], TUNED, judged))
        told.append(Claim(claim, against(figures, TUNED, judged), met, "tuned LightGBM", on, not fresh, means))
    lost = sum(found(figures, PLAIN, judged)["worse"] for judged in JUDGED)
    means = mean_and_error(counted_gains(figures["cells"], PLAIN, "at threshold"))
    told.append(
        Claim(
            "tables, 10 splits: worse in no cell, at the best cut or the bare threshold",
            against(figures, PLAIN, "at threshold"),
            lost == 0,
            "cross-entropy",
            on,
            not fresh,
            means,
        )
    )
    if timed := load_figures("auto_time"):
        wall, processor = (timed["median"][kind] for kind in ("wall", "processor"))
        most, tables = timed["most fits"], f"{len(timed['tables'])} tables, one split"
        told.append(Claim(f"tables: takes at most {most} LightGBM fits in the median",
                          f"{wall:.1f} fits on the wall, {processor:.1f} of the processor", wall <= most,
                          "one LightGBM fit", tables, True, command="speed.auto_time"))  # fmt: skip
    outcomes = [
        sides(gain, "standard_error") < 0
        for rival in LOGISTIC
        for gain in counted_gains([cell for cell in figures["cells"] if cell["table"] in HARD], rival, "test")
    ]
    if outcomes:
        effect = f"{sum(outcomes)} of {len(outcomes)} comparisons lost"
        hard = [name for name in HARD if counted_gains([c for c in figures["cells"] if c["table"] == name], LOGISTIC[0],
                                                       "test")]  # fmt: skip
        told.append(Claim(f"{', '.join(hard)}: not worse", effect, not any(outcomes), "L1 and L2 regression", on))
    return [*fresh, *told]


def count_table(figures: dict[str, Any]) -> str:
    """A row per rival: how many cells are won and lost at the best cut and at the bare threshold."""
    rows = []
    for rival in dict.fromkeys(name.split(" | ")[0] for name in figures["counts"]):
        row = [rival, str(found(figures, rival)["cells"])]
        for judged in JUDGED:
            plain, corrected = (found(figures, rival, judged, error) for error in ERRORS)
            row += [f"{plain['better']} / {plain['worse']} ({corrected['better']} / {corrected['worse']})",
                    f"{plain['ahead']} / {plain['behind']}"]  # fmt: skip
        rows.append(row)
    head = [f"{what}, {place}" for place in ("best cut", "bare threshold")
            for what in ("better / worse (corrected)", "ahead / behind at all")]  # fmt: skip
    return table(["against", "cells", *head], rows)


def by_table(figures: dict[str, Any]) -> str:
    """A row per table: how many of its cells are won and lost against tuned LightGBM, and the time."""
    rows, timed = [], load_figures("auto_time").get("tables", {})
    for name in dict.fromkeys(cell["table"] for cell in figures["cells"]):
        own = [cell for cell in figures["cells"] if cell["table"] == name]
        sizes = figures["sizes"][name]
        line = [name, f"{sizes['rows']:,} x {sizes['columns']:,}", f"{100 * sizes['positives']:.1f} %"]
        for rival in (TUNED, PLAIN):
            outcomes = [sides(gain, "standard_error") for gain in counted_gains(own, rival, "test")]
            line.append(f"{outcomes.count(1)} / {outcomes.count(0)} / {outcomes.count(-1)}")
        means = [cell["mean"]["test"] for cell in own]
        theirs = [f"{100 * mean[TUNED]:.1f}" if TUNED in mean else "not run" for mean in means]
        shown = "; ".join(f"{100 * mean[AUTO]:.1f} ({other})" for mean, other in zip(means, theirs))
        rows.append(
            [*line, shown, f"{timed[name]['wall']:.1f}" if name in timed else "", figures["chosen"].get(name, "")]
        )
    head = ["table", "size", "positives", "better / level / worse than tuned LightGBM", "than cross-entropy",
            "ours (tuned LightGBM), by ask", "time in LightGBM fits, on the wall", "chosen"]  # fmt: skip
    return table(head, rows)


def cell_table(figures: dict[str, Any]) -> str:
    methods = list(dict.fromkeys(name for cell in figures["cells"] for name in cell["mean"]["test"]))
    rivals = [name for name in methods if name != AUTO]
    rows = []
    for cell in figures["cells"]:
        for judged, words in JUDGED.items():
            means, gains = cell["mean"][judged], cell["gain"][judged]
            splits = str(gains[TUNED]["splits"]) if TUNED in gains else ""
            rows.append([
                cell["table"], cell["ask"], words, splits,
                *(f"{100 * means[name]:.2f}" if name in means else "" for name in methods),
                *(gain(gains[name]) if name in gains else "" for name in rivals),
            ])  # fmt: skip
    return table(["table", "ask", "judged at", "splits", *methods, *(f"over {name}" for name in rivals)], rows)


def forest(figures: dict[str, Any]) -> list[Panel]:
    """The fresh splits; where they were not run, a line per table of these: seventy cells would be too many to read."""
    lines = []
    for name in figures["sizes"]:
        gains = counted_gains([cell for cell in figures["cells"] if cell["table"] == name], TUNED, "test")
        if gains:
            lines.append(Line(f"{name} ({len(gains)} asks)", *mean_and_error(gains)))
    title = "Ours against tuned LightGBM, best cut, mean over the asks of a table, errors over the asks"
    return page_fresh.forest() or [Panel(title, "points", sorted(lines, key=lambda line: -line.mean))]


def answer(figures: dict[str, Any]) -> str:
    return page_fresh.answer()


def design(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    return (
        f"{len(figures['sizes'])} of {figures['planned']['tables']} planned tables, five asks, {len(seeds)} of "
        f"{figures['planned']['splits']} planned splits ({seeds[0]} to {seeds[-1]}) of 50/15/15/20 into train, "
        "held-out, calibration and test rows, the same for all methods; fixed in `benchmarks/studies/tables/study.py` "
        "before the first result. Ours, *LightGBM tuned, again*, logistic regression, FLAML and "
        "`TunedThresholdClassifierCV` learn from train and held-out rows, the last from calibration rows too. "
        "LightGBM, *LightGBM tuned* and the best of 7 weights learn from train rows alone; held-out rows stop and "
        "choose. "
        "Every *bare* threshold is set on calibration rows without a certificate, so that it breaks its bound about "
        "half of the time, but for that of `TunedThresholdClassifierCV`, which cross-validates. "
        "FLAML has as much time of the processor, with one thread, as 8 single fits, and at least 5 seconds.\n\n"
        "Looked at before: splits 0 to 2 while the default was built, and splits 10 to 12 with an earlier state of it; "
        "neither are in the figures. Features for single values of whole numbers were added after splits 20 to 26 had "
        "been summed up once, by what splits 0 to 2 said.\n\n" + "\n\n".join(looks.told("tables"))
    )


def splits_of(figures: dict[str, Any]) -> dict[str, int]:
    """The number of splits that each table was run on."""
    return {cell["table"]: cell["gain"]["test"][TUNED]["splits"] for cell in figures["cells"] if cell["gain"]["test"]}


def fewer_splits(figures: dict[str, Any]) -> list[str]:
    """A sentence on the tables that were not run on all splits."""
    fewer = [f"{name} on {splits}" for name, splits in splits_of(figures).items() if splits < len(figures["seeds"])]
    return [f"Run on fewer than {len(figures['seeds'])} splits: {', '.join(fewer)}."] if fewer else []


def flaml_told(figures: dict[str, Any]) -> list[str]:
    """A sentence on the splits and tables that FLAML was run on, if they are fewer than those of ours."""
    cells = [cell for cell in figures["cells"] if "FLAML" in cell["gain"]["test"]]
    splits = [cell["gain"]["test"]["FLAML"]["splits"] for cell in cells]
    if not splits or min(splits) == len(figures["seeds"]):
        return []
    tables = len({cell["table"] for cell in cells})
    return [f"FLAML was run on {min(splits)} to {max(splits)} splits of {tables} tables."]


def older(figures: dict[str, Any]) -> list[str]:
    """A sentence on the tables whose rows of `auto` are of an earlier state."""
    if not figures.get("earlier"):
        return []
    return [
        f"Rows of an earlier state of `auto`: {', '.join(figures['earlier'])}. Since then trees stop after 25 rounds "
        "without gain instead of 50 (the rows of `trees` alone are older, too), networks of `auto`, from 5,000 rows "
        "on, weigh classes by all rows instead of those of a batch, the search for a lasso is bounded, half a lasso "
        "is tried as a penalty only where columns are more than rows, ridges are scouted by leaving out one row, and "
        "linear models are refined by Newton steps, which change single results in either direction."
    ]


def stack_screened(found: dict[str, Any]) -> list[str]:
    """A paragraph on the weights of the stack, from their own study; none where that was not run."""
    if not found:
        return []
    gains = found["gains over signed, lowest"]
    told = [
        f"{variant}: {100 * own['test'][0]:+.2f} ± {100 * own['test'][1]:.2f} "
        f"({100 * own['at threshold'][0]:+.2f} ± {100 * own['at threshold'][1]:.2f})"
        for variant, own in gains.items()
        if variant != "signed, lowest"
    ]
    return [
        f"Weights of the stack, screened on {found['splits']} other splits of {len(found['tables'].split(', '))} "
        "tables (`python -m benchmarks.studies.tables.stack_weights`): in "
        f"{found['and the stack kept']} of {found['fits']} fits the kept stack has a negative weight. Mean gains over "
        "the present rule in points at the best cut (and at the bare threshold), with standard errors over tables, "
        f"by the form of the weights and the rule that keeps a candidate: {'; '.join(told)}. By the rule that was "
        f"fixed before, *{found['taken']}* is kept; read in another way it would have taken *{found['best']}*."
    ]


def section(figures: dict[str, Any]) -> str:
    parts = [
        *page_fresh.section(),
        "## Ten earlier splits",
        "Cells won and lost by two standard errors of the paired difference over the splits; a cell with fewer than "
        f"{LEAST_SPLITS} splits is shown in the table of cells, but not counted. At the {JUDGED['test']}, and at "
        f"the bare {JUDGED['at threshold']}:",
        count_table(figures),
        "By table; figures by ask are means at the best cut of the test curve, in percent (errors for the first three "
        "asks, precision for the last two):",
        wide("tables", by_table(figures)),
        wide("cells", cell_table(figures)),
        *([f"Not run yet: {', '.join(figures['not run'])}."] if figures["not run"] else []),
        *fewer_splits(figures),
        *flaml_told(figures),
        *older(figures),
        *stack_screened(load_figures("tables_stack")),
    ]
    return "\n\n".join(parts)
