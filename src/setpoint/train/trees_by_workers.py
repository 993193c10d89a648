"""Boosted trees grown by the workers of a cluster, each with its rows in memory: the Dask estimator of LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.data.batch import resident
from setpoint.data.layout import Layout
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.train.boosting import Boosted, lightgbm
from setpoint.train.method import Trained, trained_once
from setpoint.train.work import Work

#: The trees after which the held-out loss is looked at.
EVERY = 10
#: How often the training is begun anew if a worker dies in it.
ATTEMPTS = 3


@dataclass(frozen=True)
class TreesByWorkers:
    """Train boosted trees by log-loss on all training rows of a stream, spread over the memory of workers.

    LightGBM's Dask estimator stops by itself at a fixed number of trees only; the held-out rows then choose how many
    of them are kept.

    Args:
        leaves: The largest number of leaves per tree.
        rounds: The number of trees that are grown.
        rate: The learning rate.
        least: The least number of training rows per leaf.
        monotone: Column names with 1 where scores may only rise with the column, -1 where they may only fall.
        seed: The seed of LightGBM.
    """

    leaves: int = 31
    rounds: int = 400
    rate: float = 0.05
    least: int = 20
    monotone: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0

    expected_rows: ClassVar[int] = 1

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the workers cannot train, or None: the table must be read by workers."""
        lightgbm()
        return None if has_workers(data) else "these trees are grown by workers; give --workers"

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Grow the trees, and keep as many as the held-out rows choose."""
        layout = Layout(data.blocks)
        text = work.once("booster", lambda: self._text(data, layout))
        seen = data.seen if data.seen is not None else data.held_out
        model: nn.Module = Boosted([text], layout)
        return trained_once(self, model, problem, Data(seen, data.held_out), work)

    def _text(self, data: Data, layout: Layout) -> str:
        held_out = resident(data.held_out)
        assert held_out is not None
        values, labels = _values(layout, held_out)
        names = layout.names(values.shape[1])
        unknown = [name for name in self.monotone if name not in names]
        if unknown:
            raise BadSetting(f"monotone names {unknown[0]!r}, which is no column; the columns are {', '.join(names)}")
        settings: dict[str, Any] = {
            "n_estimators": self.rounds, "num_leaves": self.leaves, "learning_rate": self.rate,
            "min_child_samples": self.least, "random_state": self.seed, "verbosity": -1, "tree_learner": "data",
        }  # fmt: skip
        if self.monotone:
            settings["monotone_constraints"] = [int(self.monotone.get(name, 0)) for name in names]
        loader: Any = data.train
        parts = loader.parts(partial(_values, layout))
        grow = partial(_grow, settings, layout.levels)
        for attempt in range(ATTEMPTS):
            try:
                booster = loader.workers.grow(parts, values.shape[1], grow)
                break
            except Exception:
                # The trees are grown by all workers together, so that the loss of one ends the training of all.
                if attempt == ATTEMPTS - 1:
                    raise
        return str(booster.model_to_string(num_iteration=_best(booster, values, labels)))


def has_workers(data: Data) -> bool:
    """Whether the training rows are read by workers."""
    return getattr(data.train, "workers", None) is not None


def _values(layout: Layout, rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    x: Tensor = rows.x
    values = np.ascontiguousarray(layout.values(x.numpy()), dtype=np.float32)
    return values, rows.labels.numpy().astype(np.float32)


def _grow(settings: dict[str, Any], levels: list[int], client: Any, x: Any, y: Any) -> Any:
    estimator = lightgbm().DaskLGBMClassifier(client=client, **settings)
    return estimator.fit(x, y, categorical_feature=levels or "auto").booster_


def _best(booster: Any, values: NDArray[Any], labels: NDArray[Any]) -> int:
    """The number of trees with the least held-out log-loss."""
    losses = {}
    total = np.zeros(len(labels))
    for first in range(0, booster.current_iteration(), EVERY):
        total += booster.predict(values, raw_score=True, start_iteration=first, num_iteration=EVERY)
        losses[first + EVERY] = float(np.mean(np.logaddexp(0, total) - labels * total))
    return min(losses, key=lambda trees: losses[trees])
