"""Small runs as a report takes them: scores of two solvers on test and calibration rows, with and without groups."""

from __future__ import annotations

import numpy as np
import torch

from setpoint import ask, calibrate
from setpoint.report.material import Contender, Material

ASK = "minimize fnr where fpr <= 5%"
BAND = "minimize review where precision >= 80% and npv >= 90%"


def draw(rows, seed, quality=1.5, decimals=None, share=0.3):
    """Scores (with ties, if rounded) and labels."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(np.float32)
    labels[:2] = 0, 1
    scores = (rng.normal(size=rows) + quality * labels).astype(np.float32)
    return torch.from_numpy(scores if decimals is None else scores.round(decimals)), torch.from_numpy(labels)


def history(rows):
    return [
        {"epoch": i, "solver": "Some", "soft": 0.5 / (i + 1), "train": 0.6 / (i + 1), "held_out": 0.7 / (i + 1)}
        for i in range(rows)
    ]


def material(
    question=ASK, rows=400, *, decimals=None, confidence=None, names=("ours", "cross-entropy"), groups=None, **more
):
    """A point set on calibration rows, for each name; `groups` are names to draw from."""
    problem, parts = ask(question), ("test", "calibration")
    labels, contenders, points = {}, [], []
    by_part = {p: np.random.default_rng(i).choice(groups, rows) for i, p in enumerate(parts)} if groups else None
    for place, name in enumerate(names):
        scores = {}
        for i, part in enumerate(parts):
            scores[part], labels[part] = draw(rows, i, 1.5 - 0.4 * place, decimals)
        compared = by_part["calibration"] if by_part and problem.group else None
        point = calibrate(problem, scores["calibration"], labels["calibration"], confidence=confidence, groups=compared)
        points.append(point)
        test = point.judge(scores["test"], labels["test"], groups=by_part["test"] if compared is not None else None)
        judged = {"objective": test.objective, "feasible": test.feasible, "rates": test.rates}
        parts_judged = dict.fromkeys(("train", "held_out", "test"), judged)
        contenders.append(
            Contender(name, point.thresholds, scores, parts_judged, history(12 if place == 0 else 2), 1, 2.5)
        )
    return Material(points[0], contenders, labels, groups=by_part, **more)
