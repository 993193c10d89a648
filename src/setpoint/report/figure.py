"""The report as a picture in one PNG; of one threshold or two, curves, scores, reliability and history.

The panels of other kinds of questions are in `report/figure_kinds.py`; `display.py` draws single curves.
"""

from __future__ import annotations

import io
from pathlib import Path
from textwrap import wrap
from typing import Any

from setpoint.errors import BadSetting
from setpoint.files import write_whole
from setpoint.report.data import page_data
from setpoint.report.figure_kinds import ACCENT, BROKEN, PANELS, plain
from setpoint.report.material import Material
from setpoint.report.words import part_name

OTHERS = ("#6b747c", "#9a5b13", "#5d4a8a", "#3f7a3f", "#8a3a5a")
REVIEW = "#b7791f"


def draw_figure(material: Material, path: Path) -> Path:
    """Draw the first part of a report into one PNG file.

    Args:
        material: Everything that the report shows.
        path: The file to write.

    Returns:
        The path.

    Raises:
        BadSetting: If matplotlib is not installed.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.material import Contender, Material
        >>> scores, labels = torch.linspace(-2, 2, 40), torch.arange(40) % 5 > 2
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", scores, labels)
        >>> mine = Contender("mine", point.thresholds, {"test": scores})
        >>> material = Material(point, [mine], {"test": labels})
        >>> import tempfile
        >>> from pathlib import Path
        >>> from setpoint.report.figure import draw_figure
        >>> with tempfile.TemporaryDirectory() as place:
        ...     draw_figure(material, Path(place) / "report.png").name
        'report.png'
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import, and asked for by --png alone)
    except ModuleNotFoundError as cause:
        raise BadSetting("a picture needs matplotlib; install it with: pip install 'setpoint[report]'") from cause
    panels = PANELS.get(material.problem.kind)
    figure = Figure(figsize=(11, 10.5 if panels is None else 5), dpi=144, layout="constrained")
    asked = f"{material.problem}   ({part_name(material.parts[0])} rows)"
    figure.suptitle("\n".join(wrap(plain(asked), 110)), fontweight="bold")
    if panels is None:
        axes = figure.subplots(3, 2)
        _draw_cuts(axes, material)
    else:
        axes = figure.subplots(1, 2)
        panels(axes, material)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    write_whole(path, drawn.getvalue())
    return path


def _draw_cuts(axes: Any, material: Material) -> None:
    data = page_data(material)
    _curves(axes[0, 0], data, "roc")
    _curves(axes[0, 1], data, "pr")
    _histogram(axes[1, 0], data)
    _reliability(axes[1, 1], data)
    for place in (0, 1):
        _history(axes[2, place], data, place)


def _colour(place: int) -> str:
    return ACCENT if place == 0 else OTHERS[(place - 1) % len(OTHERS)]


def _rates(rows: dict[str, Any]) -> dict[str, list[float]]:
    flagged = [tp + fp for tp, fp in zip(rows["tp"], rows["fp"])]
    return {
        "fpr": [fp / max(rows["negatives"], 1) for fp in rows["fp"]],
        "recall": [tp / max(rows["positives"], 1) for tp in rows["tp"]],
        "precision": [tp / n if n else float("nan") for tp, n in zip(rows["tp"], flagged)],
    }


def _curves(axis: Any, data: dict[str, Any], kind: str) -> None:
    part = data["parts"][0]["key"]
    x, y = ("fpr", "recall") if kind == "roc" else ("recall", "precision")
    for place, contender in reversed(list(enumerate(data["contenders"]))):
        rows = contender["parts"][part]
        rates, colour = _rates(rows), _colour(place)
        axis.plot(rates[x], rates[y], color=colour, label=plain(contender["name"]), lw=2 if place == 0 else 1.3)
        own = rows["own"]
        axis.plot([rates[x][i] for i in own], [rates[y][i] for i in own], "o", color=colour, mfc="white", zorder=5)
    for limit in data["limits"]:
        if limit["axis"] in (x, y):
            (axis.axvline if limit["axis"] == x else axis.axhline)(limit["at"], color=BROKEN, lw=0.9, ls="--")
    # The curves come last to first, so that ours lies on top; the legend in their own order.
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], frameon=False, fontsize="small")
    axis.set(xlabel=x, ylabel=y, title="ROC" if kind == "roc" else "precision and recall")
    axis.set(xlim=data["view"][part][x], ylim=data["view"][part][y])


def _histogram(axis: Any, data: dict[str, Any]) -> None:
    rows = data["contenders"][0]["parts"][data["parts"][0]["key"]]
    histogram = rows["histogram"]
    bins = len(histogram["positives"])
    width = (histogram["high"] - histogram["low"]) / bins
    left = [histogram["low"] + i * width for i in range(bins)]
    up = [n / max(rows["positives"], 1) for n in histogram["positives"]]
    down = [-n / max(rows["negatives"], 1) for n in histogram["negatives"]]
    axis.bar(left, up, width, align="edge", color=ACCENT, label="positives")
    axis.bar(left, down, width, align="edge", color=OTHERS[0], label="negatives")
    own = [rows["threshold"][place] for place in rows["own"]]
    for threshold in own:
        axis.axvline(threshold, color="black", lw=1.2)
    if len(data["handles"]) > 1:
        axis.axvspan(min(own), max(own), color=REVIEW, alpha=0.18, lw=0, zorder=0, label="review")
    name = "margin" if data["margins"] else "score"
    axis.set(xlabel=name, ylabel="share of class", title=f"{name}s by class, and the run's {data['words']['own']}")
    axis.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.3g}")
    axis.legend(frameon=False, fontsize="small")


def _reliability(axis: Any, data: dict[str, Any]) -> None:
    axis.plot([0, 1], [0, 1], color="#b0b7bd", ls="--", lw=1)
    for place, contender in enumerate(data["contenders"]):
        bins = contender["parts"][data["parts"][0]["key"]]["reliability"]
        share = [row["share"] for row in bins]
        error = [[row["share"] - row["low"] for row in bins], [row["high"] - row["share"] for row in bins]]
        axis.errorbar(
            [row["mean"] for row in bins], share, yerr=error, fmt="o-", ms=4, lw=1.2, color=_colour(place),
            label=plain(contender["name"]),
        )  # fmt: skip
        for row in bins:
            centre, height = min(int(10 * row["mean"]), 9) / 10 + 0.05, -0.07 - 0.07 * place
            axis.text(centre, height, f"{row['n']}", color=_colour(place), size="x-small", ha="center", va="center")
    bottom = -0.07 * (len(data["contenders"]) + 0.8)
    axis.set(xlabel="mean of sigmoid(score)", ylabel="share positive", title="reliability, and rows by bin")
    axis.set(xlim=(0, 1), ylim=(bottom, 1), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1])
    axis.axhline(0, color="#b0b7bd", lw=0.8)
    axis.legend(frameon=False, fontsize="small")


def _history(axis: Any, data: dict[str, Any], place: int) -> None:
    if place >= len(data["contenders"]) or not data["contenders"][place]["history"]:
        axis.set_axis_off()
        return
    contender = data["contenders"][place]
    rows = contender["history"]
    epochs = [row["epoch"] for row in rows]
    few = len(rows) <= 5
    for key, style, colour in (("soft", ":", OTHERS[0]), ("train", "-", OTHERS[0]), ("held_out", "-", ACCENT)):
        values = [float("nan") if row[key] is None else row[key] for row in rows]
        axis.plot(
            epochs, values, "o" if few else style, color=colour, mfc="white" if key == "soft" else None, label=key
        )
    if contender["best"] is not None:
        axis.axvline(rows[contender["best"]]["epoch"], color="black", lw=0.8, ls="--")
    title = plain(f"training of {contender['name']}")
    axis.set(xlabel="" if few else "epoch", ylabel=data["quantities"][0]["name"], title=title)
    if few:
        axis.set(xticks=epochs, xticklabels=[plain(row["name"]) for row in rows], xlim=(0.5, len(rows) + 0.5))
    axis.legend(frameon=False, fontsize="small")
