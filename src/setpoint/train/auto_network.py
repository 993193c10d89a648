"""Auto for a network: cross-entropy to convergence, short continuations from where it ended, then its head."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import nn

from setpoint.data.batch import read_batches
from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.solve.with_anchor import WithAnchor
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, device_of, score
from setpoint.train.trial import Trial, choose, judge, merit, strata
from setpoint.train.tune import search

#: A continuation has this share of the epochs; after the first half of them only so many go on.
SHARE, GO_ON = 0.3, 2
STRENGTHS = (1.0, 0.1)
SPACE = {"strength": (0.01, 10.0), "weight": (1 / 16, 16.0)}
#: What a trial that cannot be trained is worth.
HOPELESS = -1e6
HEAD = "the chosen one, its head re-fitted on the held-out rows and judged on the half that it did not see"


class TrainEpochs(Protocol):
    """Train a model with a solver, keep its best epoch: the history, numbered from `first`, and that epoch's row."""

    def __call__(self, model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]: ...


@dataclass(eq=False)
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

    @property
    def merit(self) -> float:
        return -math.inf if self.point is None else merit(self.point)


def continuations(
    problem: Problem, warm: OperatingPoint, size: int, groups: int | None
) -> dict[str, Callable[..., Solver]]:
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


def expected_epochs(epochs: int, tune: int) -> int:
    """About how many epochs all candidates take together: early stopping may save some."""
    others = 5 + len(STRENGTHS) + tune
    return epochs + _short(epochs) * (others + GO_ON)


def _short(epochs: int) -> int:
    return max(1, round(SHARE * epochs / 2))


class Race:
    """All candidates on one model, one after the other, and the history of all."""

    def __init__(self, model: nn.Module, problem: Problem, held_out: Iterable[Any], train_epochs: TrainEpochs) -> None:
        self.model, self.problem, self.held_out, self.train_epochs = model, problem, held_out, train_epochs
        self.history: History = []

    def run(self, one: Candidate, epochs: int) -> None:
        """Train on from where the candidate is, and keep the better end; one that fails from the start has no point."""
        started = time.perf_counter()
        self.model.load_state_dict(one.state)
        try:
            one.solver = one.solver or one.make()
            rows, best = self.train_epochs(self.model, one.solver, epochs, len(self.history))
        except (BadProblem, DivergedPrices) as cause:
            one.note = f"{'left out' if one.point is None else 'stopped'}: {cause}"
        else:
            row = len(self.history) + best
            self.history.extend({**each, "candidate": one.name} for each in rows)
            sample = score(self.model, self.held_out)
            point = judge(self.problem, sample)
            if one.point is None or merit(point) >= one.merit:
                one.state, one.sample, one.point = copy.deepcopy(self.model.state_dict()), sample, point
                one.row = row
        one.seconds += time.perf_counter() - started

    def tuned(self, warm: Candidate, make: Callable[..., Solver], epochs: int, trials: int, seed: int) -> Candidate:
        """The best of several trials, judged on every other held-out row: the rest can speak against it."""
        assert warm.sample is not None
        rows = torch.cat([kind[::2] for kind in strata(warm.sample.labels, warm.sample.groups)])
        tried: dict[str, Candidate] = {}

        def name(settings: dict[str, float]) -> str:
            return f"Tuned({', '.join(f'{key}={value:.3g}' for key, value in settings.items())})"

        def try_once(settings: dict[str, float]) -> float:
            one = tried[name(settings)] = Candidate(name(settings), lambda: make(**settings), warm.state)
            self.run(one, epochs)
            return HOPELESS if one.sample is None else merit(judge(self.problem, one.sample, rows))

        best = tried[name(search(try_once, SPACE, trials, seed))]
        spent = sum(one.seconds for one in tried.values())
        best.note = "; ".join(filter(None, (best.note, f"the best of {trials} trials, found in {spent:.1f} s")))
        return best

    def refit_head(self) -> Trial | None:
        """The model as it is, with another head if that helps."""
        started = time.perf_counter()
        row = fit_proximal_head(self.model, self.problem, self.held_out, len(self.history))
        if row is None:
            return None
        self.history.append({**row, "candidate": "ProximalHead"})
        if not row["kept"]:
            note = "left out: no better on the half of the held-out rows that it did not see"
            return Trial("ProximalHead", None, time.perf_counter() - started, note=note)
        point = judge(self.problem, score(self.model, self.held_out))
        return Trial("ProximalHead", point, time.perf_counter() - started, True, HEAD)


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
    processes: Processes = ALONE,
) -> tuple[History, int, tuple[Trial, ...]]:
    """Train, continue, stop the hopeless, choose; then the head, if there are other data to set the threshold on."""
    race = Race(model, problem, held_out, train_epochs)
    plain = Candidate("CrossEntropy", CrossEntropy, copy.deepcopy(model.state_dict()))
    race.run(plain, epochs)
    assert plain.point is not None
    size, groups = _sizes(train, model, problem, processes)
    makers = continuations(problem, plain.point, size, groups)
    anchored = makers.pop("Tuned")
    short = _short(epochs)
    tried = [Candidate(name, make, plain.state) for name, make in makers.items()]
    for one in tried:
        race.run(one, short)
    if tune:
        tried.append(race.tuned(plain, anchored, short, tune, seed))
    alive = [one for one in tried if one.point is not None]
    hopeful = sorted(alive, key=lambda one: -one.merit)[:GO_ON]
    for one in hopeful:
        race.run(one, short)
    samples = [one.sample for one in (plain, *alive) if one.sample is not None]
    kept, gains = choose(problem, samples, caution)
    for one, gain in zip(alive, gains[1:]):
        notes = (one.note, f"{gain} against CrossEntropy", "" if one in hopeful else "stopped after its first half")
        one.note = "; ".join(filter(None, notes))
    chosen = (plain, *alive)[kept]
    model.load_state_dict(chosen.state)
    comparison = [Trial(one.name, one.point, one.seconds, one is chosen, one.note) for one in (plain, *tried)]
    head = race.refit_head() if calibrated and problem.group is None else None
    if head is None:
        return race.history, chosen.row, tuple(comparison)
    if not head.chosen:
        return race.history, chosen.row, (*comparison, head)
    return race.history, len(race.history) - 1, (*(replace(one, chosen=False) for one in comparison), head)


def _sizes(train: Iterable[Any], model: nn.Module, problem: Problem, processes: Processes) -> tuple[int, int | None]:
    """How many training samples there are, and how many groups if the problem compares any."""
    size, groups = 0, 0
    for batch in read_batches(train, device_of(model)):
        size += len(batch.labels)
        if batch.groups is not None and len(batch.groups):
            groups = max(groups, int(batch.groups.max()) + 1)
    size = int(processes.sum(torch.tensor(size)))
    groups = int(processes.largest(float(groups))[0])
    return size, groups if problem.group is not None else None
