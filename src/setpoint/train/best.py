"""The best of all recipes for a linear model: what `Auto` does there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.parts import Data
from setpoint.decide.cut import find
from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.train.full_batch import FullBatch, linear_layer, read_rows, set_layer
from setpoint.train.history import History, record, score
from setpoint.train.linear import Rows
from setpoint.train.method import Trained
from setpoint.train.recipes import RECIPES, Only, Recipe, Recipes, Ridge
from setpoint.train.together import every_batch
from setpoint.train.trial import Trial, choose, judge, merit, strata
from setpoint.train.tune import search
from setpoint.train.work import Work

#: Beside cross-entropy, so many of the best on held-out rows are cross-validated, in so many folds.
CONTENDERS, FOLDS = 3, 3
#: Beyond so many training rows the held-out ones are enough.
MOST_ROWS = 50_000
SPACE = {"kappa": (1 / 64, 16.0), "weight": (1 / 16, 16.0)}


@dataclass(frozen=True)
class Standing:
    """A candidate that was trained: its recipe, its parameters, its scores on held-out rows and its trial."""

    recipe: Recipe
    theta: Tensor
    held_out: Sample
    point: OperatingPoint
    trial: Trial


@dataclass(frozen=True)
class Best:
    """Every recipe for a linear model, full batch; the most promising again in cross-validation, then the choice.

    Plain cross-entropy is kept unless another candidate is better by more than `caution` standard errors.
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
        """Why this cannot be trained, if so, as for one recipe."""
        return FullBatch(self.make, Ridge()).refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train every candidate, choose one, and give the layer its parameters."""
        work.once("begun", lambda: True)
        model = linear_layer(self.make(), self)
        train = every_batch(data.train, work.processes)
        held_out = every_batch(data.held_out, work.processes)
        history, best, trials, recipe = self._choose(model, problem, train, held_out, work)
        settled = FullBatch(self.make, Only(history[best]["solver"], recipe))
        return Trained(model, history, best, settled, trials)

    def _choose(
        self, model: nn.Linear, problem: Problem, train: Iterable[Any], held_out: Iterable[Any], work: Work
    ) -> tuple[History, int, tuple[Trial, ...], Recipe]:
        own, scaling = read_rows([train], model)
        recipes = Recipes(problem, own if problem.group is not None else replace(own, groups=None))
        rows = recipes.rows
        history: History = []
        trials: list[Trial | int] = []
        standing: list[Standing] = []

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
            seen = Sample(rows.x @ theta, rows.labels, rows.weights, rows.groups)
            history.append(record(problem, len(history), name, seen, judge(problem, seen), point))
            trials.append(len(standing))
            trial = Trial(name, point, time.perf_counter() - started, note=note)
            standing.append(Standing(recipe, theta, sample, point, trial))
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

        # Hopeless ones go no further than the held-out rows.
        order = sorted(range(1, len(standing)), key=lambda i: -merit(standing[i].point))
        tuned = {len(standing) - 1} if self.tune else set()
        contenders = [0, *sorted({*order[:CONTENDERS], *tuned})]
        evidence, how = gather_evidence(problem, rows, [standing[i] for i in contenders])
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
        return history, best, shown, standing[best].recipe


def _tuned(settings: dict[str, float]) -> Recipe:
    return partial(Recipes.anchored, kappa=settings["kappa"], weight=settings["weight"])


def gather_evidence(problem: Problem, rows: Rows, contenders: list[Standing]) -> tuple[list[Sample], str]:
    """Scores of rows that a candidate was not fitted on: held-out ones, and each training row by a fold without it.

    Models of different folds are put on one scale by the threshold that each has on its own training rows.
    """
    smallest = min(len(kind) for kind in strata(rows.labels, rows.groups))
    if len(contenders) == 1 or len(rows.labels) > MOST_ROWS or smallest < 2 * FOLDS:
        return [one.held_out for one in contenders], "on held-out rows"
    fold = torch.zeros(len(rows.labels), dtype=torch.long)
    for kind in strata(rows.labels, rows.groups):
        fold[kind] = torch.arange(len(kind)) % FOLDS
    scores = [torch.zeros(len(rows.labels), dtype=torch.float64) for _ in contenders]
    for turn in range(FOLDS):
        inside, outside = _take(rows, fold != turn), fold == turn
        recipes = Recipes(problem, inside)
        for place, one in enumerate(contenders):
            try:
                theta = one.recipe(recipes)
            except DivergedPrices:
                # No evidence for it: all scores of this fold tie.
                continue
            scores[place][outside] = rows.x[outside] @ theta - _threshold(problem, inside, theta)
    found = []
    for own, one in zip(scores, contenders):
        held = one.held_out
        weights = torch.ones(len(held.labels)) if held.weights is None else held.weights / held.weights.mean()
        groups = None
        if rows.groups is not None and held.groups is not None:
            groups = torch.cat([rows.groups, held.groups.cpu().long()])
        pooled = torch.cat([own, held.scores.cpu().double() - _threshold(problem, rows, one.theta)])
        labels = torch.cat([rows.labels, held.labels.cpu().double()])
        found.append(Sample(pooled, labels, torch.cat([rows.weights, weights.cpu().double()]), groups))
    return found, f"cross-validated in {FOLDS} folds"


def _take(rows: Rows, kept: Tensor) -> Rows:
    groups = None if rows.groups is None else rows.groups[kept]
    return Rows(rows.x[kept], rows.labels[kept], rows.weights[kept], groups)


def _threshold(problem: Problem, rows: Rows, theta: Tensor) -> float:
    sample = Sample(rows.x @ theta, rows.labels, rows.weights, rows.groups, rows.n_groups)
    return float(find(problem, sample).thresholds.mean())
