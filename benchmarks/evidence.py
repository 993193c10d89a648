"""Writes docs/evidence.md and its figures from the results on disk: every table with its command, seeds and errors.

    python -m benchmarks.evidence [--quick]

`--quick` reads what the studies wrote with `--quick`, and writes its page beside those.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import results_folder
from benchmarks.plots import draw
from benchmarks.tables import table, verdict
from benchmarks.verdicts import SMALL, sides

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
ERRORS = {"standard_error": "plain", "corrected_standard_error": "corrected"}
JUDGED = {"test": "best cut of the test curve", "at threshold": "threshold set on validation rows"}


def gain(found: dict[str, float], scale: float = 100) -> str:
    """Mean, plain error and, in brackets, the one corrected for overlapping splits."""
    errors = [scale * found[error] for error in ERRORS]
    return f"{scale * found['mean']:+.2f} ± {errors[0]:.2f} ({errors[1]:.2f})"


def ours_in(figures: dict[str, Any]) -> list[str]:
    return list(figures["cells"][0]["gain, test"])


def targets(figures: dict[str, Any]) -> str:
    """What was asked of the default, and whether it holds, by both standard errors."""
    cells, rows = figures["cells"], []
    for ours in ours_in(figures):
        for error, kind in ERRORS.items():
            found = {rival: figures["counts"][f"{ours} | {rival} | test | {error}"] for rival in
                     ("best of 21 weights", "cross-entropy")}  # fmt: skip
            weights, plain = found["best of 21 weights"], found["cross-entropy"]
            share = weights["better"] / len(cells)
            lost = plain["worse by half a point as well"]
            claims = [
                ("better than the best of 21 weights in 40 % of the cells", f"{weights['better']} of {len(cells)}",
                 share >= 0.4),
                ("worse than them in none", str(weights["worse"]), weights["worse"] == 0),
                (f"worse than cross-entropy by {100 * SMALL:g} points as well in none", str(lost), lost == 0),
            ]  # fmt: skip
            rows += [[ours, claim, kind, value, verdict(met)] for claim, value, met in claims]
    return table(["method", "two standard errors or more", "errors", "cells", "met"], rows)


def count_table(figures: dict[str, Any]) -> str:
    rows = []
    for name, found in figures["counts"].items():
        ours, rival, judged, error = name.split(" | ")
        rows.append([ours, rival, JUDGED[judged], ERRORS[error], str(found["better"]), str(found["worse"]),
                     str(found["worse by half a point as well"])])  # fmt: skip
    return table(["method", "against", "judged at", "errors", "better", "worse", "by half a point too"], rows)


def cell_table(figures: dict[str, Any], judged: str = "test") -> str:
    names = [*figures["cells"][0][judged]]
    rows = []
    for cell in figures["cells"]:
        gains = cell[f"gain, {judged}"]["default"]
        outcome = {1: "better", 0: "", -1: "worse"}[sides(gains["best of 21 weights"], "standard_error")]
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell[judged][name]:.2f}" for name in names),
                     gain(gains["best of 21 weights"]), outcome, gain(gains["cross-entropy"])])  # fmt: skip
    header = ["set", "ask", *names, "default over the weights", "", "over cross-entropy"]
    return table(header, rows)


def costs(figures: dict[str, Any]) -> str:
    """Seconds of a thread's processor, the mean over asks and splits."""
    names = [*figures["cells"][0]["seconds"]]
    rows = []
    for one in dict.fromkeys(cell["set"] for cell in figures["cells"]):
        times = [cell["seconds"] for cell in figures["cells"] if cell["set"] == one]
        rows.append([one, *(f"{statistics.mean(time[name] for time in times):.2f}" for name in names)])
    return table(["set, seconds", *names], rows)


def default_study(figures: dict[str, Any]) -> str:
    seeds = figures["seeds"]
    parts = [
        f"{len(seeds)} of {figures['planned splits']} planned splits, seeds {seeds[0]} to {seeds[-1]}, of 60/20/20, at "
        f"most {figures['most training rows']:,} training rows. All models are linear, with the same features and "
        "ridge; cross-entropy under each of the 21 class weights (2^-10 to 2^10) is trained to convergence, the weight "
        "chosen on validation rows by the exact metric. `default` is what `sp.fit` does with a linear model: one "
        "strength, nothing chosen. FNR is better when lower, precision when higher; gains are positive when ours is "
        "better, in points.",
        targets(figures),
        cell_table(figures),
        "In percent on test rows, at the best cut of the test curve, for all methods alike. Errors are standard errors "
        "of the paired differences; in brackets Nadeau and Bengio's, for splits that overlap. Better and worse: by two "
        "plain standard errors.",
        "![Gain of the default over the best of 21 class weights](images/default_study.svg)",
        "All counts, also at the threshold that each method sets on validation rows. There the bounded rate differs "
        "from method to method as well, and is not recorded, so that a better objective may be a bound that is broken "
        "more:",
        count_table(figures),
        "What it costs: 21 trainings for the grid; for the default one matched start and one refinement, for the four "
        "strengths one start and four. In seconds the grid of a small linear model is cheaper.",
        costs(figures),
    ]
    return "\n\n".join(parts)


def scalings(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        gains = cell["gain, test"]["default"]
        below = sides(gains["cross-entropy"], "standard_error") < 0
        rows.append([cell["set"], cell["ask"], *(f"{100 * cell['test'][name]:.2f}" for name in
                     ("cross-entropy", "best of 21 weights", "default")), gain(gains["cross-entropy"]),
                     gain(gains["best of 21 weights"]), verdict(not below)])  # fmt: skip
    seeds = figures["seeds"]
    note = f"{len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}. Not below: not by two plain standard errors."
    header = ["features", "ask", "cross-entropy", "best of 21 weights", "default", "default over cross-entropy",
              "over the weights", "not below cross-entropy"]  # fmt: skip
    return f"{note}\n\n{table(header, rows)}"


def paper_tabular(figures: dict[str, Any]) -> str:
    rows = []
    for row in figures["rows"]:
        published, told = row.get("published"), ["", "", ""]
        if published:
            told = [f"{published['column']} {published['mean']:.2f} ± {published['error']:.2f}",
                    f"{published['ratio to cross-entropy']:.2f}", verdict(published["within both errors"])]  # fmt: skip
        area = f"{row['area']['mean']:.2f} ± {row['area']['standard_error']:.2f}"
        ratio = f"{row['ratio to cross-entropy']:.2f}"
        rows.append(
            [row["set"], str(row["splits"]), row["method"], area, told[0], ratio, told[1], told[2],
             gain(row["minus cross-entropy"], 1), gain(row["minus best of 21 weights"], 1), f"{row['seconds']:.1f}"]
        )  # fmt: skip
    seeds = figures["seeds"]
    header = ["set", "splits", "method", "ours", "published", "ratio to cross-entropy", "published", "agrees",
              "over cross-entropy", "over the weights", "seconds"]  # fmt: skip
    note = (
        f"`{figures['ask']}`, {len(seeds)} splits planned, seeds {seeds[0]} to {seeds[-1]}, of 50/25/25; those done "
        "are in the table. Published: Kumar, "
        "Narasimhan and Cotter, ICML 2021, Table 5. Agrees: the means differ by no more than two of both errors. "
        "Linear models; what is tuned is tuned on validation rows."
    )
    return f"{note}\n\n{table(header, rows)}"


def peers(figures: dict[str, Any]) -> str:
    rows = []
    for row in figures["rows"]:
        if "error" in row:
            rows.append(
                [row["set"], row["peer"], row["version"], "did not run", f"`{row['error']}`", "", "", "", "", ""]
            )
            continue
        rows.append(
            [row["set"], row["peer"], row["version"], f"{100 * row['test']:.2f}", gain(row["ours minus it"])
             if "ours minus it" in row else "", f"{100 * row['at threshold']:.2f}", f"{100 * row['fpr']:.2f}",
             f"{row['candidates']:.0f}", f"{row['seconds']:.1f}",
             f"{row['peak megabytes']:.0f}" if "peak megabytes" in row else ""]
        )  # fmt: skip
    seeds = figures["seeds"]
    note = (
        f"`{figures['ask']}`, {len(seeds)} splits, seeds {seeds[0]} to {seeds[-1]}, of 60/20/20, at most "
        f"{figures['most training rows']:,} training rows. Each peer in an environment of its own, made by `python -m "
        "benchmarks.peers.environments`; the same rows, the same number of full-batch steps where it takes steps, and "
        "of several settings the best on validation rows. FNR in percent: at the best cut of the test curve, and at "
        "the threshold set on validation rows, with the FPR there. Seconds are by the wall, of all settings tried; "
        "memory, where it was measured, is the peak of the process. TFCO had three losses to choose from, ours one. A "
        "linear model each, but for LightGBM. fairlearn is not here: its reductions bound differences between groups, "
        "not a rate."
    )
    header = ["set", "method", "version", "FNR, best cut", "better than it by our Lagrangian", "FNR at threshold",
              "FPR there", "models to choose from", "seconds", "MB"]  # fmt: skip
    return f"{note}\n\n{table(header, rows)}"


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "default_study": ("The default, linear models and heads", default_study),
    "scalings": ("Spambase under four scalings", scalings),
    "paper_tabular": ("Table 5 of the implicit-thresholds paper", paper_tabular),
    "peers": ("Peers, run", peers),
}


def page(quick: bool = False) -> str:
    """The whole page, from the json files."""
    parts = [
        "# Evidence\n\nWritten by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed. "
        "`make evidence` runs what is missing and writes the page anew, `make evidence QUICK=1` a small version of "
        "each study, in minutes, into a temporary folder."
    ]
    for name, (title, render) in SECTIONS.items():
        path = results_folder(quick) / f"{name}.json"
        if not path.is_file():
            parts.append(f"## {title}\n\nNot run yet: `python -m benchmarks.{name}`.")
            continue
        result = json.loads(path.read_text())
        note = f"`{result['command']}`, torch {result['versions']['torch']}, {result['machine']['cpu_count']} cores."
        parts.append(f"## {title}\n\n{note}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    path = results_folder(quick) / "evidence.md" if quick else PAGE
    path.write_text(page(quick))
    print(f"wrote {path}")
    for made in draw(path.parent / "images", quick):
        print(f"wrote {made}")


if __name__ == "__main__":
    main()
