"""The candidates for a network: cross-entropy to convergence, then short continuations from where it ended."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import nn

from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.solve.with_anchor import WithAnchor
from setpoint.train.batch import read_batches
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, device_of, score
from setpoint.train.trial import Trial, choose, judge, merit

#: A continuation has this share of the epochs, the first half of them before hopeless ones are stopped.
SHARE = 0.3
#: How many go on after the first half.
KEPT = 2
STRENGTHS = (1.0, 0.1)


class TrainEpochs(Protocol):
    """Train a model with a solver for some epochs, keep the best of them: the history, and which row that is."""

    def __call__(self, model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]: ...


def continuations(problem: Problem, warm: OperatingPoint, size: int, groups: int | None) -> dict[str, Any]:
    """Solvers by name, from simple to bold, each to be made when it is its turn."""
    implicit = lambda: ImplicitThreshold(problem, n_groups=groups)  # noqa: E731
    makers: dict[str, Callable[[], Solver]] = {"CrossEntropy(balanced)": lambda: CrossEntropy("balanced")}
    if isinstance(warm.threshold, float):
        # Weighted so, the 0.5 boundary of the warm start would lie at its threshold.
        ratio = math.exp(-min(max(warm.threshold, -7.0), 7.0))
        makers["CrossEntropy(matched)"] = lambda: CrossEntropy(ratio)
    for strength in STRENGTHS:
        makers[f"WithAnchor({strength:g})"] = lambda s=strength: WithAnchor(implicit(), strength=s)  # type: ignore[misc]
    makers["Lagrangian"] = lambda: WithAnchor(Lagrangian(problem, n_groups=groups))
    makers["AugmentedLagrangian"] = lambda: AugmentedLagrangian(
        CrossEntropy(), n_samples=size, problem=problem, mu=1e-3
    )
    makers["PairwiseArea"] = lambda: WithAnchor(PairwiseArea(problem))
    return makers


def fit_auto_network(
    model: nn.Module,
    problem: Problem,
    caution: float,
    tune: int,
    seed: int,
    train: Iterable[Any],
    held_out: Iterable[Any],
    train_epochs: TrainEpochs,
    *,
    epochs: int,
    calibrated: bool,
) -> tuple[History, int, tuple[Trial, ...]]:
    """Train, continue, stop the hopeless, choose; then a re-fitted head, if there are data left for the threshold."""
    started = time.perf_counter()
    history, best_row = train_epochs(model, CrossEntropy(), epochs, 0)
    warm = copy.deepcopy(model.state_dict())
    sample = score(model, held_out)
    rows_of = [best_row]
    trials = [Trial("CrossEntropy", judge(problem, sample), time.perf_counter() - started)]
    standing: list[tuple[int, dict[str, Any], Sample]] = [(0, warm, sample)]

    size, groups = _sizes(train, model, problem)
    warm_point = trials[0].point
    assert warm_point is not None
    running: list[tuple[str, Solver, dict[str, Any], float]] = []
    rung = max(1, round(SHARE * epochs / 2))
    for name, make in continuations(problem, warm_point, size, groups).items():
        started = time.perf_counter()
        try:
            running.append((name, make(), warm, 0.0))
        except BadProblem as cause:
            trials.append(Trial(name, None, time.perf_counter() - started, note=f"left out: {cause}"))
    for turn in (0, 1):
        after: list[tuple[str, Solver, dict[str, Any], float, int, Sample]] = []
        for name, solver, state, spent in running:
            started = time.perf_counter()
            model.load_state_dict(state)
            try:
                rows, best = train_epochs(model, solver, rung, len(history))
            except DivergedPrices as cause:
                trials.append(Trial(name, None, spent + time.perf_counter() - started, note=f"left out: {cause}"))
                continue
            place = len(history) + best
            history += rows
            state = copy.deepcopy(model.state_dict())
            seconds = spent + time.perf_counter() - started
            after.append((name, solver, state, seconds, place, score(model, held_out)))
        ranked = sorted(after, key=lambda one: -merit(judge(problem, one[-1])))
        goes_on = {one[0] for one in ranked[:KEPT]} if turn == 0 else set()
        running = [one[:4] for one in after if one[0] in goes_on]
        for name, _, state, seconds, place, sample in after:
            if name in goes_on:
                continue
            note = "stopped after its first half" if turn == 0 else ""
            standing.append((len(trials), state, sample))
            rows_of.append(place)
            trials.append(Trial(name, judge(problem, sample), seconds, note=note))
    points = [point for place, _, _ in standing if (point := trials[place].point) is not None]
    best = choose(problem, [sample for _, _, sample in standing], points, caution, seed)
    place, state, _ = standing[best]
    model.load_state_dict(state)
    best_row = rows_of[best]
    head = fit_proximal_head(model, problem, held_out, len(history)) if calibrated and problem.group is None else None
    if head is not None:
        history.append(head)
        kept = bool(head["kept"])
        note = "re-fitted on the held-out rows, judged on the half it did not see"
        trials.append(Trial("ProximalHead", judge(problem, score(model, held_out)), 0.0, kept, note))
        if kept:
            return history, len(history) - 1, tuple(trials)
    trials[place] = replace(trials[place], chosen=True)
    return history, best_row, tuple(trials)


def _sizes(train: Iterable[Any], model: nn.Module, problem: Problem) -> tuple[int, int | None]:
    """How many training samples there are, and how many groups if the problem compares any."""
    size, groups = 0, 0
    for batch in read_batches(train, device_of(model)):
        size += len(batch.labels)
        if batch.groups is not None and len(batch.groups):
            groups = max(groups, int(batch.groups.max()) + 1)
    return size, groups if problem.group is not None else None
