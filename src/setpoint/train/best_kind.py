"""The best kind of model for a table and an ask: linear models, trees and their stack, chosen by cross-fitting."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import resident
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.train.cross_fit import CrossFit, folds_of, pools, rows_to_fold
from setpoint.train.full_batch import FullBatch
from setpoint.train.history import History
from setpoint.train.linear import cross_entropy
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.models import linear
from setpoint.train.recipes import Only, Recipes, Ridge
from setpoint.train.scoring import score_rows
from setpoint.train.stack import Stack, stacked
from setpoint.train.trees import Boosting
from setpoint.train.trial import Trial, choose, judge
from setpoint.train.work import Work

#: The leaves of each member of the trees: a mix of sizes was better than the best size (benchmarks.studies.tables).
LEAVES = (7, 31, 63, 7, 31)
FOLDS = len(LEAVES)
#: A linear model is trained for the ask too if plain cross-entropy is no further behind trees than this many standard
#: errors.
REACH = 2.0
PLAIN, ASKED, TREES, STACK = "cross-entropy", "linear", "trees", "stack"


def trees() -> CrossFit:
    """Boosted trees of several sizes, cross-fitted."""
    return CrossFit(tuple(Boosting(leaves, seed=place) for place, leaves in enumerate(LEAVES)))


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
        slope, shift = cross_entropy(seen, weights / weights.mean()).tolist()
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
    """Cross-fit models of several kinds and their stack, and keep the one that is best at the exact metric.

    The candidates are, from simple to bold: a linear model by cross-entropy; the same trained for the ask; boosted
    trees of several sizes; and a stack, the weighted sum of all their logits. Every row is judged by models that were
    not trained on it. The first is kept unless another is better by more than `caution` standard errors of their
    paired difference. The kept model averages the members of all folds, so it is trained on all rows.

    Args:
        caution: The number of standard errors by which another candidate must be better than the simplest.
        seed: The seed of the folds.
        pool: Whether held-out rows are trained on too, if the threshold has calibration rows of its own.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(300.0).unsqueeze(-1), (torch.arange(300) >= 150).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.BestKind(), calibration=rest)
        >>> [trial.name for trial in result.comparison if trial.chosen]
        ['cross-entropy']
    """

    caution: float = 1.0
    seed: int = 0
    pool: bool = True

    @property
    def expected_rows(self) -> int:
        """One per candidate and fold."""
        return 3 * FOLDS

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one candidate cannot be trained, or None."""
        return trees().refuses(problem, data) or self._linear(data, Ridge()).refuses(problem, data)

    def _linear(self, data: Data, recipe: Any) -> CrossFit:
        rows = resident(data.train)
        width = 1 if rows is None else rows.x.shape[1]
        member = OnLogits(FullBatch(partial(linear, width), recipe))
        return CrossFit((member,) * FOLDS, self.seed, self.pool)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Cross-fit the candidates one after the other, choose one, and make its model."""
        work.once("begun", lambda: True)
        folds = folds_of(rows_to_fold(data, self.pool), FOLDS, self.seed)
        field = _Field(problem, data, work)
        field.add(PLAIN, self._linear(data, Ridge()))
        field.add(TREES, replace(trees(), seed=self.seed, pool=self.pool))
        if problem.group is not None:
            field.leave_out(ASKED, "left out: groups are evened out by their thresholds, not by training")
        elif field.is_behind(PLAIN, TREES):
            field.leave_out(ASKED, f"left out: cross-entropy is more than {REACH:g} standard errors behind trees")
        else:
            field.add(ASKED, self._linear(data, Only("Anchored(0.25)", Recipes.anchored)))
        field.stack(folds)
        return replace(field.choose(self.caution), settled=self, again=pools(data, self.pool))


class _Field:
    """The candidates that are tried on one problem and data."""

    def __init__(self, problem: Problem, data: Data, work: Work) -> None:
        self.problem, self.data, self.work = problem, data, work
        self.models: dict[str, Callable[[], Stack]] = {}
        self.trained: dict[str, Trained] = {}
        self.samples: dict[str, Sample] = {}
        self.seconds: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.history: History = []
        self.rows: dict[str, int] = {}

    def add(self, name: str, method: Method) -> None:
        """Cross-fit one more candidate."""
        started, first = time.perf_counter(), len(self.history)

        def tell(row: dict[str, Any]) -> None:
            self.work.tell({**row, "epoch": first + row["epoch"], "candidate": name})

        trained = method.train(self.problem, self.data, self.work.part(name, tell=tell))
        assert trained.out_of_fold is not None
        self.trained[name], self.samples[name] = trained, trained.out_of_fold
        self.models[name] = partial(Stack, {name: trained.model}, {name: 1.0})
        self.rows[name] = first + trained.best
        self.history += [
            {**row, "epoch": first + place, "candidate": name} for place, row in enumerate(trained.history)
        ]
        self.seconds[name] = time.perf_counter() - started

    def leave_out(self, name: str, why: str) -> None:
        """Note why a candidate is not tried."""
        self.notes[name] = why

    def is_behind(self, name: str, other: str) -> bool:
        """Whether a candidate is clearly worse than another, beyond the reach of training for the ask."""
        _, gains = choose(self.problem, [self.samples[name], self.samples[other]], REACH)
        return gains[1].exceeds(REACH)

    def stack(self, folds: Tensor) -> None:
        """Add the stack of all candidates so far."""
        started = time.perf_counter()
        (*weights, bias), self.samples[STACK] = stacked(list(self.samples.values()), folds)
        members = {name: trained.model for name, trained in self.trained.items()}
        self.models[STACK] = partial(Stack, members, dict(zip(members, weights)), bias)
        self.rows[STACK] = max(self.rows.values())
        self.seconds[STACK] = time.perf_counter() - started
        shares = ", ".join(f"{weight:.2f} {name}" for name, weight in zip(members, weights))
        self.notes[STACK] = f"logits weighted {shares}"

    def choose(self, caution: float) -> Trained:
        """The candidate to keep."""
        order = [name for name in (PLAIN, ASKED, TREES, STACK) if name in self.samples]
        kept, gains = choose(self.problem, [self.samples[name] for name in order], caution)
        trials = []
        for name in (PLAIN, ASKED, TREES, STACK):
            note = self.notes.get(name, "")
            if name in self.samples:
                gain = gains[order.index(name)]
                against = "" if name == PLAIN else f"{gain} against {PLAIN}, cross-validated in {FOLDS} folds"
                note = "; ".join(filter(None, (against, note)))
                point = judge(self.problem, self.samples[name])
                trials.append(Trial(name, point, self.seconds[name], name == order[kept], note))
            else:
                trials.append(Trial(name, None, 0.0, note=note))
        name = order[kept]
        return Trained(
            self.models[name]().eval(), self.history, self.rows[name], BestKind(), tuple(trials),
            out_of_fold=self.samples[name],
        )  # fmt: skip
