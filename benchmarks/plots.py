"""The few figures of the evidence page, from the results on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from benchmarks.harness import results_folder
from benchmarks.verdicts import AGAIN, DEFAULT, TUNED


def draw(folder: Path, quick: bool = False) -> list[Path]:
    """Write every figure whose results are there."""
    # The same file for the same figures.
    matplotlib.rcParams["svg.hashsalt"] = "setpoint"
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for study, rows, plot in (("default_study", "cells", default_study), ("paper_ranges", "rows", paper_ranges)):
        results = results_folder(quick) / f"{study}.json"
        found = json.loads(results.read_text())["figures"][rows] if results.is_file() else []
        if found:
            figure = plot(found)
            made.append(folder / f"{study}.svg")
            figure.savefig(made[-1], metadata={"Date": None})
    return made


def default_study(cells: list[dict[str, Any]]) -> Figure:
    """A dot a set and ask: the gain over the best weight, trained again, with two standard errors of either kind."""
    asks = list(dict.fromkeys(cell["ask"] for cell in cells))
    sets = list(dict.fromkeys(cell["set"] for cell in cells))
    figure = Figure(figsize=(2.6 * len(asks), 0.32 * len(sets) + 1.2))
    panels = figure.subplots(1, len(asks), sharey=True)
    for panel, ask in zip(panels, asks):
        own = {cell["set"]: cell["gain, test"][DEFAULT][TUNED + AGAIN] for cell in cells if cell["ask"] == ask}
        for place, name in enumerate(sets):
            gain = own[name]
            for error, width in (("corrected_standard_error", 0.8), ("standard_error", 3.0)):
                reach = 200 * gain[error]
                panel.plot([100 * gain["mean"] - reach, 100 * gain["mean"] + reach], [place, place], color="#4878a8",
                           linewidth=width, solid_capstyle="butt")  # fmt: skip
            panel.plot(100 * gain["mean"], place, "o", color="#173f5f", markersize=4)
        panel.axvline(0, color="#888888", linewidth=0.8)
        panel.set_title(ask.replace(" over ", "\nover ").replace(" where ", "\nwhere "), fontsize=7)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("points", fontsize=7)
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].invert_yaxis()
    figure.tight_layout()
    return figure


def paper_ranges(rows: list[dict[str, Any]]) -> Figure:
    """A panel a set: over the start of the range, each method's gain over cross-entropy, with two standard errors."""
    sets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "method"))
    methods.remove("cross-entropy")
    figure = Figure(figsize=(3.6 * len(sets) + 1.6, 3.0))
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, sets):
        for place, method in enumerate(methods):
            own = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            gains = [row["minus cross-entropy"] for row in own]
            # Side by side, and evenly spaced: most of the betas lie near 1.
            places = [number + 0.08 * (place - (len(methods) - 1) / 2) for number in range(len(own))]
            panel.errorbar(places, [gain["mean"] for gain in gains], [2 * gain["standard_error"] for gain in gains],
                           fmt="o-", markersize=3, linewidth=1, label=method)  # fmt: skip
            panel.set_xticks(range(len(own)), [f"{row['beta']:g}" for row in own])
        panel.axhline(0, color="#888888", linewidth=0.8)
        panel.set_title(name, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("recall from", fontsize=7)
    panels[0].set_ylabel("points over cross-entropy", fontsize=7)
    panels[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.tight_layout()
    return figure
