"""The best kind of model for a table and an ask: linear models, trees and their stack, chosen by cross-fitting."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setpoint.data.batch import batches_like, in_batches, resident
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.class_weights import lean_weight
from setpoint.train.cross_fit import CrossFit, Folded, folds_of, pools, rows_to_fold
from setpoint.train.full_batch import FullBatch, penalty_once, read_rows
from setpoint.train.history import History
from setpoint.train.linear import cross_entropy
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.models import drawn, linear, mlp
from setpoint.train.recipes import Only, Recipes, Ridge
from setpoint.train.scoring import score_rows
from setpoint.train.stack import Stack, stacked
from setpoint.train.trees import LEAVES, Trees
from setpoint.train.trial import Trial, gain_over, judge
from setpoint.train.work import Work

FOLDS = len(LEAVES)
#: A linear model is trained for the ask too if plain cross-entropy is no further behind trees than this many standard
#: errors.
REACH = 2.0
#: A network is cross-fitted from this number of rows on, for about so many steps.
NETWORK_ROWS, BATCH, STEPS, MOST_EPOCHS = 5000, 256, 2000, 60
#: The share of the minutes that trees may take.
FOR_TREES = 0.6
PLAIN, ASKED, TREES, NETWORK, STACK = "cross-entropy", "linear", "trees", "mlp", "stack"
#: From simple to bold.
ORDER = (PLAIN, ASKED, TREES, NETWORK, STACK)


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

    The candidates are, from simple to bold: a linear model by cross-entropy; the same trained for the ask, unless
    cross-entropy is far behind trees; boosted trees of several sizes; a network of two hidden layers, unless there are
    few rows, or its first member is behind that of the trees; and a stack, the weighted sum of all their logits. Every
    row is judged by models that were not trained on it. The one with the lowest log-loss is kept, the
    simplest where they tie, unless another is better by the exact metric by more than `caution` standard errors of
    their paired difference. The kept model averages the members of all folds, so it is trained on all rows.

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
        return self._trees.refuses(problem, data) or self._linear(data, Ridge()).refuses(problem, data)

    @property
    def _trees(self) -> Trees:
        seconds = None if self.minutes is None else FOR_TREES * 60 * self.minutes
        return Trees(seed=self.seed, pool=self.pool, seconds=seconds)

    def _linear(self, data: Data, recipe: Any) -> CrossFit:
        member = OnLogits(FullBatch(partial(linear, _width(data)), recipe))
        return CrossFit((member,) * FOLDS, self.seed, self.pool)

    def _network(self, problem: Problem, data: Data, rows: int) -> CrossFit:
        epochs = min(max(STEPS * BATCH // rows, 10), MOST_EPOCHS)
        members = (
            ByEpochs(
                partial(drawn, mlp, _width(data), self.seed + place), CrossEntropy(lean_weight(problem)), epochs,
                patience=8, by_loss=True,
            )
            for place in range(FOLDS)
        )  # fmt: skip
        return CrossFit(tuple(members), self.seed, self.pool)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Cross-fit the candidates one after the other, choose one, and make its model."""
        work.once("begun", lambda: True)
        rows = rows_to_fold(data, self.pool)
        field = _Field(problem, data, work, self.minutes)
        every = batches_like(data.in_memory, rows, self.seed)
        standardised, _ = read_rows([every], nn.Linear(_width(data), 1))
        # One penalty for all folds: the choice of one number tells a fold nothing of its labels.
        penalty = penalty_once(standardised, work, caution=self.caution)
        field.add(PLAIN, self._linear(data, Only("CrossEntropy", attrgetter("plain"), penalty)))
        field.add(TREES, self._trees.cross_fit)
        if problem.group is not None:
            field.leave_out(ASKED, "groups are evened out by their thresholds, not by training")
        elif field.is_behind(PLAIN, TREES):
            field.leave_out(ASKED, f"cross-entropy is more than {REACH:g} standard errors behind trees")
        else:
            field.add(ASKED, self._linear(data, Only("Anchored(0.25)", Recipes.anchored, penalty)))
        if len(rows.labels) < NETWORK_ROWS:
            field.leave_out(NETWORK, f"a network needs {NETWORK_ROWS:,} rows, here are {len(rows.labels):,}")
        else:
            # Batches of the same size for every table: the loader may give all rows at once, to the recipes.
            small = replace(data, train=in_batches(data.in_memory, BATCH, self.seed))
            field.add(NETWORK, self._network(problem, data, len(rows.labels)), small, unless_behind=TREES)
        field.stack(folds_of(rows, FOLDS, self.seed))
        return replace(field.choose(self.caution), settled=self, again=pools(data, self.pool))


def _width(data: Data) -> int:
    rows = resident(data.in_memory)
    return 1 if rows is None else int(rows.x.shape[1])


class _Field:
    """The candidates that are tried on one problem and data."""

    def __init__(self, problem: Problem, data: Data, work: Work, minutes: float | None) -> None:
        self.problem, self.data, self.work = problem, data, work
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self.folded: dict[str, Folded] = {}
        self.trained: dict[str, Trained] = {}
        self.samples: dict[str, Sample] = {}
        self.seconds: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.history: History = []
        self.rows: dict[str, int] = {}
        self.stack_weights: tuple[dict[str, float], float] = ({}, 0.0)

    def add(self, name: str, method: CrossFit, data: Data | None = None, unless_behind: str | None = None) -> None:
        """Cross-fit one more candidate, if there is time; all of it unless its first fold is behind another's."""
        started, first = time.perf_counter(), len(self.history)
        over = self.end is not None and time.monotonic() > self.end and name != PLAIN
        if self.work.once(f"no time for {name}", lambda: over):
            self.leave_out(name, "the minutes were over")
            return

        def tell(row: dict[str, Any]) -> None:
            self.work.tell({**row, "epoch": first + row["epoch"], "candidate": name})

        folded = Folded(method, self.problem, data or self.data, self.work.part(name, tell=tell))
        if unless_behind is not None:
            gap = _gap(folded, self.folded[unless_behind])
            if gap is not None:
                self.leave_out(name, f"its first fold has a larger log-loss than that of {unless_behind}, {gap}")
                self.seconds[name] = time.perf_counter() - started
                return
        trained = folded.all()
        assert trained.out_of_fold is not None
        self.folded[name], self.trained[name], self.samples[name] = folded, trained, trained.out_of_fold
        self.rows[name] = first + trained.best
        rows = enumerate(trained.history, first)
        self.history += [{**row, "epoch": place, "candidate": name} for place, row in rows]
        self.seconds[name] = time.perf_counter() - started

    def leave_out(self, name: str, why: str) -> None:
        """Note why a candidate is not tried."""
        self.notes[name] = f"left out: {why}"

    def is_behind(self, name: str, other: str) -> bool:
        """Whether a candidate is clearly worse than another, beyond the reach of training for the ask."""
        if other not in self.samples:
            return False
        return gain_over(self.problem, self.samples[name], self.samples[other]).exceeds(REACH)

    def stack(self, folds: Tensor) -> None:
        """Add the stack of all candidates so far."""
        started = time.perf_counter()
        (*weights, bias), self.samples[STACK] = stacked(list(self.samples.values()), folds)
        self.stack_weights = dict(zip(self.trained, weights)), bias
        self.rows[STACK] = max(self.rows.values())
        self.seconds[STACK] = time.perf_counter() - started
        shares = ", ".join(f"{weight:.2f} {name}" for name, weight in self.stack_weights[0].items())
        self.notes[STACK] = f"logits weighted {shares}"

    def model(self, name: str) -> Stack:
        """The model of a candidate: a stack, of one member or of all."""
        if name != STACK:
            return Stack({name: self.trained[name].model}, {name: 1.0})
        return Stack({name: trained.model for name, trained in self.trained.items()}, *self.stack_weights)

    def choose(self, caution: float) -> Trained:
        """Keep the candidate with the lowest log-loss, unless another is clearly better by the exact metric.

        The log-loss tells models apart on far fewer rows than a rate at a tight bound does. Between equals the simpler
        candidate wins.
        """
        tried = [name for name in ORDER if name in self.samples]
        losses = {name: _loss(self.samples[name]) for name in tried}
        first = min(tried, key=lambda name: float(losses[name].sum()))
        gains = {name: gain_over(self.problem, self.samples[first], self.samples[name]) for name in tried}
        clear = [name for name in tried if name != first and gains[name].exceeds(caution)]
        kept = max(clear, key=lambda name: gains[name].value, default=first)
        for name in tried:
            more, error = _paired(losses[name] - losses[first])
            note = f"{gains[name]} against {first}; log-loss {more:+.4f} ± {error:.4f} per row"
            note = "the lowest log-loss" if name == first else note
            self.notes[name] = "; ".join(filter(None, (note, self.notes.get(name))))
        trials = []
        for name in ORDER:
            point = judge(self.problem, self.samples[name]) if name in self.samples else None
            trials.append(Trial(name, point, self.seconds.get(name, 0.0), name == kept, self.notes.get(name, "")))
        return Trained(
            self.model(kept).eval(), self.history, self.rows[kept], BestKind(), tuple(trials),
            plain=self.trained[PLAIN].model, out_of_fold=self.samples[kept],
        )  # fmt: skip


def _gap(one: Folded, other: Folded) -> str | None:
    """By how much the first member of a cross-fit is worse than that of another on the first fold, if it is.

    Both are judged by the log-loss after the best rescaling of their scores, per row.
    """
    rows = replace(one.rows, x=one.folds).take(one.folds == 0)
    mean, error = _paired(_loss(rows.sample(one.scores(0))) - _loss(rows.sample(other.scores(0))))
    return f"{mean:.4f} ± {error:.4f} per row" if mean > error else None


def _loss(sample: Sample) -> Tensor:
    """The log-loss of each row, times its weight, after the best rescaling of the scores."""
    weights = torch.ones(len(sample.labels)) if sample.weights is None else sample.weights
    weights, labels = weights.double(), sample.labels.double()
    x = torch.stack([sample.scores.double(), torch.ones_like(labels)], dim=1)
    logits = x @ cross_entropy(Rows(x, labels, weights), weights / weights.mean())
    return weights * (F.softplus(logits) - labels * logits)


def _paired(differences: Tensor) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(differences.mean()), float(differences.std()) / len(differences) ** 0.5
