"""Cuts of one score by MAPIE's binary controller, run by a Python that has MAPIE: arrays in, cuts out.

    python by_mapie.py IN.npz OUT.npz

`scores` and `labels` are (repeats, rows). A cut is NaN where the controller finds none. Three ways:

- `quantiles`: 100 quantiles from 0.5 % to 99.5 % as parameters; by fixed sequence from the safe end, or for precision,
  which has none, by its default (Bonferroni and Holm). This is how other studies of ours ran it at first.
- `cut above`: quantiles from 0 to 100 % and, but for precision, a cut above all scores, so that the safe end is safe.
- `split`: the same parameters, `split_fixed_sequence`: a quarter of the rows learns the order, the rest tests.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from mapie.risk_control import BinaryClassificationController

LEARN = 0.25


def cut_of(way: str, scores: np.ndarray, labels: np.ndarray, risk: str, bound: float, confidence: float) -> float:
    shares = 0.5 + np.arctan(scores) / np.pi
    learn = round(LEARN * len(scores)) if way == "split" else 0
    given = shares[:learn] if learn else shares
    ends = (0.005, 0.995) if way == "quantiles" else (0.0, 1.0)
    grid = np.unique(np.quantile(given, np.linspace(*ends, 100), method="higher"))
    # Precision is not defined where nothing is flagged: its p-value there is NaN, which spoils every order of tests.
    if way != "quantiles" and risk != "precision":
        grid = np.unique([*grid, (given.max() + 1) / 2])
    usual = "bonferroni_holm" if risk == "precision" else "fixed_sequence"
    controller = BinaryClassificationController(
        lambda x: np.stack([1 - x[:, 0], x[:, 0]], axis=1), risk, bound, confidence,
        list_predict_params=grid if risk == "recall" else grid[::-1],
        fwer_method="split_fixed_sequence" if learn else usual,
    )  # fmt: skip
    if learn:
        controller.learn_fixed_sequence_order(shares[:learn, None], labels[:learn])
    controller.calibrate(shares[learn:, None], labels[learn:])
    best = controller.best_predict_param
    # Its decision is score >= cut; ours is strictly above.
    return np.nan if best is None else float(np.tan((float(np.ravel(best)[0]) - 0.5) * np.pi)) - 1e-9


def main() -> None:
    warnings.simplefilter("ignore")
    given = np.load(sys.argv[1])
    told = str(given["risk"]), float(given["bound"]), float(given["confidence"])
    found = {
        way.replace(" ", "_"): np.array([cut_of(way, *pair, *told) for pair in zip(given["scores"], given["labels"])])
        for way in given["ways"].tolist()
    }
    np.savez(sys.argv[2], **found)


if __name__ == "__main__":
    main()
