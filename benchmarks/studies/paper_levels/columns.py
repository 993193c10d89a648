"""The columns of adult and Communities as TFCO's notebooks make them, which have the numbers of the paper's Table 1.

Of google-research/tensorflow_constrained_optimization, examples/jupyter_notebooks/Fairness_adult.ipynb: adult without
fnlwgt and with the other numbers in four bins, 122 columns. And examples/colab/PRAUC_training.ipynb: Communities with
the columns that have gaps (filled with 0) and where the gaps are, 144 of the 145 (the one gap of OtherPerCap is filled
in our file), positive from the 70th percentile on, not above it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common.data import load_arrays
from benchmarks.common.sets import read_table

Table = tuple[np.ndarray, np.ndarray]
#: Upper ends of the bins of adult but for the last; those of age are its quartiles.
BINS = {
    "age": (28, 37, 48), "capital-gain": (1, 4000, 10_000), "capital-loss": (1, 1800, 1950),
    "hours-per-week": (39, 41, 50), "education-num": (8, 9, 11),
}  # fmt: skip


def binned(x: np.ndarray, names: list[str]) -> np.ndarray:
    """Columns of 0 and 1 as they are; of the numeric ones those that have bins, a column a bin."""
    yes_or_no = x[:, ["=" in name for name in names]]
    bins = [np.eye(len(ends) + 1)[np.searchsorted(ends, x[:, names.index(name)])] for name, ends in BINS.items()]
    return np.hstack([yes_or_no, *bins])


def tfco_columns(name: str, data: str) -> Table:
    x, y = read_table(name, data)
    arrays = load_arrays(name, data)
    if name == "adult":
        x = binned(x, arrays["names"].tolist())
    if name == "communities_crime":
        gaps, target = arrays["X_missing"].astype(np.float64), arrays["target"]
        x = np.hstack([x, np.nan_to_num(gaps), np.isnan(gaps)])
        y = (target >= np.quantile(target, 0.7)).astype(np.float64)
    return x, y
