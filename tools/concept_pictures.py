"""The pictures of the pages on concepts: `python tools/concept_pictures.py` draws them from made scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm

import setpoint as sp

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "concepts"
BLUE, GREY, RED = "#0b6485", "#6b747c", "#b3261e"
ASK = "minimize fnr where fpr <= 5%"
#: How far the scores of positives lie above those of negatives, in standard deviations.
APART = 2.0


def draw(rng: np.random.Generator, rows: int = 4000) -> tuple[Any, Any]:
    labels = rng.random(rows) < 0.2
    return rng.normal(size=rows) + APART * labels, labels


def save(figure: Any, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    print(f"wrote docs/images/concepts/{name}.svg")


def operating_point() -> None:
    """One curve, many models in one: the point is where it is judged."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    scores, labels = draw(np.random.default_rng(0))
    point = sp.evaluate(ASK, scores, labels)
    bins = np.linspace(-4, 6, 50)
    left.hist(scores[~labels], bins, color=GREY, alpha=0.6, density=True, label="negatives")
    left.hist(scores[labels], bins, color=BLUE, alpha=0.6, density=True, label="positives")
    left.axvline(point.threshold, color="black")
    left.annotate("threshold", (point.threshold, 0.36), xytext=(4, 0), textcoords="offset points")
    left.set(xlabel="score", yticks=[], title="rows to the right of the threshold are flagged")
    left.legend(frameon=False)
    sp.report.OperatingPointDisplay.from_predictions(point, labels, scores, ax=right)
    right.set_title("every threshold is a point; the ask chooses one")
    save(figure, "operating_point")


def price() -> None:
    """What one more point of the bound would buy."""
    figure, axis = plt.subplots(figsize=(5.2, 3.4))
    allowed = np.linspace(0.002, 0.2, 200)
    missed = norm.cdf(norm.ppf(1 - allowed) - APART)
    axis.plot(100 * allowed, 100 * missed, color=BLUE)
    here = 0.05
    value = norm.cdf(norm.ppf(1 - here) - APART)
    step = 1e-5
    slope = (norm.cdf(norm.ppf(1 - here - step) - APART) - value) / step
    line = value + slope * (allowed - here)
    axis.plot(100 * allowed[60:], 100 * line[60:], color=RED, linestyle="--", zorder=0)
    axis.plot(100 * here, 100 * value, "o", color="black")
    axis.annotate(f"price {-slope:.1f}: one point more of fpr\nsaves {-slope:.1f} points of fnr",
                  (100 * here, 100 * value), xytext=(18, 18), textcoords="offset points")  # fmt: skip
    axis.set(xlabel="fpr that is allowed, percent", ylabel="fnr, percent", ylim=(0, 80))
    save(figure, "price")


def certificate(times: int = 1000) -> None:
    """The true fpr of thresholds that were set on 1,000 drawn samples, with and without a certificate."""
    rng, true = np.random.default_rng(0), {"bare cut": [], "certified at 95 %": []}
    for _ in range(times):
        scores, labels = draw(rng, 1500)
        for name, confidence in (("bare cut", None), ("certified at 95 %", 0.95)):
            point = sp.calibrate(ASK, scores, labels, confidence=confidence)
            true[name].append(100 * norm.sf(point.threshold))
    figure, axes = plt.subplots(2, 1, figsize=(6, 3.8), sharex=True)
    for axis, (name, values), colour in zip(axes, true.items(), (GREY, BLUE)):
        broken = 100 * np.mean(np.array(values) > 5)
        axis.hist(values, np.linspace(2.5, 7.5, 60), color=colour)
        axis.axvline(5, color=RED, linestyle="--")
        axis.set(yticks=[], title=f"{name}: the bound is broken on new rows in {broken:.0f} of 100 draws")
    axes[-1].set_xlabel("true fpr of the threshold, percent; the bound is 5")
    figure.tight_layout()
    save(figure, "certificate")


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "setpoint", "font.size": 9, "axes.spines.top": False, "axes.titlesize": 9,
                         "axes.spines.right": False, "figure.facecolor": "white"})  # fmt: skip
    operating_point()
    price()
    certificate()


if __name__ == "__main__":
    main()
