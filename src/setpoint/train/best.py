"""The best of all recipes for a linear model: `Auto` for linear models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.data.split import strata
from setpoint.decide.cut import find
from setpoint.decide.order import merit
from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.train.full_batch import FullBatch, linear_layer, penalty_once, read_rows, set_layer
from setpoint.train.history import History, record, score
from setpoint.train.method import Trained
from setpoint.train.penalty import LinearPenalty
from setpoint.train.recipes import RECIPES, Only, Recipe, Recipes, Ridge
from setpoint.train.together import every_batch
from setpoint.train.trial import Trial, choose, judge
from setpoint.train.tune import search
from setpoint.train.work import Work

#: The number of candidates that are cross-validated beside cross-entropy, and the number of folds.
CONTENDERS, FOLDS = 3, 3
#: With more training rows than this, the held-out rows alone are enough to choose by.
MOST_ROWS = 50_000
SPACE = {"kappa": (1 / 64, 16.0), "weight": (1 / 16, 16.0)}


@dataclass(frozen=True)
class Tried:
    """A trained candidate: its recipe, parameters, scores on the held-out rows, operating point and trial."""

    recipe: Recipe
    theta: Tensor
    held_out: Sample
    point: OperatingPoint
    trial: Trial


@dataclass(frozen=True)
class Best:
    """Train a linear model by every recipe, cross-validate the most promising, and keep one.

    Plain cross-entropy is kept unless another candidate is better by more than `caution` standard errors.

    Args:
        make: Gives the model: one linear layer with one output.
        caution: The number of standard errors by which another candidate must be better.
        tune: The number of trials by optuna, the best of which is one more candidate.
        seed: The seed of these trials.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> best = sp.methods.Best(lambda: torch.nn.Linear(1, 1), caution=1.5)
        >>> result = sp.fit(None, ask, train, held_out, best, calibration=rest)
        >>> result.comparison[0].name, result.comparison[0].chosen
        ('CrossEntropy', True)
    """

    make: Callable[[], nn.Module]
    caution: float
    tune: int = 0
    seed: int = 0

    @property
    def expected_rows(self) -> int:
        """One per recipe."""
        return len(RECIPES) + bool(self.tune)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one recipe cannot train, or None."""
        return FullBatch(self.make, Ridge()).refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train every candidate, choose one, and set the model to its parameters."""
        work.once("begun", lambda: True)
        model = linear_layer(self.make(), self)
        train = every_batch(data.train, work.processes)
        held_out = every_batch(data.held_out, work.processes)
        history, best, trials, recipe = self._choose(model, problem, train, held_out, work)
        return Trained(model, history, best, FullBatch(self.make, recipe), trials)

    def _choose(
        self, model: nn.Linear, problem: Problem, train: Iterable[Any], held_out: Iterable[Any], work: Work
    ) -> tuple[History, int, tuple[Trial, ...], Only]:
        own, scaling = read_rows([train], model)
        rows = own if problem.group is not None else replace(own, groups=None)
        recipes = Recipes(problem, rows, penalty_once(rows, work))
        history: History = []
        trials: list[Trial | int] = []
        standing: list[Tried] = []

        def stand(name: str, recipe: Recipe, note: str = "") -> None:
            started = time.perf_counter()
            try:
                theta = work.once(name, lambda: recipe(recipes))
            except (BadProblem, DivergedPrices) as cause:
                trials.append(Trial(name, None, time.perf_counter() - started, note=f"left out: {cause}"))
                return
            set_layer(model, *scaling.undo(theta))
            sample = score(model, held_out)
            point = judge(problem, sample)
            seen = rows.sample(rows.x @ theta)
            history.append(record(problem, len(history), name, seen, judge(problem, seen), point))
            trials.append(len(standing))
            trial = Trial(name, point, time.perf_counter() - started, note=note)
            standing.append(Tried(recipe, theta, sample, point, trial))
            work.tell(history[-1])

        for name, recipe in RECIPES.items():
            stand(name, recipe)
        if self.tune:
            started = time.perf_counter()

            def try_once(settings: dict[str, float]) -> float:
                set_layer(model, *scaling.undo(_tuned(settings)(recipes)))
                return merit(judge(problem, score(model, held_out)))

            found = search(try_once, SPACE, self.tune, self.seed)
            name = f"Tuned({', '.join(f'{key}={value:.3g}' for key, value in found.items())})"
            spent = f"the best of {self.tune} trials, found in {time.perf_counter() - started:.1f} s"
            stand(name, _tuned(found), spent)

        # Only the candidates that are best on the held-out rows are cross-validated.
        order = sorted(range(1, len(standing)), key=lambda i: -merit(standing[i].point))
        tuned = {len(standing) - 1} if self.tune else set()
        contenders = [0, *sorted({*order[:CONTENDERS], *tuned})]
        evidence, how = gather_evidence(problem, rows, [standing[i] for i in contenders], recipes.penalty)
        kept, gains = choose(problem, evidence, self.caution)
        best = contenders[kept]
        for place, one in enumerate(standing):
            note = f"stopped: not among the best {CONTENDERS} on held-out rows"
            if place in contenders[1:]:
                note = f"{gains[contenders.index(place)]} against {standing[0].trial.name}, {how}"
            elif place == 0:
                note = ""
            notes = "; ".join(filter(None, (one.trial.note, note)))
            standing[place] = replace(one, trial=replace(one.trial, chosen=place == best, note=notes))
        set_layer(model, *scaling.undo(standing[best].theta))
        shown = tuple(standing[t].trial if isinstance(t, int) else t for t in trials)
        return history, best, shown, Only(history[best]["solver"], standing[best].recipe, recipes.penalty)


def _tuned(settings: dict[str, float]) -> Recipe:
    return partial(Recipes.anchored, kappa=settings["kappa"], weight=settings["weight"])


def gather_evidence(
    problem: Problem, rows: Rows, contenders: list[Tried], penalty: LinearPenalty
) -> tuple[list[Sample], str]:
    """Scores of rows that a candidate was not fitted on: the held-out rows, and the training rows by cross-validation.

    All candidates share the penalty. The scores of each fold are shifted by the threshold of its model, so that they
    can be compared across folds.
    """
    smallest = min(len(kind) for kind in strata(rows.labels, rows.groups))
    if len(contenders) == 1 or len(rows.labels) > MOST_ROWS or smallest < 2 * FOLDS:
        return [one.held_out for one in contenders], "on held-out rows"
    fold = torch.zeros(len(rows.labels), dtype=torch.long)
    for kind in strata(rows.labels, rows.groups):
        fold[kind] = torch.arange(len(kind)) % FOLDS
    scores = [torch.zeros(len(rows.labels), dtype=torch.float64) for _ in contenders]
    for turn in range(FOLDS):
        inside, outside = rows.take(fold != turn), fold == turn
        recipes = Recipes(problem, inside, penalty)
        for place, one in enumerate(contenders):
            try:
                theta = one.recipe(recipes)
            except DivergedPrices:
                # The candidate has no evidence here: its scores in this fold all tie.
                continue
            scores[place][outside] = rows.x[outside] @ theta - _threshold(problem, inside, theta)
    found = []
    for own, one in zip(scores, contenders):
        held = one.held_out
        weights = None if held.weights is None else (held.weights / held.weights.mean()).cpu().double()
        groups = None if held.groups is None else held.groups.cpu().long()
        shifted = held.scores.cpu().double() - _threshold(problem, rows, one.theta)
        both = Rows.join([replace(rows, x=own), Rows(shifted, held.labels.cpu().double(), weights, groups)])
        found.append(both.sample(both.x))
    return found, f"cross-validated in {FOLDS} folds"


def _threshold(problem: Problem, rows: Rows, theta: Tensor) -> float:
    sample = replace(rows.sample(rows.x @ theta), n_groups=rows.n_groups)
    return float(find(problem, sample).thresholds.mean())
