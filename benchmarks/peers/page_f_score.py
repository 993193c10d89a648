"""The contest with cvxpylayers: the F-score, and its linear program solved in two ways."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import table, wide
from benchmarks.peers.page_rows import COST, Row, better_by, clearly, listed, percent, pivoted, rows_table, scope

CLOSED, LAYER = "setpoint, the program in closed form", "cvxpylayers, the same program"


def two_ways(rows: list[Row]) -> str:
    """How the two ways to solve one program compare, a clause a set."""
    found = {(row["set"], row["peer"]): row for row in rows if "error" not in row}
    shown = []
    for name in dict.fromkeys(row["set"] for row in rows):
        if (name, CLOSED) in found and (name, LAYER) in found:
            ours, its = found[name, CLOSED], found[name, LAYER]
            shown.append(
                f"on {name} the mean F-score of its models is within {100 * abs(ours['test'] - its['test']):.2f} "
                f"points of that of the closed form, in {its['seconds'] / ours['seconds']:.0f} times the seconds"
            )
    return "; ".join(shown) or "it did not run"


def verdict(rows: list[Row]) -> str:
    """Where the closed form differs clearly."""
    return (
        "By more than two corrected standard errors, at the best cut, the closed form is better than: "
        f"{listed(clearly(rows, 'test', 1))}; worse than: {listed(clearly(rows, 'test', -1))}."
    )


def f_section(figures: dict[str, Any]) -> str:
    rows = figures["rows"]
    columns = {
        "F, best cut": percent("test"), "better than it by the closed form": better_by("test"),
        "F at threshold": percent("at threshold"), "better there by the closed form": better_by("at threshold"),
        **COST, "note": lambda row: row["note"],
    }  # fmt: skip
    brief = {"F": percent("test"), "our closed form better by": better_by("test")}
    return "\n\n".join(
        [
            f"F-score in percent at the best cut of the test curve. {verdict(rows)}",
            pivoted(rows, brief),
            f"The same program solved in two ways: {two_ways(rows)}.",
            wide("f-score", rows_table(rows, columns)),
        ]
    )


def f_notes(figures: dict[str, Any]) -> list[str]:
    """What was fixed, and what was changed after a look."""
    return [
        f"{scope(figures)} F-scores in percent: at the best cut of the test curve, and at the threshold set on "
        "validation rows. A linear model each.",
        "cvxpylayers solves the linear program of the F-score for each batch and differentiates it; our closed form "
        "has the value of that very program from the scores alone. Both start from plain cross-entropy and take 150 "
        "steps of Adam on the same batches of 256 rows, for each of three rates and three margins of the program; "
        "`ImplicitThreshold` as many, for three rates and three steps; ap-perf batches of 32 for half a minute. The "
        "start is among the models of each.",
        "`default` is `sp.fit` with no solver, which chooses nothing on validation rows but the threshold.",
        "Seconds are by the wall, of all settings tried, on a machine that was busy with other work.",
        "`default` and `ImplicitThreshold` were run once more after the first run: on training and validation rows of "
        "two other splits their scores had been seen to drift where no bound holds the threshold, which was mended; "
        "`default` again once its anchor had been made stronger, on other splits.",
    ]


def f_table(figures: dict[str, Any]) -> str:
    """The same in short."""
    rows = [
        [row["set"], row["peer"], f"{100 * row['test']:.1f}", f"{100 * row['at threshold']:.1f}",
         f"{row['seconds']:.1f}", f"{row['peak megabytes']:.0f}"]
        for row in figures["rows"]
        if "error" not in row
    ]  # fmt: skip
    head = ["set", "method", "F-score, best cut", "at the threshold of validation rows", "seconds", "MB"]
    return f"{table(head, rows)}\n\nOf cvxpylayers: {two_ways(figures['rows'])}. {verdict(figures['rows'])}"
