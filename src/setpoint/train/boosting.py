"""Gradient-boosted trees by LightGBM. Only this file imports LightGBM, and only when trees are trained or restored."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.data.batch import batches_like, resident
from setpoint.data.layout import Layout
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting, missing
from setpoint.measure.constraint import CUT
from setpoint.measure.in_first import LISTS
from setpoint.problem.problem import Problem
from setpoint.train.linear import some_rows
from setpoint.train.method import Trained, trained_once
from setpoint.train.work import Work

#: With more values per row than this, LightGBM counts column by column.
WIDE = 200
#: The history of a booster shows its rates on so many training rows at most; runs judge themselves on all of them.
JUDGED_ROWS = 2_000


def lightgbm() -> Any:
    """LightGBM, or the error that says how to install it."""
    try:
        import lightgbm as engine  # noqa: PLC0415
    except ImportError as cause:
        raise missing("lightgbm", "trees", cause) from None
    return engine


class Boosted(nn.Module):
    """A model of one or more LightGBM boosters, whose logits are averaged.

    The boosters are buffers that hold LightGBM's own text, so `state_dict` is all that a saved run needs.

    Args:
        texts: The text of each booster, as `Booster.model_to_string` writes it.
        layout: How the features of a row become the values that the boosters were trained on.
        boosters: The boosters of these texts, if they were read already.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(200.0).unsqueeze(-1), (torch.arange(200) >= 100).float()
        >>> train, held_out = (sp.Batches(x[k::2], labels[k::2]) for k in range(2))
        >>> result = sp.fit(None, "minimize fnr where fpr <= 10%", train, held_out, sp.methods.Boosting(7))
        >>> bool(result.model(torch.tensor([[150.0]])) > result.model(torch.tensor([[50.0]])))
        True
    """

    def __init__(self, texts: Sequence[str], layout: Layout, boosters: Sequence[Any] = ()) -> None:
        super().__init__()
        self.layout = layout
        self.boosters = [*boosters] or [lightgbm().Booster(model_str=text) for text in texts]
        for place, text in enumerate(texts):
            self.register_buffer(f"booster_{place}", _bytes(text))
        self.register_buffer("blocks", _bytes(layout.to_json()))

    @property
    def texts(self) -> list[str]:
        """The text of each booster."""
        return [_text(getattr(self, f"booster_{place}")) for place in range(len(self.boosters))]

    def forward(self, x: Tensor) -> Tensor:
        """The mean logit per row `(n,)`, or per row and class `(n, K)`."""
        values = self.layout.values(x.detach().cpu().numpy())
        # In a thread beside others, more threads would only wait for each other.
        how = {} if threading.current_thread() is threading.main_thread() else {"num_threads": 1}
        total: NDArray[np.float64] = sum(booster.predict(values, raw_score=True, **how) for booster in self.boosters)
        return torch.from_numpy(total / len(self.boosters)).to(x)

    @classmethod
    def restore(cls, state: Mapping[str, Tensor]) -> Boosted:
        """The model with a stored `state_dict`."""
        texts = [_text(state[f"booster_{place}"]) for place in range(len(state) - 1)]
        return cls(texts, Layout.from_json(_text(state["blocks"])))

    @classmethod
    def join(cls, models: Sequence[Boosted]) -> Boosted:
        """One model with the boosters of several, which is faster than an ensemble: rows are read once."""
        boosters = [booster for model in models for booster in model.boosters]
        return cls([text for model in models for text in model.texts], models[0].layout, boosters)


def _bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _text(stored: Tensor) -> str:
    return stored.cpu().numpy().tobytes().decode()


@dataclass(frozen=True)
class Boosting:
    """Train gradient-boosted trees by log-loss, and stop when the held-out rows no longer gain.

    The ask plays no part in the training: weights and losses for the ask brought trees nothing in our studies. It sets
    the threshold. Categories and missing values are LightGBM's own. Results do not depend on the number of threads.

    Args:
        leaves: The largest number of leaves per tree.
        rounds: The largest number of trees.
        rate: The learning rate.
        patience: Stop after this many trees without a smaller loss on the held-out rows.
        least: The least number of training rows per leaf.
        monotone: Column names with 1 where scores may only rise with the column, -1 where they may only fall.
        more: Further parameters of LightGBM.
        seconds: Stop after this time at the latest, with the best number of trees so far; None never does.
        seed: The seed of LightGBM, for parameters that draw.
        ranked: Train the order of the rows in their lists by LightGBM's lambdarank, instead of log-loss; only for asks
            about lists. Scores of different lists are then not comparable.

    Raises:
        MissingPackage: If LightGBM is not installed.
        BadSetting: If `ranked` is set, and the ask is not about lists.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(200.0).unsqueeze(-1), (torch.arange(200) >= 100).float()
        >>> train, held_out = (sp.Batches(x[k::2], labels[k::2]) for k in range(2))
        >>> sp.fit(None, "minimize fnr where fpr <= 10%", train, held_out, sp.methods.Boosting(7)).point.feasible
        True
    """

    leaves: int = 31
    rounds: int = 2000
    rate: float = 0.05
    patience: int = 50
    least: int = 20
    monotone: Mapping[str, int] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    seed: int = 0
    ranked: bool = False

    #: LightGBM works outside Python's lock and the random state of torch: members may be trained in threads.
    in_threads = True

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why trees cannot be trained, or None: they need rows in memory, as numbers."""
        lightgbm()
        if self.ranked and problem.kind != LISTS:
            raise BadSetting(f"lambdarank orders the rows of lists, but '{problem}' is not about lists; choose trees")
        for loader in (data.train, data.held_out):
            rows = resident(loader)
            if rows is None or not isinstance(rows.x, Tensor):
                return "trees need all rows in memory as dense numbers, in sp.Batches"
        return None

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train one booster."""
        layout = Layout(data.blocks)
        text = work.once("booster", lambda: self._text(problem, data, layout))
        return trained_once(self, Boosted([text], layout), problem, fewer_to_judge(problem, data), work)

    def _text(self, problem: Problem, data: Data, layout: Layout) -> str:
        engine = lightgbm()
        rows, held_out = (_by_list(_rows(part)) if self.ranked else _rows(part) for part in (data.train, data.held_out))
        x = _values(layout, rows)
        names = layout.names(x.shape[1])
        unknown = [name for name in self.monotone if name not in names]
        if unknown:
            raise BadSetting(f"monotone names {unknown[0]!r}, which is no column; the columns are {', '.join(names)}")
        kind: dict[str, Any] = {"objective": "binary"}
        if data.outputs > 1:
            kind = {"objective": "multiclass", "num_class": data.outputs}
        elif self.ranked:
            kind = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [problem.depth]}
        settings = {
            **kind, "num_leaves": self.leaves, "learning_rate": self.rate, "seed": self.seed,
            "min_data_in_leaf": self.least, "verbosity": -1, "num_threads": 1, "deterministic": True,
            "force_col_wise" if len(names) > WIDE else "force_row_wise": True, **self.more,
        }  # fmt: skip
        if self.monotone:
            settings["monotone_constraints"] = [int(self.monotone.get(name, 0)) for name in names]
        learned = engine.Dataset(
            x, _numbers(rows.labels), weight=_numbers(rows.weights), categorical_feature=layout.levels,
            group=_sizes(rows, self.ranked),
        )  # fmt: skip
        watched = engine.Dataset(
            _values(layout, held_out), _numbers(held_out.labels), weight=_numbers(held_out.weights),
            categorical_feature=layout.levels, reference=learned, group=_sizes(held_out, self.ranked),
        )  # fmt: skip
        stops = [engine.early_stopping(self.patience, verbose=False)]
        if self.seconds is not None:
            stops.append(_deadline(self.seconds))
        booster = engine.train(
            settings, learned, self.rounds, valid_sets=[watched], callbacks=stops, keep_training_booster=True
        )
        return str(booster.model_to_string(num_iteration=booster.best_iteration))


def fewer_to_judge(problem: Problem, data: Data) -> Data:
    """The data with some of the training rows: to score all of them by trees takes as long as to train the trees."""
    rows = _rows(data.train)
    if problem.kind != CUT or problem.group is not None or len(rows.labels) <= JUDGED_ROWS:
        return data
    return replace(data, train=batches_like(data.train, some_rows(rows, JUDGED_ROWS), 0))


def _deadline(seconds: float) -> Callable[[Any], None]:
    """A callback that ends a training after so many seconds."""
    end, values = time.monotonic() + seconds, list[float]()

    def check(state: Any) -> None:
        _, _, value, larger_is_better, *_ = state.evaluation_result_list[0]
        values.append(-value if larger_is_better else value)
        if time.monotonic() > end:
            best = values.index(min(values))
            raise lightgbm().callback.EarlyStopException(best, state.evaluation_result_list)

    return check


def _rows(loader: Iterable[Any]) -> Rows:
    rows = resident(loader)
    assert rows is not None
    return rows


def _by_list(rows: Rows) -> Rows:
    """The rows, list by list."""
    assert rows.lists is not None
    return rows.take(rows.lists.argsort(stable=True))


def _sizes(rows: Rows, ranked: bool) -> NDArray[Any] | None:
    """The number of rows of each list, for rows list by list."""
    return rows.lists.unique_consecutive(return_counts=True)[1].numpy() if ranked and rows.lists is not None else None


def _values(layout: Layout, rows: Rows) -> NDArray[Any]:
    return np.ascontiguousarray(layout.values(rows.x.cpu().numpy()))


def _numbers(values: Tensor | None) -> NDArray[Any] | None:
    return None if values is None else np.ascontiguousarray(values.cpu().numpy(), dtype=np.float32)
