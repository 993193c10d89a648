"""Thresholds of several labels by MAPIE, run by a Python that has it: arrays in, thresholds out.

    python by_mapie.py IN.npz OUT.npz

`scores` and `labels` are (repeats, rows, labels), labels NaN where they are not known. MAPIE's multi-label controller
sets one threshold for all labels and promises another thing, the recall averaged over rows. For a promise on each
label its binary controller is run on each label at the shared level, over 100 quantiles of the calibration scores, by
fixed sequence from the safe end, or for precision, which has none, by its default (Bonferroni and Holm).
"""

from __future__ import annotations

import sys

import numpy as np
from mapie.risk_control import BinaryClassificationController, MultiLabelClassificationController


def of_label(scores: np.ndarray, labels: np.ndarray, risk: str, bound: float, confidence: float) -> float:
    """The threshold of one label; NaN where the controller finds none. Its decision is score >= threshold."""
    known = ~np.isnan(labels)
    scores, labels = scores[known], labels[known].astype(int)
    cuts = np.unique(np.quantile(scores, np.linspace(0.005, 0.995, 100), method="higher"))
    shares, grid = (0.5 + np.arctan(values) / np.pi for values in (scores, cuts))
    controller = BinaryClassificationController(
        lambda x: np.stack([1 - x[:, 0], x[:, 0]], axis=1), risk, bound, confidence,
        list_predict_params=grid if risk == "recall" else grid[::-1],
        fwer_method="bonferroni_holm" if risk == "precision" else "fixed_sequence",
    )  # fmt: skip
    controller.calibrate(shares[:, None], labels)
    best = controller.best_predict_param
    return np.nan if best is None else float(cuts[np.abs(grid - best).argmin()]) - 1e-9


def of_all(scores: np.ndarray, labels: np.ndarray, bound: float, confidence: float) -> float:
    """The one threshold at which the recall, averaged over the rows that have a label, is at least the bound."""
    rows = ~np.isnan(labels).any(1) & (labels == 1).any(1)
    shares = 0.5 + np.arctan(scores[rows]) / np.pi
    grid = np.unique(np.quantile(shares, np.linspace(0.005, 0.995, 100)))
    controller = MultiLabelClassificationController(
        lambda x: x, risk="recall", method="rcps", rcps_bound="bernstein", target_level=bound,
        confidence_level=confidence, predict_params=grid,
    )  # fmt: skip
    controller.calibrate(shares, labels[rows].astype(int))
    return float(np.tan((float(np.ravel(controller.best_predict_param)[0]) - 0.5) * np.pi)) - 1e-9


def main() -> None:
    given = np.load(sys.argv[1])
    scores, labels = given["scores"], given["labels"]
    risk, bound, confidence = str(given["risk"]), float(given["bound"]), float(given["confidence"])
    level = 1 - (1 - confidence) / scores.shape[2]
    each = [[of_label(s, y, risk, bound, level) for s, y in zip(one.T, own.T)] for one, own in zip(scores, labels)]
    whole = [of_all(*pair, bound, confidence) if risk == "recall" else np.nan for pair in zip(scores, labels)]
    np.savez(sys.argv[2], each=np.array(each), whole=np.array(whole))


if __name__ == "__main__":
    main()
