"""A small table with three labels per row, some of which are not known."""

from __future__ import annotations

import numpy as np
import polars as pl

NAMES = ("toxic", "threat", "insult")
ASK = "minimize fnr where fpr <= 20%"
ASKS = {"toxic": ASK, "threat": "maximize recall where precision >= 50%", "insult": "minimize error"}


def label_arrays(rows: int = 900, missing: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels of 0, 1 and NaN that depend on them and on one another."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 4))
    slopes = np.array([[2.0, 0.0, 1.0, 0.0], [0.0, 1.5, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]])
    truth = x @ slopes.T + 0.7 * draw.normal(size=(rows, 1)) + draw.normal(size=(rows, 3))
    labels = (truth > np.array([1.5, 1.5, 0.5])).astype(np.float64)
    labels[draw.random(labels.shape) < missing] = np.nan
    return x, labels


def label_frame(**how: float) -> pl.DataFrame:
    """The same as a table, with empty cells."""
    x, labels = label_arrays(**how)
    columns = {f"x{place}": column for place, column in enumerate(x.T)}
    own = {name: pl.Series(np.nan_to_num(y, nan=-1).astype(int)) for name, y in zip(NAMES, labels.T)}
    return pl.DataFrame({**columns, **own}).with_columns(
        pl.when(pl.col(name) >= 0).then(pl.col(name)).alias(name) for name in NAMES
    )
