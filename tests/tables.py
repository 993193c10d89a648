"""A small table of loans with every kind of column, whose target can be learned from it."""

from __future__ import annotations

import numpy as np
import polars as pl


def loans(rows: int = 400, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    bad = draw.random(rows) < 0.3
    amount = draw.normal(1000, 300, rows) + 500 * bad
    amount[draw.random(rows) < 0.1] = np.nan
    job = np.where(bad, draw.choice(["none at all", "clerk"], rows), draw.choice(["clerk", "nurse", "?"], rows))
    return pl.DataFrame(
        {
            "id": [f"loan-{i}" for i in range(rows)],
            "amount": pl.Series(amount).fill_nan(None),
            "age": draw.integers(18, 90, rows),
            "region": draw.integers(1, 6, rows),
            "job": job,
            "married": draw.random(rows) < np.where(bad, 0.3, 0.6),
            "currency": ["EUR"] * rows,
            "default": np.where(bad, "yes", "no"),
        }
    )
