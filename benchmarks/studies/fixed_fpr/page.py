"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, mean_and_error, short, table

TITLE = "The default for linear models: FNR at a fixed FPR"

QUESTION = "Without rows for the threshold and at an FPR of 1 % or less, does the default beat the best of 21 weights?"
THREATS = ("Two sets, five splits each, which overlap.", "On these splits the default had been developed.")


def claims(figures: dict[str, Any]) -> list[Claim]:
    gains = [cell["gain over best of 21 weights"] for cell in figures["cells"]]
    better, worse = (sum(side * gain["mean"] > 2 * gain["standard_error"] for gain in gains) for side in (1, -1))
    return [Claim("linear models, FPR of 1 % or less: better in every cell", counted(gains, better, worse),
                  better == len(gains), "best of 21 weights", "2 sets", False, mean_and_error(gains))]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    lines = [Line.of(f"{cell['set']}: {short(cell['ask'])}", cell["gain over best of 21 weights"])
             for cell in figures["cells"]]  # fmt: skip
    return [Panel("The default against the best of 21 weights", "points of FNR", lines)]


def design(figures: dict[str, Any]) -> str:
    return "FNR in percent on test rows; in brackets the standard error corrected for overlapping splits."


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        means = {name: 100 * sum(values) / len(values) for name, values in cell["figures"].items()}
        gain = cell["gain over best of 21 weights"]
        rows.append(
            [
                cell["set"],
                cell["ask"],
                *(f"{means[name]:.2f}" for name in ("cross-entropy", "best of 21 weights", "default")),
                f"{100 * gain['mean']:.2f} ± {100 * gain['standard_error']:.2f} "
                f"({100 * gain['corrected_standard_error']:.2f})",
                *(f"{cell['seconds'][name]:.1f} s" for name in ("best of 21 weights", "default")),
            ]
        )
    header = ["set", "ask", "cross-entropy", "best of 21 weights", "default", "gain over the weights, in points",
              "time of the grid", "of the default"]  # fmt: skip
    return table(header, rows)
