"""Runs made by hand, without training: every kind of column, model and decision."""

from __future__ import annotations

import datetime
from dataclasses import replace

import lightgbm
import numpy as np
import polars as pl
import torch
from torch import nn

import setpoint as sp
from setpoint.data.layout import Layout
from setpoint.data.reading import Reading
from setpoint.data.schema import Schema, Target
from setpoint.run.artefact import SavedRun
from setpoint.train.boosting import Boosted
from setpoint.train.kinds import build_model
from setpoint.train.models import mlp
from setpoint.train.scoring import score_rows

ROWS = 600
ABOUT = {"files": {}, "seal": {}, "versions": {}}


def table(rows: int = ROWS, seed: int = 0) -> pl.DataFrame:
    """A table with each kind of column that ONNX can compute."""
    draw = np.random.default_rng(seed)
    start = datetime.datetime(2023, 11, 5)
    moments = [start + datetime.timedelta(seconds=float(s)) for s in draw.uniform(0, 1e8, rows)]
    amount = draw.standard_cauchy(rows)
    word = draw.choice(["a", "new york", "odd  blanks", ""], rows)
    return pl.DataFrame(
        {
            "amount": amount,
            "some": [None if gone else float(v) for v, gone in zip(draw.normal(size=rows), draw.random(rows) < 0.2)],
            "word": word,
            "region": draw.integers(1, 6, rows),
            "flag": draw.random(rows) < 0.5,
            "maybe": draw.choice(["true", "false", ""], rows),
            "day": [moment.date() for moment in moments],
            "moment": moments,
            "zoned": pl.Series(moments).dt.replace_time_zone("Europe/Paris", ambiguous="earliest"),
            "clock": [moment.time() for moment in moments],
            "span": [datetime.timedelta(seconds=float(s)) for s in draw.uniform(-9e5, 9e5, rows)],
            "list": [list(map(float, v)) for v in draw.normal(size=(rows, 3))],
            "city": draw.choice([f"city {k}" for k in range(40)], rows),
            "rooms": draw.integers(1, 5, rows),
            "y": ((amount > 0.5) ^ (word == "a") ^ (draw.random(rows) < 0.1)).astype(int),
        }
    )


FRAME = table()
LEARNED = Schema.of(FRAME, Target.of(FRAME, "y"), kinds={"region": "categorical", "city": "target-encode"})
#: The rooms have features of single values beside the amount, as training may choose.
SCHEMA = replace(
    LEARNED, columns=tuple(replace(c, levels=(1.0, 2.0, 4.0)) if c.name == "rooms" else c for c in LEARNED.columns)
)
X = SCHEMA.encode(FRAME)
WIDTH = X.shape[1]


def linear(outputs: int = 1) -> nn.Module:
    return _weak_tails(build_model("linear", WIDTH, seed=1, outputs=outputs))


def _weak_tails(model: nn.Linear) -> nn.Linear:
    with torch.no_grad():
        model.weight.mul_(0.3)
    return model


def trees(outputs: int = 1, boosters: int = 2) -> Boosted:
    layout = Layout(SCHEMA.blocks)
    labels = FRAME["y"].to_numpy() if outputs == 1 else FRAME["region"].to_numpy() % outputs
    kind = {"objective": "binary"} if outputs == 1 else {"objective": "multiclass", "num_class": outputs}
    texts = []
    for seed in range(boosters):
        settings = {**kind, "verbosity": -1, "num_leaves": 7, "min_data_in_leaf": 5, "seed": seed, "num_threads": 1,
                    "cat_smooth": 1.0, "min_data_per_group": 5, "bagging_fraction": 0.5, "bagging_freq": 1}  # fmt: skip
        known = lightgbm.Dataset(layout.values(X.numpy().astype(np.float64)), labels, categorical_feature=layout.levels)
        texts.append(lightgbm.train(settings, known, 20).model_to_string())
    return Boosted(texts, layout)


MODELS = {
    "linear": linear,
    "mlp": lambda outputs=1: mlp(WIDTH, (8, 8), outputs),
    "trees": trees,
    "ensemble": lambda outputs=1: sp.methods.Ensemble([linear(outputs), mlp(WIDTH, 4, outputs)]),
    "stack": lambda outputs=1: sp.methods.Stack(
        {"linear": linear(outputs), "trees": trees(outputs)}, {"linear": 0.7, "trees": 1.3}, bias=-0.25
    ),
}
ASKS = {
    "one threshold": "minimize fnr where fpr <= 10%",
    "words as groups": "minimize error where recall.gap(word) <= 50%",
    "numbers as groups": "minimize error where recall.gap(region) <= 50%",
    "booleans as groups": "minimize error where recall.gap(flag) <= 50%",
    "band": "minimize review where fpr <= 20%, fnr <= 30%",
    "range": "maximize recall over fpr in [1%, 20%]",
}


def saved_run(model: nn.Module, ask: str = ASKS["one threshold"]) -> SavedRun:
    """A run of this model, with the thresholds that the ask has on the table."""
    problem, scores = sp.ask(ask), score_rows(model, X)
    groups = None if problem.group is None else SCHEMA.groups(FRAME, problem.group)
    point = sp.calibrate(problem, scores, FRAME["y"].to_numpy(), groups=groups)
    return SavedRun(model, point, SCHEMA, ABOUT)


def run_of_classes(model: nn.Module) -> SavedRun:
    names = [str(k) for k in range(3)]
    labels = FRAME["region"].to_numpy() % 3
    point = sp.calibrate("maximize accuracy", score_rows(model, X), labels, classes=names)
    return SavedRun(model, point, SCHEMA, ABOUT)


def run_of_labels(model: nn.Module) -> SavedRun:
    """Two labels, of which the second is not known everywhere."""
    labels = np.stack([FRAME["y"].to_numpy(), FRAME["flag"].to_numpy()], axis=1).astype(float)
    labels[::7, 1] = np.nan
    point = sp.calibrate("minimize fnr where fpr <= 30% for each of late, lost", score_rows(model, X), labels)
    return SavedRun(model, point, SCHEMA, ABOUT)


def run_of_lists(model: nn.Module, column: str) -> SavedRun:
    ask, frame = "maximize precision in the first 2 where hit in the first 2 >= 10%", in_lists(FRAME)
    point = sp.calibrate(ask, score_rows(model, X), FRAME["y"].to_numpy(), lists=frame[column].to_numpy())
    readings = {**SCHEMA.readings, "query": Reading("words"), "number": Reading("number")}
    schema = replace(SCHEMA, readings=readings, dropped=(("query", "names lists"), ("number", "names lists")))
    return SavedRun(model, point, schema, {**ABOUT, "settings": {"lists": column}})


def in_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in lists of 1 to 9 rows in any order, some rows twice in their list; lists have a name and a number."""
    draw = np.random.default_rng(3)
    numbers = draw.permutation(np.repeat(np.arange(frame.height), draw.integers(1, 9, frame.height))[: frame.height])
    lists = pl.Series("number", numbers - 50.5)
    whole = frame.with_columns(lists, (pl.lit("query ") + lists.cast(pl.String)).alias("query"))
    return whole[np.where(draw.random(frame.height) < 0.3, np.arange(frame.height) // 3 * 3, np.arange(frame.height))]
