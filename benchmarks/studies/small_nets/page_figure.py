"""The figure on small networks: the gain against steps, by rival, bound, set, width and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.studies.small_nets.worlds import IMAGES, PIXELS

Row = dict[str, Any]
#: Two standard errors to either side, corrected for overlapping splits.
REACH = 2
#: Legible on white for readers who do not see red and green apart.
COLOURS = {"ijcnn1": "#0072b2", "mixture": "#d55e00", PIXELS: "#009e73", IMAGES: "#333333"}
SETS = {PIXELS: "Fashion-MNIST, pixels", IMAGES: "Fashion-MNIST, images"}
MARKERS = {"linear": "^", "4-4": "s", "16-16": "o", "8-16-16": "D"}
SHAPES = {"linear": "linear", "8-16-16": "convolutions, 8-16-16"}
#: Points of nearly the same steps stand side by side, so far apart on the axis.
APART, NEAR = 1.115, 1.3
GREY, SMALL, USUAL = "#59636e", 8.5, 9.5


@dataclass(frozen=True)
class Point:
    """A network at its place on the axis of steps."""

    row: Row
    place: float


def shape_of(row: Row) -> str:
    return "-".join(map(str, row["widths"])) or "linear"


def placed(rows: list[Row]) -> list[Point]:
    """Every row with its place: sets in order, those of nearly the same steps side by side."""
    order = sorted(rows, key=lambda row: row["steps"])
    groups: list[list[Row]] = []
    for row in order:
        near = groups and row["steps"] <= NEAR * groups[-1][0]["steps"]
        groups = [*groups[:-1], [*groups[-1], row]] if near else [*groups, [row]]
    points = []
    for group in groups:
        centre = math.exp(sum(math.log(row["steps"]) for row in group) / len(group))
        own = sorted(group, key=lambda row: list(COLOURS).index(row["set"]))
        points += [Point(row, centre * APART ** (at - (len(own) - 1) / 2)) for at, row in enumerate(own)]
    return points


def few(row: Row, rows: list[Row]) -> bool:
    """Whether another network of the same set sees more rows."""
    return row["rows"] < max(other["rows"] for other in rows if other["set"] == row["set"])


def ends(rows: list[Row], rival: str) -> tuple[float, float]:
    """The axis of gains: all means are inside, errors may leave it."""
    means = [100 * row["gain"][rival]["mean"] for row in rows]
    return 5 * math.floor((min(0.0, *means) - 4) / 5), 5 * math.ceil((max(0.0, *means) + 4) / 5)


def drawn(rows: list[Row], rivals: dict[str, str], bounds: dict[str, str]) -> Figure | None:
    """A row of panels per rival and a column per bound; None without rows."""
    rows = [row for row in rows if all(rival in row["gain"] for rival in rivals)]
    if not rows:
        return None
    sides = {rival: ends(rows, rival) for rival in rivals}
    figure = Figure(figsize=(9, 6.9))
    # Fixed places: a layout that is solved for is not the same to the last digit every time.
    grid = figure.add_gridspec(len(rivals), len(bounds), left=0.075, right=0.99, top=0.965, bottom=0.225, wspace=0.08,
                               hspace=0.3, height_ratios=[high - low for low, high in sides.values()])  # fmt: skip
    for (at, rival), (column, ask) in product(enumerate(rivals), enumerate(bounds)):
        panel = figure.add_subplot(grid[at, column])
        own = [row for row in rows if row["ask"] == ask]
        panel.set_title(f"FPR {bounds[ask]}: against {rivals[rival]}", fontsize=USUAL, fontweight="bold", loc="left")
        frame(panel, own, sides[rival], column == 0)
        for point in placed(own):
            draw_point(panel, point, rival, own, sides[rival])
    legend(figure, rows)
    return figure


def frame(panel: Any, rows: list[Row], sides: tuple[float, float], first: bool) -> None:
    """Axes, grid, the line where nothing is gained, and which side of it is better."""
    steps = sorted({row["steps"] for row in rows})
    shown = [own for own in steps if not any(1 < own / other <= NEAR for other in steps)]
    low, high = steps[0] / 1.75, steps[-1] * 1.45
    panel.set_xscale("log")
    panel.set_xlim(low, high)
    panel.set_ylim(*sides)
    names = [" / ".join(f"{own:,}" for own in steps if 1 <= own / one <= NEAR) for one in shown]
    panel.set_xticks(shown, names)
    panel.minorticks_off()
    panel.set_xlabel("training steps", fontsize=SMALL, labelpad=1)
    if first:
        panel.set_ylabel("gain in points of FNR", fontsize=SMALL)
    panel.tick_params(labelsize=SMALL, labelleft=first)
    panel.grid(axis="y", color="#d1d9e0", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.axhline(0, color="black", linewidth=1.1, zorder=1)
    for side, place, told in ((1, "bottom", "implicit better"), (-1, "top", "implicit worse")):
        # Between the last two lengths there are no points.
        panel.annotate(told, (math.prod(shown[-2:]) ** (1 / len(shown[-2:])), 0), (7, 3 * side),
                       textcoords="offset points", ha="center", va=place, fontsize=SMALL, color=GREY)  # fmt: skip


def draw_point(panel: Any, point: Point, rival: str, rows: list[Row], sides: tuple[float, float]) -> None:
    """The mean and its error; an arrow where the error leaves the axis."""
    gain, colour, (low, high) = point.row["gain"][rival], COLOURS[point.row["set"]], sides
    mean, reach = 100 * gain["mean"], 100 * REACH * gain["corrected_standard_error"]
    panel.plot([point.place] * 2, [max(low, mean - reach), min(high, mean + reach)], color=colour, linewidth=1.3,
               zorder=2)  # fmt: skip
    for end, marker, beyond in ((low, "v", mean - reach < low), (high, "^", mean + reach > high)):
        if beyond:
            panel.plot(point.place, end, marker=marker, color=colour, markersize=7, clip_on=False, zorder=4)
    panel.plot(point.place, mean, marker=MARKERS[shape_of(point.row)], color=colour, markersize=6, markeredgewidth=1.4,
               markerfacecolor="white" if few(point.row, rows) else colour, zorder=3)  # fmt: skip


def legend(figure: Figure, rows: list[Row]) -> None:
    """Three columns: sets by colour, widths by marker, and how to read a mark."""

    def mark(label: str, colour: str = GREY, marker: str = "o", **more: Any) -> Line2D:
        return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, label=label, **more)

    sets, shapes = {row["set"] for row in rows}, set(map(shape_of, rows))
    columns = [
        [mark(SETS.get(name, name), colour) for name, colour in COLOURS.items() if name in sets],
        [mark(SHAPES.get(name, f"two layers, {name} units"), marker=marker) for name, marker in MARKERS.items()
         if name in shapes],
        [mark("few training rows", markerfacecolor="white", markeredgewidth=1.4),
         mark("all training rows"),
         Line2D([], [], color=GREY, linewidth=1.3, label="two standard errors, corrected"),
         mark("the error goes on beyond the axis", marker="v")],
    ]  # fmt: skip
    titles, places = ("Set", "Network", "Mark"), (0.065, 0.34, 0.66)
    for title, place, handles in zip(titles, places, columns):
        figure.legend(handles=handles, title=title, title_fontproperties={"size": USUAL, "weight": "bold"},
                      alignment="left", loc="upper left", bbox_to_anchor=(place, 0.16), fontsize=USUAL,
                      frameon=False, handlelength=1.2, labelspacing=0.4, borderpad=0)  # fmt: skip
