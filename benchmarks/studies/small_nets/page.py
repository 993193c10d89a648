"""The page on implicit thresholds in small networks."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, mean_and_error, share, short, table, wide
from benchmarks.common.words import gain as written
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.small_nets.study import ASKS, OURS, RIVALS

TITLE = "Implicit thresholds in small networks: width, steps, rows and bound"
LEAST_SEEDS = 4
QUESTION = (
    "Does training through the threshold beat tuned class weights in networks that are too small, or trained too "
    "briefly, to fit the data; and where does the gain end?"
)
THREATS = (
    "*Longer* takes as many batches as the grid, in three trainings of 7/3 the length, and beats the grid by far: a "
    "limited number of steps hurts every method, and more steps of cross-entropy are a strong rival.",
    "Implicit thresholds choose among 3 weights and 3 trainings, the grid among 7 and 7; their time of the processor "
    "is about equal (column *time*).",
    "Cells with fewer than four seeds stand in the table and are not counted.",
    "Cells were cut for time after one seed of the first cell had been seen; images are planned and not tried yet "
    "(`--sets Fashion-MNIST`).",
    "Splits of ijcnn1 overlap; its errors are corrected. Four seeds make an error of the error of about 40 %.",
)


def of_ask(figures: dict[str, Any], ask: str) -> list[dict[str, Any]]:
    """The cells that count; those with fewer seeds stand in the table alone."""
    return [row for row in figures["rows"] if row["ask"] == ask and row["seeds"] >= LEAST_SEEDS]


def claims(figures: dict[str, Any]) -> list[Claim]:
    told = []
    for ask in ASKS:
        rows = of_ask(figures, ask)
        for rival in RIVALS[:2] if rows else ():
            gains = [row["gain"][rival] for row in rows]
            found = [sides(gain, "corrected_standard_error") for gain in gains]
            on = f"{len(rows)} cells, {min(row['seeds'] for row in rows)} seeds"
            told.append(Claim(f"small networks, FPR {ask.split('<= ')[1]}: implicit better in every cell",
                              counted(gains, found.count(1), found.count(-1)) + " (corrected)",
                              found.count(1) == len(rows), rival, on, ask == ASKS[0],
                              mean_and_error(gains)))  # fmt: skip
    images = Claim("images, 4 seeds, all 7 weights: implicit better", "", None, RIVALS[0], "Fashion-MNIST")
    return [*told, images]


def label(row: dict[str, Any]) -> str:
    shape = "-".join(map(str, row["widths"])) or "linear"
    return f"{row['set']}, {shape}, {row['steps']:,} steps, {row['rows']:,} rows"


def forest(figures: dict[str, Any]) -> list[Panel]:
    """A panel per bound and rival: the gain against width, steps and rows."""
    return [
        Panel(f"{short(ask)}: implicit thresholds against {rival}", "points of FNR",
              [Line.of(label(row), row["gain"][rival]) for row in of_ask(figures, ask)])
        for ask in ASKS for rival in RIVALS[:2]
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    return (
        "Paired trainings: the same start, batches, steps, Adam on a cosine and running average. *Implicit*: weighted "
        "cross-entropy for the first quarter of the steps, then `WithAnchor(ImplicitThreshold(temperature=1, "
        "memory=32768), CrossEntropy(weight), strength=1)` with the memory of the warm phase, the weight of 1/4, 1 and "
        "4 by held-out rows. *Best of 7 weights*: cross-entropy with positives 1/64 to 64 times as heavy, by held-out "
        "rows. *Longer*: cross-entropy under those three weights with 7/3 as many steps. *Same weight*: cross-entropy "
        f"under the weight that implicit chose. Seeds {figures['seeds'][0]} to {figures['seeds'][-1]}; the rest was "
        "written down in `benchmarks/studies/small_nets/study.py` before the first result."
    )


def section(figures: dict[str, Any]) -> str:
    rows = [
        [label(row), short(row["ask"]), str(row["seeds"]), *(share(row["fnr"][name]) for name in (OURS, *RIVALS)),
         *(written(row["gain"][rival]) for rival in RIVALS), f"{row['time beside the grid']:.2f}"]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["network", "ask", "seeds", OURS, *RIVALS, *(f"over {rival}" for rival in RIVALS), "time"]
    brief = [[*row[:5], row[5], row[7], row[8]] for row in rows]
    return "\n\n".join(
        [
            "FNR on test rows; gains in points, in brackets the corrected error:",
            table([*head[:6], head[7], head[8]], brief),
            wide("cells", table(head, rows)),
        ]
    )
