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
    path = results_folder(quick) / "default_study.json"
    if not path.is_file():
        return []
    folder.mkdir(parents=True, exist_ok=True)
    return [default_study(json.loads(path.read_text())["figures"]["cells"], folder / "default_study.svg")]


def default_study(cells: list[dict[str, Any]], path: Path) -> Path:
    """A dot a set and ask: the gain over the best weight, trained again, with two standard errors of either kind."""
    # The same file for the same figures.
    matplotlib.rcParams["svg.hashsalt"] = "setpoint"
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
    figure.savefig(path, metadata={"Date": None})
    return path
