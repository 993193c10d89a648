"""Auto for a network: cross-entropy to convergence, short continuations from where it ended, then its head."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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
from setpoint.train.trial import Trial, choose, judge, merit, strata
from setpoint.train.tune import search

#: A continuation has this share of the epochs; after the first half of them only so many go on.
SHARE, GO_ON = 0.3, 2
STRENGTHS = (1.0, 0.1)
SPACE = {"strength": (0.01, 10.0), "weight": (1 / 16, 16.0)}
HEAD = "the chosen one, its head re-fitted on the held-out rows and judged on the half that it did not see"


class TrainEpochs(Protocol):
    """Train a model with a solver, keep its best epoch: the history, numbered from `first`, and that epoch's row."""

    def __call__(self, model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]: ...


@dataclass
class Candidate:
    """A solver on its way: the parameters it has led to, its scores on held-out rows, and the best row of history."""

    name: str
    make: Callable[[], Solver]
    state: dict[str, Any]
    note: str = ""
    seconds: float = 0.0
    row: int = 0
    sample: Sample | None = None
    point: OperatingPoint | None = None
    solver: Solver | None = field(default=None, repr=False)


def continuations(problem: Problem, warm: OperatingPoint, size: int, groups: int | None) -> dict[str, Any]:
    """Solvers by name, from simple to bold, each to be made when it is its turn."""

    def matched() -> Solver:
        if not isinstance(warm.threshold, float) or not problem.constraints:
            raise BadProblem(f"'{problem}' has no single threshold to match")
        # Weighted so, the 0.5 boundary would lie where the threshold of the warm start lies.
        return CrossEntropy(math.exp(-min(max(warm.threshold, -7.0), 7.0)))

    def anchored(strength: float, weight: float = 1.0) -> Solver:
        implicit = ImplicitThreshold(problem, n_groups=groups)
        return WithAnchor(implicit, CrossEntropy(weight), strength=strength)

    return {
        "CrossEntropy(balanced)": lambda: CrossEntropy("balanced"),
        "CrossEntropy(matched)": matched,
        **{f"WithAnchor({s:g})": lambda s=s: anchored(s) for s in STRENGTHS},
        "Lagrangian": lambda: WithAnchor(Lagrangian(problem, n_groups=groups)),
        "AugmentedLagrangian": lambda: AugmentedLagrangian(CrossEntropy(), n_samples=size, problem=problem, mu=1e-3),
        "PairwiseArea": lambda: WithAnchor(PairwiseArea(problem)),
        "Tuned": anchored,
    }


def fit_auto_network(
    model: nn.Module,
    problem: Problem,
    train: Iterable[Any],
    held_out: Iterable[Any],
    train_epochs: TrainEpochs,
    *,
    epochs: int,
    calibrated: bool,
    caution: float,
    tune: int,
    seed: int,
) -> tuple[History, int, tuple[Trial, ...]]:
    """Train, continue, stop the hopeless, choose; then the head, if there are other data to set the threshold on."""
    history: History = []

    def run(one: Candidate, epochs: int) -> None:
        """Train on from where the candidate is; one that cannot be trained has no sample and a note."""
        started = time.perf_counter()
        model.load_state_dict(one.state)
        try:
            one.solver = one.solver or one.make()
            rows, best = train_epochs(model, one.solver, epochs, len(history))
        except (BadProblem, DivergedPrices) as cause:
            one.sample, one.note = None, f"left out: {cause}"
        else:
            one.row = len(history) + best
            history.extend({**row, "candidate": one.name} for row in rows)
            one.state, one.sample = copy.deepcopy(model.state_dict()), score(model, held_out)
            one.point = judge(problem, one.sample)
        one.seconds += time.perf_counter() - started

    plain = Candidate("CrossEntropy", CrossEntropy, copy.deepcopy(model.state_dict()))
    run(plain, epochs)
    assert plain.sample is not None
    assert plain.point is not None
    size, groups = _sizes(train, model, problem)
    makers = continuations(problem, plain.point, size, groups)
    anchored = makers.pop("Tuned")
    tried = [Candidate(name, make, plain.state) for name, make in makers.items()]
    short = max(1, round(SHARE * epochs / 2))
    for one in tried:
        run(one, short)
    if tune:
        # Trials are judged on every other held-out row, so that the rest can speak against the best of them.
        judged = [part for kind in strata(plain.sample.labels, plain.sample.groups) for part in kind[::2].tolist()]
        trials: list[Candidate] = []

        def try_once(settings: dict[str, float]) -> float:
            name = f"Tuned({', '.join(f'{key}={value:.3g}' for key, value in settings.items())})"
            trials.append(Candidate(name, lambda: anchored(**settings), plain.state))
            run(trials[-1], short)
            sample = trials[-1].sample
            return (
                -math.inf if sample is None else merit(judge(problem, sample, sample.labels.new_tensor(judged).long()))
            )

        found = search(try_once, SPACE, tune, seed)
        name = f"Tuned({', '.join(f'{key}={value:.3g}' for key, value in found.items())})"
        best_trial = next(one for one in trials if one.name == name)
        best_trial.note = f"the best of {tune} trials, found in {sum(one.seconds for one in trials):.1f} s"
        tried.append(best_trial)
    alive = [one for one in tried if one.sample is not None]
    hopeful = sorted(alive, key=lambda one: -_merit(one))[:GO_ON]
    for one in hopeful:
        before = replace(one)
        run(one, short)
        if one.sample is None or _merit(one) < _merit(before):
            one.state, one.sample, one.point, one.row = before.state, before.sample, before.point, before.row
    samples = [one.sample for one in (plain, *alive) if one.sample is not None]
    kept, gains = choose(problem, samples, caution)
    for one, gain in zip(alive, gains[1:]):
        notes = (one.note, f"{gain} against CrossEntropy", "" if one in hopeful else "stopped after its first half")
        one.note = "; ".join(filter(None, notes))
    chosen = (plain, *alive)[kept]
    model.load_state_dict(chosen.state)
    comparison = [Trial(one.name, one.point, one.seconds, one is chosen, one.note) for one in (plain, *tried)]
    best = chosen.row
    if calibrated and problem.group is None:
        started = time.perf_counter()
        head = fit_proximal_head(model, problem, held_out, len(history))
        if head is not None:
            if head["kept"]:
                best = len(history)
                comparison = [replace(one, chosen=False) for one in comparison]
            history.append({**head, "candidate": "ProximalHead"})
            point = judge(problem, score(model, held_out)) if head["kept"] else chosen.point
            note = HEAD if head["kept"] else "left out: no better on the half of the held-out rows that it did not see"
            comparison.append(
                Trial(
                    "ProximalHead", point if head["kept"] else None, time.perf_counter() - started, head["kept"], note
                )
            )
    return history, best, tuple(comparison)


def _merit(one: Candidate) -> float:
    return -math.inf if one.point is None else merit(one.point)


def _sizes(train: Iterable[Any], model: nn.Module, problem: Problem) -> tuple[int, int | None]:
    """How many training samples there are, and how many groups if the problem compares any."""
    size, groups = 0, 0
    for batch in read_batches(train, device_of(model)):
        size += len(batch.labels)
        if batch.groups is not None and len(batch.groups):
            groups = max(groups, int(batch.groups.max()) + 1)
    return size, groups if problem.group is not None else None
