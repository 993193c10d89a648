"""The page on implicit thresholds in small networks."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import counted, mean_and_error, share, short, table, wide
from benchmarks.common.words import gain as written
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.small_nets.study import ASKS, OURS, RIVALS
from benchmarks.studies.small_nets.worlds import IMAGES, PIXELS

TITLE = "Implicit thresholds in small networks: width, steps, rows and bound"
LEAST_SEEDS = 4
#: A rival in words that need no explanation, and what it means to beat it.
PLAINLY = {
    RIVALS[0]: ("best of 7 weights", "beats 7 weights"),
    RIVALS[1]: ("cross-entropy, 7/3 as many steps", "beats training longer"),
    RIVALS[3]: ("cross-entropy, more steps, as long", "beats equal time"),
}
#: The rivals of the short table.
SHORT = RIVALS[:2]
#: Rivals whose time of the processor is told, as a multiple of that of implicit thresholds.
TIMED = (*RIVALS[:2], RIVALS[3])
QUESTION = (
    "Does training through the threshold beat tuned class weights in networks that are too small, or trained too "
    "briefly, to fit the data; and where does the gain end?"
)
THREATS = (
    "*Longer* takes as many batches as the grid, in three trainings of 7/3 the length, and beats the grid by far: a "
    "limited number of steps hurts every method, and more steps of cross-entropy are a strong rival.",
    "Implicit thresholds choose among 3 weights and 3 trainings, the grid among 7 and 7. No rival has exactly their "
    "time: the steps of *equal time* were fixed before the first result, and took longer than those of implicit "
    "thresholds (above, and columns *time* of the full table).",
    "Cells with fewer than four seeds stand in the table and are not counted.",
    "Cells were cut for time after one seed of the first cell had been seen; those of images were fixed before their "
    "first result, but a prototype on two seeds of the same images had been seen.",
    "Splits of ijcnn1 and of Fashion-MNIST overlap; their errors are corrected. Four seeds make an error of the error "
    "of about 40 %.",
)


def of_ask(figures: dict[str, Any], ask: str, rival: str = RIVALS[0]) -> list[dict[str, Any]]:
    """The cells that count and have this rival; those with fewer seeds stand in the table alone."""
    return [
        row for row in figures["rows"] if row["ask"] == ask and row["seeds"] >= LEAST_SEEDS and rival in row["gain"]
    ]


def bound_of(ask: str) -> str:
    return ask.split("<= ")[1].replace("%", " %")


def of_images(row: dict[str, Any]) -> bool:
    return row["set"] in (PIXELS, IMAGES)


def claim_of(says: str, rows: list[dict[str, Any]], rival: str, index: bool = False) -> Claim:
    gains = [row["gain"][rival] for row in rows]
    found = [sides(gain, "corrected_standard_error") for gain in gains]
    on = f"{len(rows)} cells, {min(row['seeds'] for row in rows)} seeds"
    against, beats = PLAINLY[rival]
    return Claim(f"{says}: implicit {beats} in every cell",
                 counted(gains, found.count(1), found.count(-1)) + " (corrected)", found.count(1) == len(rows), against,
                 on, index, mean_and_error(gains))  # fmt: skip


def claims(figures: dict[str, Any]) -> list[Claim]:
    """Over all cells, and over those of images alone; the rivals with the same weight show the loss by itself."""
    told = []
    for ask in ASKS:
        for rival in RIVALS[:2]:
            if rows := of_ask(figures, ask, rival):
                told.append(claim_of(f"small networks, FPR {bound_of(ask)}", rows, rival, ask == ASKS[0]))
    for ask in ASKS:
        for rival in (RIVALS[0], *RIVALS[1:2], RIVALS[3]):
            if rows := [row for row in of_ask(figures, ask, rival) if of_images(row)]:
                told.append(claim_of(f"images, FPR {bound_of(ask)}", rows, rival))
    return told


def label(row: dict[str, Any]) -> str:
    shape = "-".join(map(str, row["widths"])) or "linear"
    return f"{row['set']}, {shape}, {row['steps']:,} steps, {row['rows']:,} rows"


def forest(figures: dict[str, Any]) -> list[Panel]:
    """A panel per bound and rival: the gain against width, steps and rows."""
    return [
        Panel(f"{short(ask)}: implicit thresholds against {rival}", "points of FNR",
              [Line.of(label(row), row["gain"][rival]) for row in of_ask(figures, ask, rival)])
        for ask in ASKS for rival in (*RIVALS[:2], RIVALS[3])
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    return (
        "Paired trainings: the same start, batches, steps, Adam on a cosine and running average. *Implicit*: weighted "
        "cross-entropy for the first quarter of the steps, then `WithAnchor(ImplicitThreshold(temperature=1, "
        "memory=32768), CrossEntropy(weight), strength=1)` with the memory of the warm phase, the weight of 1/4, 1 and "
        "4 by held-out rows. *Best of 7 weights*: cross-entropy with positives 1/64 to 64 times as heavy, by held-out "
        "rows. *Longer*: cross-entropy under those three weights with 7/3 as many steps. *Same weight*: cross-entropy "
        "under the weight that implicit chose. *Equal time*, on images: cross-entropy under the three weights with "
        "as many steps as take the time of implicit, 4 times for linear layers and 1.5 times for convolutions. Images: "
        f"shirts of Fashion-MNIST, 35,000 to train on. Seeds {figures['seeds'][0]} to {figures['seeds'][-1]}; the "
        "rest was written down in `benchmarks/studies/small_nets/study.py` before the first result."
    )


def found_out(figures: dict[str, Any]) -> list[str]:
    """The cells of images, rival by rival: the gain, and how much time the rival takes for it."""
    told = [
        f"- {row['set']}, {row['steps']:,} steps, {short(row['ask'])}: "
        + "; ".join(f"{written(row['gain'][rival])} over {rival}, which takes {row['time'][rival]:.1f} times the time"
                    for rival in TIMED)
        for row in figures["rows"] if of_images(row) and row["seeds"] >= LEAST_SEEDS
    ]  # fmt: skip
    return ["Images, implicit thresholds in points of FNR:\n\n" + "\n".join(told)] if told else []


def section(figures: dict[str, Any]) -> str:
    rows = [
        [label(row), short(row["ask"]), str(row["seeds"]),
         *(share(row["fnr"].get(name)) for name in (OURS, *RIVALS)),
         *(written(row["gain"][rival]) if rival in row["gain"] else "" for rival in RIVALS),
         *(f"{row['time'][rival]:.1f}" if rival in row["time"] else "" for rival in TIMED)]
        for row in figures["rows"]
    ]  # fmt: skip
    head = ["network", "ask", "seeds", OURS, *RIVALS, *(f"over {rival}" for rival in RIVALS),
            *(f"time of {rival}" for rival in TIMED)]  # fmt: skip
    parts = [
        *found_out(figures),
        "Gains of implicit thresholds in points of FNR, in brackets the corrected error:",
        by_network(figures),
        wide("cells", table(head, rows)),
    ]
    if figures.get("by steps"):
        parts += [
            "Is cross-entropy flat? FNR of shirts by its steps, the weight chosen on held-out rows, means over the "
            "seeds that have all lengths:",
            by_steps(figures),
        ]
    return "\n\n".join(parts)


def by_network(figures: dict[str, Any]) -> str:
    """A row per network: the gains at both bounds."""
    asks = list(dict.fromkeys(row["ask"] for row in figures["rows"]))
    cells = {(label(row), row["ask"]): row for row in figures["rows"]}
    rows = []
    for name in dict.fromkeys(label(row) for row in figures["rows"]):
        own = [cells[name, ask] for ask in asks if (name, ask) in cells]
        gains = [written(row["gain"][rival]) if rival in row["gain"] else "" for row in own for rival in SHORT]
        rows.append([name, str(own[0]["seeds"]), *gains, *[""] * (len(SHORT) * (len(asks) - len(own)))])
    return table(["network", "seeds", *(f"{bound_of(ask)}: over {rival}" for ask in asks for rival in SHORT)], rows)


def by_steps(figures: dict[str, Any]) -> str:
    """A row per network and ask: implicit at each of its lengths, and cross-entropy at all."""
    rows = [
        [row["set"], short(row["ask"]), str(row["seeds"]),
         "; ".join(f"{int(steps):,}: {share(value)}" for steps, value in row["implicit"].items()),
         "; ".join(f"{int(steps):,}: {share(value)}" for steps, value in row["cross-entropy"].items())]
        for row in figures["by steps"]
    ]  # fmt: skip
    return table(["network", "ask", "seeds", "implicit, steps: FNR", "cross-entropy, steps: FNR"], rows)
