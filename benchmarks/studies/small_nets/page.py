"""The page on implicit thresholds in small networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from benchmarks.common.chance import chance_told
from benchmarks.common.telling import Claim, table_of
from benchmarks.common.words import (
    by_source,
    counted,
    gain_or_loss,
    mean_and_error,
    of_sources,
    share,
    short,
    table,
    wide,
)
from benchmarks.common.words import gain as written
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.small_nets import page_auto
from benchmarks.studies.small_nets.page_figure import MARKERS, SHAPES, Row, drawn, few, shape_of
from benchmarks.studies.small_nets.study import ASKS, OURS, RIVALS
from benchmarks.studies.small_nets.worlds import IMAGES, PIXELS

TITLE = "Implicit thresholds in small networks: width, steps, rows and bound"
LEAST_SEEDS = 4
TUNED, LONGER, _, EQUAL = RIVALS
#: A rival in words that need no explanation.
PLAINLY = {
    TUNED: "best of 7 weights",
    LONGER: "cross-entropy, 7/3 as many steps",
    EQUAL: "cross-entropy, more steps, as long",
}
#: The rivals of the figure and of the short table.
SHOWN = (TUNED, LONGER)
#: Rivals whose time of the processor is told, as a multiple of that of implicit thresholds.
TIMED = (TUNED, LONGER, EQUAL)
CAPTION = (
    "One point per network: the gain of implicit thresholds over the rival named above the panel, with two standard "
    "errors to either side, corrected where splits overlap. Networks with the same number of steps stand side by side. "
    "Above zero implicit thresholds are better."
)
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
    "Cells of one data source share rows: errors of means count the sources where there is more than one, and so few "
    "sources say little of an error.",
    "Cells were cut for time after one seed of the first cell had been seen; those of images were fixed before their "
    "first result, but a prototype on two seeds of the same images had been seen.",
    "Splits of ijcnn1 and of Fashion-MNIST overlap; their errors are corrected. Four seeds make an error of the error "
    f"of about 40 %. {chance_told(LEAST_SEEDS)}",
)


def of_ask(figures: dict[str, Any], ask: str, rival: str = TUNED) -> list[dict[str, Any]]:
    """The cells that count and have this rival; those with fewer seeds stand in the table alone."""
    return [
        row for row in figures["rows"] if row["ask"] == ask and row["seeds"] >= LEAST_SEEDS and rival in row["gain"]
    ]


def bound_of(ask: str) -> str:
    return ask.split("<= ")[1].replace("%", " %")


def of_images(row: dict[str, Any]) -> bool:
    return row["set"] in (PIXELS, IMAGES)


def gains_of(rows: list[Row], rival: str) -> list[Row]:
    """The gains over a rival, each with the data behind its set."""
    return by_source(rows, lambda row: row["gain"][rival])


def claim_of(says: str, rows: list[Row], rival: str, index: bool = False) -> Claim:
    gains = gains_of(rows, rival)
    better, worse = sides_of(gains)
    on = f"{of_sources(len(rows), 'cells', [r['set'] for r in rows])}, {min(row['seeds'] for row in rows)} seeds"
    return Claim(f"{says}: implicit better in every cell", counted(gains, better, worse) + " (corrected)",
                 better == len(rows), PLAINLY[rival], on, index, mean_and_error(gains))  # fmt: skip


def sides_of(gains: list[dict[str, float]]) -> tuple[int, int]:
    """In how many cells there is a gain and in how many a loss, beyond two corrected errors."""
    found = [sides(gain, "corrected_standard_error") for gain in gains]
    return found.count(1), found.count(-1)


def claims(figures: dict[str, Any]) -> list[Claim]:
    """Over all cells; and for images against cross-entropy that trains longer."""
    return [
        *(claim_of(f"small networks, FPR {bound_of(ask)}", rows, rival, ask == ASKS[0])
          for ask in ASKS for rival in SHOWN if (rows := of_ask(figures, ask, rival))),
        *of_image_cells(figures, (LONGER, EQUAL)),
        *page_auto.claims(),
    ]  # fmt: skip


def of_image_cells(figures: dict[str, Any], rivals: tuple[str, ...]) -> list[Claim]:
    return [
        claim_of(f"images, FPR {bound_of(ask)}", rows, rival)
        for ask in ASKS for rival in rivals
        if (rows := [row for row in of_ask(figures, ask, rival) if of_images(row)])
    ]  # fmt: skip


def answer(figures: dict[str, Any]) -> str:
    """The answer in a few sentences; none before both rivals have cells."""
    gains = {rival: {ask: gains_of(of_ask(figures, ask, rival), rival) for ask in ASKS} for rival in SHOWN}
    if not all(gains[rival][ask] for rival in SHOWN for ask in ASKS):
        return ""
    means = {rival: [mean_and_error(own)[0] for own in gains[rival].values()] for rival in SHOWN}
    stronger = all(longer < tuned for longer, tuned in zip(means[LONGER], means[TUNED]))
    told = [
        "Against the best of 7 class weights with the same number of steps, implicit thresholds "
        f"{found(gains[TUNED])}.",
        f"Cross-entropy that trains longer is {'the stronger rival' if stronger else 'no stronger rival'}: against 7/3 "
        f"as many steps, in {times(figures, LONGER)} times the time, implicit thresholds {found(gains[LONGER])}.",
    ]
    return " ".join([*told, advice(gains)])


def on_images(figures: dict[str, Any]) -> list[str]:
    """The same against more steps, on images alone."""
    told = []
    for ask in ASKS:
        rows = [row for row in of_ask(figures, ask, LONGER) if of_images(row)]
        if not rows:
            return []
        gains = gains_of(rows, LONGER)
        (mean, error), (better, worse) = mean_and_error(gains), sides_of(gains)
        word = f"are level ({mean:+.1f} ± {error:.1f})" if abs(mean) <= 2 * error else gain_or_loss(mean)
        told.append(f"{word} at {bound_of(ask)} (better in {better} and worse in {worse} of {len(gains)} networks)")
    return [f"On images, against 7/3 as many steps, implicit thresholds {' and '.join(told)}."]


def times(figures: dict[str, Any], rival: str) -> str:
    """The time of a rival as a multiple of that of implicit thresholds, from the least to the most."""
    own = [row["time"][rival] for ask in ASKS for row in of_ask(figures, ask, rival)]
    return f"{min(own):.1f} to {max(own):.1f}"


def found(gains: dict[str, list[dict[str, float]]]) -> str:
    """The mean gain or loss at every bound in words, whether it is beyond noise, and in how many networks."""
    told: list[str] = []
    for ask, own in gains.items():
        better, worse = sides_of(own)
        mean, error = mean_and_error(own)
        within = "within two standard errors; " if abs(mean) <= 2 * error else ""
        if told:
            told.append(f"{gain_or_loss(mean, '')} at {bound_of(ask)} ({within}{better} and {worse})")
        else:
            told.append(f"{gain_or_loss(mean, ' points of FNR')} at an FPR of {bound_of(ask)} ({within}better in "
                        f"{better} of {len(own)} networks, worse in {worse})")  # fmt: skip
    return " and ".join(told)


def with_steps(figures: dict[str, Any]) -> list[str]:
    """How the gain over class weights moves in the networks that were also trained longest."""
    if not all(of_ask(figures, ask) for ask in ASKS):
        return []
    told: list[str] = []
    steps = number = 0
    for ask in ASKS:
        rows = of_ask(figures, ask)
        last = [row for row in rows if row["steps"] == max(row["steps"] for row in rows)]
        same = [row for row in rows if any(alike(row, other, ("set", "widths", "rows")) for other in last)]
        first = [row for row in same if row["steps"] == min(row["steps"] for row in same)]
        ends = [mean_and_error([row["gain"][TUNED] for row in own])[0] for own in (first, last)]
        steps, number = last[0]["steps"], len(last)
        word = "falls " if ends[1] < ends[0] else "rises "
        # The verb once, where all bounds have the same.
        word = "" if told and told[0].startswith(word) else word
        told.append(f"{word}from {ends[0]:+.1f} ({first[0]['steps']:,} steps) to {ends[1]:+.1f} at {bound_of(ask)}")
    return [
        f"In the {number} networks that were also trained for {steps:,} steps the gain over class weights "
        f"{' and '.join(told)}."
    ]


def alike(row: Row, other: Row, names: tuple[str, ...]) -> bool:
    return all(row[name] == other[name] for name in names)


def advice(gains: dict[str, dict[str, list[Row]]]) -> str:
    found = {rival: {ask: mean_and_error(one) for ask, one in own.items()} for rival, own in gains.items()}
    means = {rival: [mean for mean, _ in own.values()] for rival, own in found.items()}
    if min(means[TUNED]) > 0 > max(means[LONGER]):
        sure = [bound_of(ask) for ask, (mean, error) in found[TUNED].items() if mean > 2 * error]
        where = "" if len(sure) == len(ASKS) else f", beyond noise at {sure[0]} alone" if sure else ", not beyond noise"
        return (
            "So train cross-entropy longer first; implicit thresholds help where the number of steps is fixed and "
            f"class weights are the alternative{where}."
        )
    if min(means[TUNED] + means[LONGER]) > 0:
        return "So implicit thresholds are worth their time in small networks."
    return "So no rule for all small networks follows from these figures."


def label(row: Row) -> str:
    return f"{row['set']}, {shape_of(row)}, {row['steps']:,} steps, {row['rows']:,} rows"


def figure(figures: dict[str, Any]) -> Figure | None:
    """The gain against steps, by rival and bound, of the cells that count."""
    rows = [row for ask in ASKS for row in of_ask(figures, ask)]
    titles = {TUNED: "best of 7 class weights", LONGER: "cross-entropy, 7/3 the steps"}
    return drawn(rows, titles, {ask: bound_of(ask) for ask in ASKS})


def design(figures: dict[str, Any]) -> str:
    return (
        "Paired trainings: the same start, batches, steps, Adam on a cosine and running average. *Implicit*: weighted "
        "cross-entropy for the first quarter of the steps, then `WithAnchor(ImplicitThreshold(temperature=1, "
        "memory=32768), CrossEntropy(weight), strength=1)` with the memory of the warm phase, the weight of 1/4, 1 and "
        "4 by held-out rows. *Best of 7 weights*: cross-entropy with positives 1/64 to 64 times as heavy, by held-out "
        "rows. *Longer*: cross-entropy under those three weights with 7/3 as many steps. *Same weight*: cross-entropy "
        "under the weight that implicit chose. *Equal time*, on images: cross-entropy under the three weights with "
        "as many steps as take the time of implicit, 4 times for linear layers and 1.5 times for convolutions. Images: "
        f"shirts of Fashion-MNIST, 35,000 to train on. {seeds_run(figures)}; the "
        "rest was written down in `benchmarks/studies/small_nets/study.py` before the first result."
    )


def seeds_run(figures: dict[str, Any]) -> str:
    """The seeds that were run, which are taken in order, and those that were planned."""
    planned, most = figures["seeds"], max((row["seeds"] for row in figures["rows"]), default=0)
    return f"Seeds {planned[0]} to {planned[max(most, 1) - 1]} of those planned, {planned[0]} to {planned[-1]}"


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
    beside = " ".join([*on_images(figures), *with_steps(figures)])
    parts = [
        *by_kind(figures),
        *([beside] if beside else []),
        "Every network with every rival, and the claims on images against class weights:",
        wide("cells", table(head, rows)),
    ]
    if left := of_image_cells(figures, (TUNED,)):
        parts.append(wide("claims", table_of([*claims(figures), *left])))
    parts += of_time(figures)
    parts += page_auto.section()
    if figures.get("by steps"):
        parts += [
            "Do more steps of cross-entropy stop helping? FNR of shirts by its steps, the weight chosen on held-out "
            "rows, means over the seeds that have all lengths:",
            by_steps(figures),
        ]
    return "\n\n".join(parts)


def by_kind(figures: dict[str, Any]) -> list[str]:
    """Where the gain is: the mean by steps, by network and by rows."""
    whole = of_ask(figures, ASKS[0])
    fewer = [row for row in whole if few(row, whole)]
    kinds: dict[str, Callable[[Row], bool]] = {
        "at most 500 steps": lambda row: row["steps"] <= 500,
        "1,000 to 2,000 steps": lambda row: 500 < row["steps"] <= 2_000,
        "8,000 steps": lambda row: row["steps"] > 2_000,
        **{SHAPES.get(name, f"two layers, {name} units"): partial(has_shape, name) for name in MARKERS},
        "few training rows": lambda row: few(row, whole),
        "the same networks, all rows": lambda row: (
            not few(row, whole) and any(alike(row, other, ("set", "widths", "steps")) for other in fewer)),
    }  # fmt: skip
    rows = []
    for name, holds in kinds.items():
        cells = []
        for ask in ASKS:
            for rival in SHOWN:
                gains = [row["gain"][rival] for row in of_ask(figures, ask, rival) if holds(row)]
                cells.append(
                    f"{mean_and_error(gains)[0]:+.1f} ({', '.join(map(str, sides_of(gains)))})" if gains else ""
                )
        number = sum(map(holds, whole))
        rows += [[name, str(number), *cells]] if number else []
    if not rows:
        return []
    head = ["networks", "number", *(f"{bound_of(ask)}: over {rival}" for ask in ASKS for rival in SHOWN)]
    return [
        "Mean gain of implicit thresholds in points of FNR; in brackets the number of networks that are better and "
        "worse beyond two corrected errors:",
        table(head, rows),
    ]


def has_shape(name: str, row: Row) -> bool:
    return shape_of(row) == name


def of_time(figures: dict[str, Any]) -> list[str]:
    """The cells of images, rival by rival: the gain, and how much time the rival takes for it."""
    rows = [
        [f"{row['set']}, {row['steps']:,} steps", bound_of(row["ask"]),
         *(f"{written(row['gain'][rival])}; {row['time'][rival]:.1f}" for rival in TIMED)]
        for row in figures["rows"] if of_images(row) and row["seeds"] >= LEAST_SEEDS
    ]  # fmt: skip
    if not rows:
        return []
    return [
        "Images: the gain in points of FNR, in brackets the corrected error, and after it the rival's time as a "
        "multiple of that of implicit thresholds:",
        table(["network", "FPR", *(f"over {rival}; time" for rival in TIMED)], rows),
    ]


def by_steps(figures: dict[str, Any]) -> str:
    """A row per network and ask: implicit at each of its lengths, and cross-entropy at all."""
    rows = [
        [row["set"], short(row["ask"]), str(row["seeds"]),
         "; ".join(f"{int(steps):,}: {share(value)}" for steps, value in row["implicit"].items()),
         "; ".join(f"{int(steps):,}: {share(value)}" for steps, value in row["cross-entropy"].items())]
        for row in figures["by steps"]
    ]  # fmt: skip
    return table(["network", "ask", "seeds", "implicit, steps: FNR", "cross-entropy, steps: FNR"], rows)
