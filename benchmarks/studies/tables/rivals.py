"""The rivals: LightGBM by a careful practitioner, its best class weight, a tuned threshold, logistic regression, FLAML.

Each is trained on training and held-out rows alone, and gives scores for held-out, calibration and test rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import setpoint as sp
from benchmarks.studies.tables.rows import Scores, Table, better, judge

LEAVES = (7, 15, 31, 63, 127)
SINGLE = 31
WEIGHTS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0)
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
ROUNDS, PATIENCE = 2000, 50
JUDGED_PARTS = ("held_out", "calibration", "test")
#: The time of FLAML: as many single fits of LightGBM as `auto` may take, at least so many seconds.
FLAML_FITS, FLAML_LEAST = 8, 5.0

#: LightGBM's own choice, one per core, unless the environment says otherwise.
THREADS = int(os.environ.get("OMP_NUM_THREADS", "0")) or None

Figures = dict[str, dict[str, float]]


def booster(leaves: int, rounds: int = ROUNDS, weight: float = 1.0) -> lightgbm.LGBMClassifier:
    return lightgbm.LGBMClassifier(
        n_estimators=rounds, learning_rate=0.05, num_leaves=leaves, min_child_samples=20, scale_pos_weight=weight,
        random_state=0, verbose=-1, n_jobs=THREADS,
    )  # fmt: skip


def stopped(table: Table, leaves: int, weight: float = 1.0) -> lightgbm.LGBMClassifier:
    """Trained on training rows, stopped by the log-loss of held-out rows."""
    train, held_out = table.rows["train"], table.rows["held_out"]
    model = booster(leaves, weight=weight)
    return model.fit(
        table.x.iloc[train], table.y[train], eval_X=table.x.iloc[held_out], eval_y=table.y[held_out],
        eval_metric="binary_logloss", callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )  # fmt: skip


def raw(model: Any, x: pd.DataFrame) -> np.ndarray:
    return np.asarray(model.predict(x, raw_score=True), dtype=np.float64)


def scored(table: Table, score: Callable[[pd.DataFrame], np.ndarray]) -> Scores:
    return {part: score(table.x.iloc[table.rows[part]]) for part in JUDGED_PARTS}


def loss(table: Table, scores: Scores) -> float:
    return float(log_loss(table.labels("held_out"), expit(scores["held_out"]), labels=[0, 1]))


class Boosted:
    """LightGBM under one split: all numbers of leaves, then class weights of the best of them, each trained once.

    Seconds are wall times: `single` is that of one fit with 31 leaves.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        start = time.perf_counter()
        one = stopped(table, SINGLE)
        self.single = time.perf_counter() - start
        self.models = {leaves: one if leaves == SINGLE else stopped(table, leaves) for leaves in LEAVES}
        self.tuning = time.perf_counter() - start
        self.scores = {leaves: scored(table, lambda x, m=m: raw(m, x)) for leaves, m in self.models.items()}
        self.best = min(LEAVES, key=lambda leaves: loss(table, self.scores[leaves]))
        self.rounds = max(int(self.models[self.best].best_iteration_), 1)

    def again(self) -> tuple[Scores, float]:
        """The chosen leaves and rounds, trained once more on training and held-out rows together."""
        start = time.perf_counter()
        model = booster(self.best, self.rounds).fit(self.table.x.iloc[self.table.both], self.table.y[self.table.both])
        spent = self.tuning + time.perf_counter() - start
        return scored(self.table, lambda x: raw(model, x)), spent

    def weights(self) -> tuple[dict[float, Scores], float]:
        start = time.perf_counter()
        found = {1.0: self.scores[self.best]}
        for weight in WEIGHTS:
            if weight not in found:
                model = stopped(self.table, self.best, weight)
                found[weight] = scored(self.table, lambda x, m=model: raw(m, x))
        return found, self.tuning + time.perf_counter() - start


def of_asks(table: Table, scores: Scores) -> Figures:
    return {ask: judge(ask, table, scores) for ask in table.asks}


def best_of(table: Table, tried: list[Figures]) -> Figures:
    """For each ask the candidate that is best on held-out rows at the exact metric; the first of equals."""
    found: Figures = {}
    for ask in table.asks:
        chosen = tried[0][ask]
        for other in tried[1:]:
            chosen = other[ask] if better(ask, other[ask], chosen, "held out") else chosen
        found[ask] = chosen
    return found


class Remembered(lightgbm.LGBMClassifier):
    """LightGBM that trains once for the same rows, since the search for a threshold trains the same for each ask."""

    known: dict[tuple[int, int], lightgbm.Booster] = {}  # noqa: RUF012

    def fit(self, X: pd.DataFrame, y: Any, **further: Any) -> Remembered:
        key = (hash(tuple(X.index)), self.n_estimators)
        if key not in self.known:
            super().fit(X, y, **further)
            self.known[key] = dict(self.__dict__)
        self.__dict__.update(self.known[key])
        return self


def score_of(ask: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """The ask as a score of decisions, as far as scikit-learn can say it: the rate, or how far a bound is broken."""
    problem = sp.ask(ask)

    def score(y: np.ndarray, decided: np.ndarray) -> float:
        flagged, positives = decided > 0, y > 0
        recall = (flagged & positives).sum() / max(positives.sum(), 1)
        if problem.maximize:
            precision = (flagged & positives).sum() / max(flagged.sum(), 1)
            return float(precision if recall >= 0.95 else recall - 2)
        rate = (flagged & ~positives).sum() / max((~positives).sum(), 1)
        bound = float(ask.split("<=")[1].strip(" %")) / 100
        return float(recall if rate <= bound else -1 - rate)

    return score


def tuned_threshold(table: Table, leaves: int, rounds: int) -> tuple[Figures, float]:
    """`TunedThresholdClassifierCV` on training, held-out and calibration rows; it cannot say an area."""
    start = time.perf_counter()
    rows = np.concatenate([table.both, table.rows["calibration"]])
    Remembered.known.clear()
    found: Figures = {}
    for ask in table.asks:
        if " over " in ask:
            continue
        model = Remembered(**booster(leaves, rounds).get_params())
        tuned = TunedThresholdClassifierCV(
            model, scoring=make_scorer(score_of(ask)), thresholds=1000, cv=5, random_state=0
        )
        tuned.fit(table.x.iloc[rows], table.y[rows])
        test = tuned.estimator_.predict_proba(table.x.iloc[table.rows["test"]])[:, 1]
        problem = sp.ask(ask)
        point = sp.calibrate(problem, [0.0, 1.0], [0, 1])
        # Scores at the threshold itself are flagged there; ours pass only above it.
        cut = float(np.nextafter(tuned.best_threshold_, -np.inf))
        point = sp.OperatingPoint.from_dict({**point.to_dict(), "threshold": cut})
        found[ask] = judge(ask, table, {"test": test}, point)
    return found, time.perf_counter() - start


def logistic(table: Table, lasso: bool) -> tuple[Scores, float]:
    """Standardised logistic regression, its strength chosen by the log-loss of held-out rows, then trained on both."""
    start = time.perf_counter()
    words = [name for name in table.x.columns if isinstance(table.x[name].dtype, pd.CategoricalDtype)]
    numbers = [name for name in table.x.columns if name not in words]
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False), words),
    )
    x = encode.fit(table.x.iloc[table.rows["train"]]).transform(table.x)
    train, held_out, both = table.rows["train"], table.rows["held_out"], table.both

    def fitted(strength: float, rows: np.ndarray) -> LogisticRegression:
        how = {"l1_ratio": 1.0, "solver": "liblinear"} if lasso else {"solver": "lbfgs"}
        return LogisticRegression(C=strength, max_iter=500, random_state=0, **how).fit(x[rows], table.y[rows])

    def held_out_loss(strength: float) -> float:
        chances = fitted(strength, train).predict_proba(x[held_out])[:, 1]
        return float(log_loss(table.y[held_out], chances, labels=[0, 1]))

    model = fitted(min(STRENGTHS, key=held_out_loss), both)
    found = {part: model.decision_function(x[table.rows[part]]) for part in JUDGED_PARTS}
    return found, time.perf_counter() - start


def flaml(table: Table, python: str, seconds: float) -> tuple[Scores, float]:
    """FLAML in an environment of its own, for so many seconds, by log-loss on its own folds or held-out rows."""
    with tempfile.TemporaryDirectory() as folder:
        table.x.assign(y=table.y).to_pickle(f"{folder}/table.pickle")
        np.savez(f"{folder}/rows.npz", both=table.both, **table.rows)
        script = Path(__file__).with_name("by_flaml.py")
        done = subprocess.run([python, str(script), folder, str(seconds)], check=True, capture_output=True, text=True)
        with np.load(f"{folder}/scores.npz") as kept:
            return {part: kept[part] for part in JUDGED_PARTS}, json.loads(done.stdout.splitlines()[-1])["seconds"]
