"""The candidates for a linear model, full batch: cross-entropy under several class weights, then what refines it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.train.anchored import Anchored, Ridge, read_rows, set_layer
from setpoint.train.history import History, record, score
from setpoint.train.linear import Anchor, Rows, class_weights, cross_entropy, match, refine
from setpoint.train.trial import Trial, choose, judge

#: Few, and far apart: with all of 21 weights to choose from, noise is chosen.
CLASS_WEIGHTS = (0.25, 4.0)
KAPPA = 0.25


@dataclass(frozen=True)
class Candidate:
    """A name, and how to get the parameters on standardised rows."""

    name: str
    train: Callable[[], Tensor]


def candidates(problem: Problem, rows: Rows) -> Iterator[Candidate]:
    """From simple to bold; all start where the one before them ended, or from the matched cross-entropy."""
    plain = cross_entropy(rows, class_weights(rows, 1.0))
    yield Candidate("CrossEntropy", lambda: plain)
    ratio = Ridge("balanced").ratio(rows.labels, rows.weights)
    for name, weight in (("balanced", ratio), *((f"{w:g}", w) for w in CLASS_WEIGHTS)):
        weights = class_weights(rows, weight)
        yield Candidate(f"CrossEntropy({name})", lambda weights=weights: cross_entropy(rows, weights, plain))
    start, matched = match(problem, rows)
    yield Candidate("CrossEntropy(matched)", lambda: start)
    anchor = Anchor(rows.labels, matched, torch.zeros_like(start))
    for kappa in Anchored.auto().kappas:
        name = f"Anchored({kappa:g})"
        yield Candidate(name, lambda kappa=kappa: refine(problem, rows, start, anchor, kappa))
    size, groups = len(rows.labels), rows.n_groups
    solvers = {
        "Lagrangian": lambda: Lagrangian(problem, n_groups=groups, temperature=1.0, memory=0),
        "AugmentedLagrangian": lambda: AugmentedLagrangian(CrossEntropy(), n_samples=size, problem=problem, mu=1e-3),
        "PairwiseArea": lambda: PairwiseArea(problem, memory=0),
    }
    for name, make in solvers.items():
        yield Candidate(name, lambda make=make: refine(problem, rows, start, anchor, KAPPA, make()))


def fit_auto_linear(
    model: nn.Linear,
    problem: Problem,
    caution: float,
    tune: int,
    seed: int,
    train: Iterable[Any],
    held_out: Iterable[Any],
    on_epoch: Callable[[dict[str, Any]], None] | None,
) -> tuple[History, int, tuple[Trial, ...]]:
    """Train every candidate, choose one, and give the layer its parameters."""
    rows, scaling = read_rows(train)
    if problem.group is None:
        rows = Rows(rows.x, rows.labels, rows.weights)
    seen = Sample(rows.x[:, -1], rows.labels, rows.weights, rows.groups)
    history: History = []
    trials: list[Trial] = []
    standing: list[tuple[int, Tensor, Sample]] = []
    started = time.perf_counter()
    for candidate in candidates(problem, rows):
        try:
            theta = candidate.train()
        except (BadProblem, DivergedPrices) as cause:
            trials.append(Trial(candidate.name, None, time.perf_counter() - started, note=f"left out: {cause}"))
            started = time.perf_counter()
            continue
        set_layer(model, *scaling.undo(theta))
        on_rows = Sample(rows.x @ theta, seen.labels, seen.weights, seen.groups)
        sample = score(model, held_out)
        point = judge(problem, sample)
        history.append(record(problem, len(history), candidate.name, on_rows, judge(problem, on_rows), point))
        standing.append((len(trials), theta, sample))
        trials.append(Trial(candidate.name, point, time.perf_counter() - started))
        if on_epoch is not None:
            on_epoch(history[-1])
        started = time.perf_counter()
    points = [point for place, _, _ in standing if (point := trials[place].point) is not None]
    best = choose(problem, [sample for _, _, sample in standing], points, caution, seed)
    place, theta, _ = standing[best]
    set_layer(model, *scaling.undo(theta))
    chosen = trials[place]
    trials[place] = Trial(chosen.name, chosen.point, chosen.seconds, True, chosen.note)
    return history, best, tuple(trials)
