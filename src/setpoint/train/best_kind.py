"""The best kind of model for a table and an ask: linear models, trees and their stack, chosen by cross-fitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import batches_like, in_batches, resident
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT
from setpoint.measure.in_first import LISTS
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.class_weights import lean_weight
from setpoint.train.contest import ASKED, NETWORK, PLAIN, RANKED, STACK, TREES, Contest
from setpoint.train.cross_fit import CrossFit, folds_of, pools, rows_to_fold
from setpoint.train.fold_networks import FoldNetwork, FoldNetworks, NetworkPlan
from setpoint.train.fold_recipes import FoldRecipes
from setpoint.train.full_batch import FullBatch, penalty_once, read_rows
from setpoint.train.linear import cross_entropy
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.models import drawn, linear, mlp
from setpoint.train.multinomial import Multinomial
from setpoint.train.recipes import Ridge
from setpoint.train.scoring import score_rows
from setpoint.train.trees import LEAVES, Trees
from setpoint.train.work import Work

FOLDS = len(LEAVES)
#: A linear model is trained for the ask too if plain cross-entropy is no further behind trees than this many standard
#: errors.
REACH = 2.0
#: A network is cross-fitted from this number of rows on, for about so many steps.
NETWORK_ROWS, BATCH, STEPS, MOST_EPOCHS, PATIENCE = 5000, 256, 2000, 60, 8
#: The share of the minutes that trees may take.
FOR_TREES = 0.6


@dataclass(frozen=True)
class OnLogits:
    """Train a linear model by a method, then rescale its scores to logits of the training rows.

    Recipes for an ask move the bias, by another amount in each fold; as logits, scores of all folds are comparable.
    """

    method: Method

    @property
    def expected_rows(self) -> int:
        """The number for the method itself."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the method cannot train, or None."""
        return self.method.refuses(problem, data)

    @torch.no_grad()
    def _rescale(self, model: nn.Linear, rows: Rows) -> None:
        scores = score_rows(model, rows.x).double()
        weights = rows.weights_or_ones.double()
        seen = Rows(torch.stack([scores, torch.ones_like(scores)], dim=1), rows.labels.double(), weights)
        # They are near to logits already.
        near = torch.tensor([1.0, 0.0], dtype=torch.float64)
        slope, shift = cross_entropy(seen, weights / weights.mean(), near).tolist()
        if slope > 0:
            model.weight.mul_(slope)
            model.bias.mul_(slope).add_(shift)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train, then rescale."""
        trained, rows = self.method.train(problem, data, work), resident(data.train)
        assert rows is not None
        assert isinstance(trained.model, nn.Linear)
        self._rescale(trained.model, rows)
        return trained


@dataclass(frozen=True)
class BestKind:
    """Cross-fit models of several kinds and their stack, and keep the best one at the exact metric.

    The candidates are, from simple to bold: a linear model by cross-entropy; the same trained for the ask, unless
    cross-entropy is far behind trees; boosted trees of several sizes; a network of two hidden layers, unless there are
    few rows, or its first member is behind that of the trees; and a stack, the weighted sum of all their logits. For
    asks about lists trees are trained by lambdarank, too, and folds hold whole lists. Every row is judged by models
    that were not trained on it. The one with the lowest log-loss is kept, the simplest where they tie, unless another
    is better by the exact metric by more than `caution` standard errors of their paired difference. The kept model
    averages the members of all folds, so it is trained on all rows.

    Args:
        caution: The number of standard errors by which another candidate must be better by the exact metric.
        seed: The seed of the folds.
        pool: Whether held-out rows are trained on too, if the threshold has calibration rows of its own.
        minutes: Start no candidate after this time, and stop growing trees at 60 % of it; the result then depends on
            the machine. None tries all candidates.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(300.0).unsqueeze(-1), (torch.arange(300) >= 150).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.BestKind(), calibration=rest)
        >>> [trial.name for trial in result.comparison]
        ['cross-entropy', 'linear', 'trees', 'mlp', 'stack']
    """

    caution: float = 1.0
    seed: int = 0
    pool: bool = True
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise BadSetting(f"minutes is the time that the choice may take, above 0, got {self.minutes!r}")

    @property
    def expected_rows(self) -> int:
        """One per candidate and fold."""
        return 4 * FOLDS

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one candidate cannot be trained, or None."""
        return self._trees.refuses(problem, data) or self._linear(data, lambda fold: Ridge()).refuses(problem, data)

    @property
    def _trees(self) -> Trees:
        seconds = None if self.minutes is None else FOR_TREES * 60 * self.minutes
        return Trees(seed=self.seed, pool=self.pool, seconds=seconds)

    def _linear(self, data: Data, recipe: Callable[[int], Any]) -> CrossFit:
        make = partial(linear, _width(data))
        members: list[Method] = [OnLogits(FullBatch(make, recipe(fold))) for fold in range(FOLDS)]
        if data.outputs > 1:
            members = [Multinomial(partial(make, data.outputs))] * FOLDS
        return CrossFit(tuple(members), self.seed, self.pool)

    def _network(self, problem: Problem, data: Data, rows: Rows, folds: Tensor) -> CrossFit:
        size, ratio = len(rows.labels), lean_weight(problem)
        epochs = min(max(STEPS * BATCH // size, 10), MOST_EPOCHS)
        if problem.kind == CUT:
            plan = NetworkPlan(epochs, PATIENCE, BATCH, ratio or 1.0, self.seed)
            networks = FoldNetworks(rows, folds, plan)
            return CrossFit(tuple(FoldNetwork(networks, fold) for fold in range(FOLDS)), self.seed, self.pool)
        members = (
            ByEpochs(
                partial(drawn, mlp, _width(data), self.seed + place, data.outputs), CrossEntropy(ratio), epochs,
                patience=PATIENCE, by_loss=True,
            )
            for place in range(FOLDS)
        )  # fmt: skip
        return CrossFit(tuple(members), self.seed, self.pool)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Cross-fit the candidates, choose one, and make its model; trees grow beside the first linear model."""
        work.once("begun", lambda: True)
        rows = rows_to_fold(data, self.pool)
        contest = Contest(problem, data, work, self.minutes)
        folds = folds_of(rows, FOLDS, self.seed)
        asks_cut = problem.kind == CUT and problem.group is None
        recipes: FoldRecipes | None = None
        with contest.meanwhile(TREES, self._trees.cross_fit):
            if problem.kind != CLASSES:
                every = batches_like(data.in_memory, rows, self.seed)
                standardised, _ = read_rows([every], nn.Linear(_width(data), 1))
                # One penalty for all folds: the choice of one number tells a fold nothing of its labels.
                penalty = penalty_once(standardised, work, caution=self.caution)
                recipes = FoldRecipes(problem, data, rows, folds, penalty)
            contest.add(PLAIN, self._linear(data, lambda fold: recipes and recipes.plain_of(fold)))
            if recipes is not None and asks_cut and recipes.is_quick:
                # While trees grow, and before they can tell whether it is needed.
                _ = recipes.anchored
        contest.add(TREES, self._trees.cross_fit)
        if problem.kind == LISTS:
            contest.add(RANKED, replace(self._trees, ranked=True).cross_fit)
        if problem.kind != CUT:
            contest.leave_out(ASKED, "asks of this kind are decided after training")
        elif problem.group is not None:
            contest.leave_out(ASKED, "groups are evened out by their thresholds, not by training")
        elif contest.is_behind(PLAIN, TREES, REACH):
            contest.leave_out(ASKED, f"cross-entropy is more than {REACH:g} standard errors behind trees")
        else:
            assert recipes is not None
            contest.add(ASKED, self._linear(data, recipes.anchored_of))
        if len(rows.labels) < NETWORK_ROWS:
            contest.leave_out(NETWORK, f"a network needs {NETWORK_ROWS:,} rows, here are {len(rows.labels):,}")
        else:
            # Batches of the same size for every table: the loader may give all rows at once, to the recipes.
            small = replace(data, train=in_batches(data.in_memory, BATCH, self.seed))
            contest.add(NETWORK, self._network(problem, data, rows, folds), small, unless_behind=TREES)
        if problem.kind == CLASSES:
            contest.leave_out(STACK, "models of several classes are not stacked")
        else:
            contest.stack(folds)
        return replace(contest.choose(self.caution, self), again=pools(data, self.pool))


def _width(data: Data) -> int:
    rows = resident(data.in_memory)
    return 1 if rows is None else int(rows.x.shape[1])
