"""The rows of one split, the same for every method, and the judging of scores by an ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import torch

import setpoint as sp
from setpoint.data.split import split
from setpoint.errors import SetpointError
from setpoint.run.settings import Settings
from setpoint.serve.description import PARTS

ASKS = (
    "minimize fnr where fpr <= 0.1%",
    "minimize fnr where fpr <= 1%",
    "minimize fnr where fpr <= 5%",
    "maximize precision where recall >= 95%",
    "maximize precision over recall in [50%, 90%] with 5 points",
)
#: The fewest test rows of a class with which an ask is judged: one over the bound of a rate, at least ten positives.
FEWEST = dict(zip(ASKS, ({0: 1000, 1: 10}, {0: 100, 1: 10}, {0: 20, 1: 10}, {0: 10, 1: 20}, {0: 10, 1: 10})))

CONFIDENCE = 0.95
#: Scores on held-out, calibration and test rows, by part.
Scores = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """One table under one split, whose seed is that of the run: `setpoint fit --seed` gives the same rows to each part.

    Args:
        name: The name of the table.
        frame: The table, its label in the column `y`.
        seed: The seed of the split.
    """

    name: str
    frame: pl.DataFrame
    seed: int

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        """The row numbers of each part, as `setpoint fit` deals them."""
        labels = torch.tensor(self.frame["y"].to_numpy().astype(np.float32))
        return {part: rows.numpy() for part, rows in zip(PARTS, split(labels, Settings().shares, self.seed))}

    @cached_property
    def both(self) -> np.ndarray:
        """The numbers of training and held-out rows together."""
        return np.concatenate([self.rows["train"], self.rows["held_out"]])

    @cached_property
    def y(self) -> np.ndarray:
        return self.frame["y"].to_numpy()

    @cached_property
    def words(self) -> list[str]:
        return [name for name in self.frame.columns if self.frame[name].dtype == pl.String]

    @cached_property
    def x(self) -> pd.DataFrame:
        """The features for LightGBM: numbers, and words as categories; the index is the row number."""
        made = {
            name: pd.Categorical(self.frame[name].to_list())
            if name in self.words
            else self.frame[name].cast(pl.Float64).to_numpy()
            for name in self.frame.columns
            if name != "y"
        }
        # Names without the characters that LightGBM refuses.
        return pd.DataFrame({f"c{place}": values for place, values in enumerate(made.values())})

    def has(self, ask: str) -> bool:
        """Whether there are enough test rows to judge the ask by."""
        found = np.bincount(self.y[self.rows["test"]], minlength=2)
        return all(found[label] >= least for label, least in FEWEST[ask].items())

    @property
    def asks(self) -> list[str]:
        return [ask for ask in ASKS if self.has(ask)]

    def labels(self, part: str) -> np.ndarray:
        return self.y[self.rows[part]]


def judge(ask: str, table: Table, scores: Scores, point: sp.OperatingPoint | None = None) -> dict[str, float]:
    """Scores by one ask: at the best cut of the test rows, and at the thresholds that calibration rows set.

    The certified threshold is the bare one where the ask or the number of rows allows no certificate.
    """
    problem = sp.ask(ask)
    point = point or sp.calibrate(problem, scores["calibration"], table.labels("calibration"))
    there = point.judge(scores["test"], table.labels("test"))
    found = {
        "test": sp.evaluate(problem, scores["test"], table.labels("test")).objective,
        "at threshold": there.objective,
        "bounds hold": float(there.feasible),
    }
    if "calibration" in scores:
        certified = certify(problem, scores["calibration"], table.labels("calibration")) or point
        there = certified.judge(scores["test"], table.labels("test"))
        found |= {"certified": there.objective, "certified holds": float(there.feasible)}
        found["has a certificate"] = float(certified is not point)
    if "held_out" in scores:
        found["held out"] = sp.evaluate(problem, scores["held_out"], table.labels("held_out")).objective
    return found


def certify(problem: sp.Problem, scores: np.ndarray, labels: np.ndarray) -> sp.OperatingPoint | None:
    """The threshold with a certificate of 95 %, or None."""
    try:
        return sp.calibrate(problem, scores, labels, confidence=CONFIDENCE)
    except SetpointError:
        return None


def better(ask: str, a: dict[str, Any], b: dict[str, Any], by: str) -> bool:
    """Whether one result is better than another by a figure of the ask."""
    return bool((a[by] > b[by]) if sp.ask(ask).maximize else (a[by] < b[by]))
