"""The best of several solvers for a network: `Auto` for networks."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from setpoint.data.parts import Data
from setpoint.data.rows import read_batches
from setpoint.data.split import every_other, strata
from setpoint.decide.order import merit
from setpoint.errors import BadProblem, DivergedPrices
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.solve.with_anchor import WithAnchor
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, device_of, score
from setpoint.train.identity import identity_of
from setpoint.train.method import Trained
from setpoint.train.together import every_batch
from setpoint.train.trial import Trial, choose, judge
from setpoint.train.tune import search
from setpoint.train.work import Work

#: The share of the epochs that a continuation has, and the number of continuations that go on after half of that.
SHARE, GO_ON = 0.3, 2
STRENGTHS = (1.0, 0.1)
SPACE = {"strength": (0.01, 10.0), "weight": (1 / 16, 16.0)}
#: The merit of a trial that cannot be trained.
HOPELESS = -1e6
HEAD = "the chosen one, its head re-fitted on the held-out rows and judged on the half that it did not see"


@dataclass(eq=False)
class Candidate:
    """A solver in the race: the parameters so far, their scores on the held-out rows, and the best row of history."""

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
    """Functions that make the solvers, by name, from simple to bold."""

    def matched() -> Solver:
        threshold = warm.thresholds.single
        if threshold is None or not problem.constraints:
            raise BadProblem(f"'{problem}' has no single threshold to match")
        # With this weight the boundary at a probability of 0.5 lies at the threshold of the warm start.
        return CrossEntropy(math.exp(-min(max(threshold, -7.0), 7.0)))

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


def _short(epochs: int) -> int:
    return max(1, round(SHARE * epochs / 2))


class _Course:
    """Trains all candidates on one model, one after the other, and keeps their joint history."""

    def __init__(self, model: nn.Module, problem: Problem, data: Data, training: ByEpochs, work: Work) -> None:
        self.model, self.problem, self.data, self.training, self.work = model, problem, data, training, work
        self.history: History = []

    def _train(self, solver: Solver, epochs: int) -> tuple[History, int]:
        """Continue training the model and keep its best epoch; give the rows of history and the best of them."""
        first = len(self.history)

        def tell(row: dict[str, Any]) -> None:
            row["epoch"] += first
            self.work.tell(row)

        one = replace(
            self.training, make=lambda: self.model, solver=solver, epochs=epochs, warm_start=0.0,
            patience=self.training.patience or max(5, epochs // 4),
        )  # fmt: skip
        part = self.work.part(f"from-{first}", tell=tell, trial=identity_of(solver))
        trained = one.train(self.problem, self.data, part)
        return trained.history, trained.best

    def run(self, one: Candidate, epochs: int) -> None:
        """Continue training a candidate, and keep the result if it is better; a candidate that fails has no point."""
        started = time.perf_counter()
        self.model.load_state_dict(one.state)
        try:
            one.solver = one.solver or one.make()
            rows, best = self._train(one.solver, epochs)
        except (BadProblem, DivergedPrices) as cause:
            one.note = f"{'left out' if one.point is None else 'stopped'}: {cause}"
        else:
            row = len(self.history) + best
            self.history.extend({**each, "candidate": one.name} for each in rows)
            sample = score(self.model, self.data.held_out)
            point = judge(self.problem, sample)
            if one.point is None or merit(point) >= one.merit:
                one.state, one.sample, one.point = copy.deepcopy(self.model.state_dict()), sample, point
                one.row = row
        one.seconds += time.perf_counter() - started

    def tuned(self, warm: Candidate, make: Callable[..., Solver], epochs: int, trials: int, seed: int) -> Candidate:
        """The best of several trials on every other held-out row; the other rows stay unused, to judge it later."""
        assert warm.sample is not None
        rows = every_other(strata(warm.sample.labels, warm.sample.groups), 0)
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
        """Re-fit the last layer of the model, if that helps."""
        started = time.perf_counter()
        row = fit_proximal_head(self.model, self.problem, self.data.held_out, len(self.history))
        if row is None:
            return None
        self.history.append({**row, "candidate": "ProximalHead"})
        if not row["kept"]:
            note = "left out: no better on the half of the held-out rows that it did not see"
            return Trial("ProximalHead", None, time.perf_counter() - started, note=note)
        point = judge(self.problem, score(self.model, self.data.held_out))
        return Trial("ProximalHead", point, time.perf_counter() - started, True, HEAD)


@dataclass(frozen=True)
class Race:
    """Train a network by cross-entropy and by short continuations with other solvers, and keep one.

    The continuations start from the best epoch of cross-entropy; only the most promising are trained to the end. Plain
    cross-entropy is kept unless another candidate is better by more than `caution` standard errors on the held-out
    rows. With calibration rows, the last layer of the chosen network is re-fitted on the held-out rows, if that helps.

    Args:
        training: How each candidate is trained; its solver is replaced.
        caution: The number of standard errors by which another candidate must be better.
        tune: The number of trials by optuna, the best of which is one more candidate.
        seed: The seed of these trials.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> training = sp.methods.ByEpochs(lambda: model, sp.CrossEntropy(), epochs=2)
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.Race(training, caution=1.5), calibration=rest)
        >>> [trial.name for trial in result.comparison][:3]
        ['CrossEntropy', 'CrossEntropy(balanced)', 'CrossEntropy(matched)']
    """

    training: ByEpochs
    caution: float
    tune: int = 0
    seed: int = 0

    @property
    def expected_rows(self) -> int:
        """The epochs of all candidates together; early stopping may save some."""
        others = 5 + len(STRENGTHS) + self.tune
        return self.training.epochs + _short(self.training.epochs) * (others + GO_ON)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one solver cannot train, or None."""
        return self.training.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train cross-entropy, continue by other solvers, choose one, and re-fit its last layer."""
        work.once("begun", lambda: True)
        model = self.training.make()
        data = replace(data, held_out=every_batch(data.held_out, work.processes))
        course = _Course(model, problem, data, self.training, work)
        plain = Candidate("CrossEntropy", CrossEntropy, copy.deepcopy(model.state_dict()))
        course.run(plain, self.training.epochs)
        assert plain.point is not None
        size, groups = _sizes(data.train, model, problem, work.processes)
        makers = continuations(problem, plain.point, size, groups)
        anchored = makers.pop("Tuned")
        short = _short(self.training.epochs)
        tried = [Candidate(name, make, plain.state) for name, make in makers.items()]
        for one in tried:
            course.run(one, short)
        if self.tune:
            tried.append(course.tuned(plain, anchored, short, self.tune, self.seed))
        alive = [one for one in tried if one.point is not None]
        hopeful = sorted(alive, key=lambda one: -one.merit)[:GO_ON]
        for one in hopeful:
            course.run(one, short)
        samples = [one.sample for one in (plain, *alive) if one.sample is not None]
        kept, gains = choose(problem, samples, self.caution)
        for one, gain in zip(alive, gains[1:]):
            notes = (one.note, f"{gain} against CrossEntropy", "" if one in hopeful else "stopped after its first half")
            one.note = "; ".join(filter(None, notes))
        chosen = (plain, *alive)[kept]
        model.load_state_dict(chosen.state)
        comparison = [Trial(one.name, one.point, one.seconds, one is chosen, one.note) for one in (plain, *tried)]
        head = course.refit_head() if data.calibration is not None and problem.group is None else None
        row = chosen.row
        if head is not None and head.chosen:
            comparison, row = [replace(one, chosen=False) for one in comparison], len(course.history) - 1
        trials = (*comparison, *([] if head is None else [head]))
        return Trained(model, course.history, row, self, trials)


def _sizes(train: Iterable[Any], model: nn.Module, problem: Problem, processes: Processes) -> tuple[int, int | None]:
    """The number of training rows, and the number of groups if the problem compares groups."""
    size, groups = 0, 0
    for batch in read_batches(train, device_of(model)):
        size += len(batch.labels)
        if batch.groups is not None and len(batch.groups):
            groups = max(groups, int(batch.groups.max()) + 1)
    size = int(processes.sum(torch.tensor(size)))
    groups = int(processes.largest(float(groups))[0])
    return size, groups if problem.group is not None else None
