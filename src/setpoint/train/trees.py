"""Trees: boosters of several sizes, cross-fitted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from setpoint.data.parts import Data
from setpoint.problem.problem import Problem
from setpoint.train.boosting import Boosting
from setpoint.train.cross_fit import CrossFit
from setpoint.train.method import Trained
from setpoint.train.trees_by_workers import TreesByWorkers, has_workers
from setpoint.train.work import Work

#: The leaves of each member of the trees: a mix of sizes was better than the best size (benchmarks.studies.tables).
LEAVES = (7, 31, 63, 7, 31)
#: Trees without a smaller loss after which a member stops. Twice as many changed 6 of 110 members of the tables' study.
PATIENCE = 25


@dataclass(frozen=True)
class Trees:
    """Boosted trees of several sizes, cross-fitted: one booster per fold of the rows, their logits averaged.

    On our tables this was better than the best single size in nearly all cases (`benchmarks.studies.tables`).

    Args:
        leaves: The largest number of leaves of each booster; their number is the number of folds.
        monotone: Column names with 1 where scores may only rise with the column, -1 where they may only fall.
        seed: The seed of the folds.
        pool: Whether held-out rows are trained on too, if the threshold has calibration rows of its own.
        seconds: Stop after about this time, with the trees so far; None never does.
        ranked: Train the order of the rows in their lists by lambdarank, instead of log-loss; for asks about lists.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(300.0).unsqueeze(-1), (torch.arange(300) >= 150).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> sp.fit(None, ask, train, held_out, sp.methods.Trees(), calibration=rest).point.feasible
        True
    """

    leaves: tuple[int, ...] = LEAVES
    monotone: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    pool: bool = True
    seconds: float | None = None
    ranked: bool = False

    @property
    def expected_rows(self) -> int:
        """One per booster."""
        return len(self.leaves)

    @property
    def cross_fit(self) -> CrossFit:
        """The members and their folds."""
        at_once = min(len(self.leaves), os.cpu_count() or 1)
        each = None if self.seconds is None else self.seconds * at_once / len(self.leaves)
        members = (
            Boosting(leaves, monotone=self.monotone, seed=place, seconds=each, ranked=self.ranked, patience=PATIENCE)
            for place, leaves in enumerate(self.leaves)
        )
        return CrossFit(tuple(members), self.seed, self.pool)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why trees cannot be trained, or None."""
        return self.cross_fit.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the boosters, in threads; where workers read the rows, they grow one booster on all of them."""
        if has_workers(data):
            return TreesByWorkers(monotone=self.monotone, seed=self.seed).train(problem, data, work)
        return replace(self.cross_fit.train(problem, data, work), settled=self)
