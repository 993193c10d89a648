"""Cross-fitting: one member per fold of the rows, trained on all other folds, and all members averaged.

Every row has a score by a member that was not trained on it, so all rows can judge the result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import batches_like, resident
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.data.split import folds_of_clusters, split, strata
from setpoint.decide.order import preference_of_row
from setpoint.errors import TooFewSamples
from setpoint.problem.problem import Problem
from setpoint.train.boosting import Boosted
from setpoint.train.ensemble import Ensemble
from setpoint.train.history import History
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.scoring import score_rows
from setpoint.train.work import Work


@dataclass(frozen=True)
class CrossFit:
    """Train one member per fold of the rows on all other folds, and average the logits of the members.

    Training and held-out rows are joined and cut into folds with the same share of each class. If training rows are
    read from a file in every pass, the sample in memory is cut. The member of a fold may use that fold to choose, as
    for early stopping. Every row is in one fold, so `Trained.out_of_fold` has a score of each row by a member that was
    not trained on it.

    Args:
        methods: The method of each member; their number is the number of folds. A class with fewer rows than folds
            makes fewer folds.
        seed: The seed of the folds.
        pool: Whether held-out rows are trained on too, if the threshold has calibration rows of its own.

    Raises:
        TooFewSamples: If a class has a single row.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> member = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Ridge())
        >>> method = sp.methods.CrossFit((member,) * 5)
        >>> result = sp.fit(None, "minimize fnr where fpr <= 10%", train, held_out, method, calibration=rest)
        >>> [row["member"] for row in result.history], result.point.feasible
        ([0, 1, 2, 3, 4], True)
    """

    methods: tuple[Method, ...]
    seed: int = 0
    pool: bool = True

    @property
    def expected_rows(self) -> int:
        """The sum over all members."""
        return sum(map(expected_rows, self.methods))

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the first member cannot be trained, or None."""
        for loader in (data.in_memory, data.held_out):
            rows = resident(loader)
            if rows is None or not isinstance(rows.x, Tensor):
                return "cross-fitting needs all rows in memory as dense numbers, in sp.Batches"
        return self.methods[0].refuses(problem, replace(data, train=data.in_memory))

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the members, in threads where their methods can be."""
        return Folded(self, problem, data, work).all()


class Folded:
    """A cross-fit under way: its folds, and the members that are trained so far."""

    def __init__(self, method: CrossFit, problem: Problem, data: Data, work: Work) -> None:
        work.once("begun", lambda: True)
        self.method, self.problem, self.data, self.work = method, problem, data, work
        self.rows = rows_to_fold(data, method.pool)
        self.folds = folds_of(self.rows, len(method.methods), method.seed)
        self.trained: dict[int, Trained] = {}
        self.scored: dict[int, Tensor] = {}
        self.started = self.ended = time.perf_counter()

    def member(self, place: int) -> Trained:
        """The member of one fold."""
        if place not in self.trained:
            outside, drawn = self.folds == place, self.method.seed + place
            own = replace(
                self.data, train=batches_like(self.data.in_memory, self.rows.take(~outside), drawn),
                held_out=batches_like(self.data.held_out, self.rows.take(outside), drawn),
            )  # fmt: skip
            method = self.method.methods[place]
            self.trained[place] = method.train(self.problem, own, self.work.part(f"fold-{place}"))
            self.ended = time.perf_counter()
        return self.trained[place]

    def scores(self, place: int) -> Tensor:
        """The scores of the rows of one fold by its member."""
        if place not in self.scored:
            member = self.member(place)
            judged = None if member.judged is None else member.judged.scores
            scores = score_rows(member.model, self.rows.x[self.folds == place]) if judged is None else judged
            self.scored[place] = scores.float()
        return self.scored[place]

    def all(self) -> Trained:
        """All members, as one model."""
        members = self._members
        if all(getattr(method, "in_threads", False) for method in self.method.methods):
            with self.in_threads():
                pass
        runs = self._in_turn()
        scores = torch.zeros(len(self.rows.labels), *self.scores(0).shape[1:])
        history: History = []
        starts: list[int] = []
        for member, run in zip(members, runs):
            scores[self.folds == member] = self.scores(member)
            starts.append(len(history))
            history += [{**row, "member": member} for row in run.history]
        ranks = [preference_of_row(self.problem, run.history[run.best]) for run in runs]
        best = ranks.index(max(ranks))
        return Trained(
            combined([run.model for run in runs]).eval(), history, starts[best] + runs[best].best, self.method,
            again=pools(self.data, self.method.pool), out_of_fold=self.rows.sample(scores),
        )  # fmt: skip

    @property
    def _members(self) -> range:
        return range(int(self.folds.max()) + 1)

    @contextmanager
    def in_threads(self) -> Iterator[None]:
        """Train all members in threads, beside the block; at its end they are trained."""
        with ThreadPoolExecutor(min(len(self._members), os.cpu_count() or 1)) as pool:
            try:
                found = pool.map(self.member, self._members)
                yield
                list(found)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _in_turn(self) -> list[Trained]:
        with torch.random.fork_rng(devices=[]):
            runs = []
            for member in self._members:
                torch.manual_seed(self.method.seed + member)
                runs.append(self.member(member))
            return runs


def pools(data: Data, pool: bool) -> bool:
    """Whether held-out rows are trained on: only if the threshold has rows of its own."""
    return pool and data.calibration is not None


def rows_to_fold(data: Data, pool: bool) -> Rows:
    """Training rows, with the held-out rows behind them if those are trained on."""
    loaders = (data.in_memory, data.held_out) if pools(data, pool) else (data.in_memory,)
    parts = [rows for loader in loaders if (rows := resident(loader)) is not None]
    return replace(Rows.join(parts), index=None)


def folds_of(rows: Rows, most: int, seed: int) -> Tensor:
    """The number of the fold of each row, with the same share of each class in each; lists and clusters stay whole."""
    if rows.clusters is not None:
        return folds_of_clusters(rows.labels, rows.clusters, most, seed)
    number = torch.zeros(len(rows.labels), dtype=torch.long)
    if rows.lists is not None:
        folds = min(most, len(rows.lists.unique()))
        for place, own in enumerate(split(rows.labels, (1 / folds,) * folds, seed, lists=rows.lists)):
            number[own] = place
        return number
    smallest = min(len(kind) for kind in strata(rows.labels))
    if smallest < 2:
        raise TooFewSamples("cross-fitting needs at least 2 rows of each class; bring more rows of the rarer class")
    folds = min(most, smallest)
    for place, own in enumerate(split(rows.labels, (1 / folds,) * folds, seed)):
        number[own] = place
    return number


def combined(models: Sequence[nn.Module]) -> nn.Module:
    """One model that averages the logits of several: linear models become one, boosters share their rows."""
    first = models[0]
    if len(models) == 1:
        return first
    if all(isinstance(model, Boosted) for model in models):
        return Boosted.join(list(models))  # type: ignore[arg-type]
    if isinstance(first, nn.Linear):
        return averaged(list(models))
    return Ensemble(models)


@torch.no_grad()
def averaged(models: Sequence[Any]) -> nn.Linear:
    """One linear model with the mean of the parameters."""
    first = models[0]
    mean = nn.Linear(first.in_features, first.out_features, dtype=first.weight.dtype)
    mean.weight.copy_(torch.stack([model.weight.double() for model in models]).mean(0))
    mean.bias.copy_(torch.stack([model.bias.double() for model in models]).mean(0))
    return mean
