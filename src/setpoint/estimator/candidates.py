"""Train the solver that was asked for, and plain cross-entropy beside it, on rows that are already set apart."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import nn

from setpoint.data.batch import Batches
from setpoint.data.parts import Data
from setpoint.decide.calibrate import calibrate
from setpoint.errors import BadSetting
from setpoint.estimator.features import CLIP, Scorer, Standardise
from setpoint.estimator.module import build_module, is_own
from setpoint.measure.sample import name_groups
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.run.run import run_solver
from setpoint.run.settings import SMALL, Settings
from setpoint.run.solvers import BASELINE, Case, by_steps, make_solver
from setpoint.solve.solver import Solver
from setpoint.train.default import How
from setpoint.train.history import History
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Work

AUTO = "auto"


@dataclass(frozen=True)
class Part:
    """Some of the rows: raw features, labels of 0 and 1, and weights and groups where there are any."""

    x: Any
    labels: NDArray[np.float32]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None

    @property
    def is_sparse(self) -> bool:
        return bool(scipy.sparse.issparse(self.x))

    def take(self, rows: NDArray[Any]) -> Part:
        weights = None if self.weights is None else self.weights[rows]
        return Part(self.x[rows], self.labels[rows], weights, None if self.groups is None else self.groups[rows])

    def repeated(self) -> Part:
        """Whole-number weights as that many rows each, where the table stays small: there the ridge weighs in, and
        solvers take weights by their ratios alone."""
        if self.weights is None or (self.weights % 1).any() or self.weights.sum() > SMALL:
            return self
        part = self.take(np.repeat(np.arange(len(self.labels)), self.weights.astype(np.int64)))
        return Part(part.x, part.labels, None, part.groups)

    def point(self, problem: Problem, scores: NDArray[np.float64], confidence: float | None = None) -> OperatingPoint:
        """The best cut of these rows' scores, or with `confidence` the threshold that is safe beyond them."""
        return calibrate(problem, scores, self.labels, confidence=confidence, weights=self.weights, groups=self.groups)

    def batches(self, standardise: Standardise, **how: Any) -> Batches:
        """A loader of standardised features."""
        if self.is_sparse:
            x = self.x @ scipy.sparse.diags_array(1 / standardise.spread.numpy())
            x.data = np.clip(x.data, -CLIP, CLIP)
        else:
            with torch.no_grad():
                x = standardise(torch.from_numpy(self.x)).float()
        weights = None if self.weights is None else torch.from_numpy(self.weights).float()
        groups = None if self.groups is None else name_groups(self.groups)[0]
        return Batches(x, torch.from_numpy(self.labels), weights=weights, groups=groups, **how)


@dataclass(frozen=True)
class Parts:
    """Rows to train on, to choose by, and to set the threshold on; `apart` if no row is in two of them."""

    train: Part
    held_out: Part
    calibration: Part
    apart: bool


@dataclass(frozen=True)
class Candidate:
    """A trained model with its best cut of rows that it was not trained on."""

    name: str
    scorer: Scorer
    point: OperatingPoint
    history: History
    trials: tuple[Trial, ...]
    seconds: float
    note: str

    def rows(self, chosen: bool) -> list[dict[str, Any]]:
        """What is to be shown of it: a row, or one for each of the candidates that it was itself chosen from."""
        if not self.trials:
            return [Trial(self.name, self.point, self.seconds, chosen, self.note).to_dict()]
        return [replace(trial, chosen=chosen and trial.chosen).to_dict() for trial in self.trials]


def refuse_device(device: Any) -> None:
    """A device that is not there, or that computes nothing, is refused before anything is trained."""
    try:
        float(torch.ones(1, device=device).sum())
    except (RuntimeError, AssertionError, TypeError) as cause:
        why = str(cause).partition("\n")[0][:200]
        raise BadSetting(f"device {device!r} cannot be used here ({why}); choose another, such as 'cpu'") from cause


@dataclass(frozen=True)
class Plan:
    """How to train, whatever the solver."""

    problem: Problem
    module: Any
    module_parameters: Mapping[str, Any]
    settings: Settings
    device: str
    ensemble: Any = 1

    def candidates(self, solver: Any, parts: Parts) -> list[Candidate]:
        """The solver that was asked for, which is to be run at, first; then cross-entropy unless it was in there."""
        threads = torch.get_num_threads()
        if is_own(self.module):
            # Batches of tables are small: a second thread costs more than it brings, and changes the last digits.
            torch.set_num_threads(1)
        try:
            # Both or none: rows that one alone has would pass for its merit.
            over_splits = isinstance(self.ensemble, Splits)
            if over_splits and not parts.apart:
                raise BadSetting("an ensemble over splits needs held_out and calibration rows; give both a share")
            refit = self._refits(solver) and parts.apart and not parts.train.is_sparse and not over_splits
            found = [self.train(solver, parts, refit)]
            if not found[0].trials and found[0].name != BASELINE:
                found.append(self.train(BASELINE, parts, refit))
        finally:
            torch.set_num_threads(threads)
        return found

    def train(self, solver: Any, parts: Parts, refit: bool) -> Candidate:
        """One solver from a fresh model."""
        started = time.perf_counter()
        standardise = Standardise.of(parts.train.x, parts.train.weights)
        size, epochs = self.settings.batch_size or len(parts.train.labels), self.settings.epochs or 1
        whole = size >= len(parts.train.labels)
        model = build_module(self.module, parts.train.x.shape[1], self.module_parameters, self.settings.seed)
        device = torch.device(self.device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(self.settings.seed)
            data = Data(
                parts.train.batches(standardise, batch_size=size, shuffle=not whole, seed=self.settings.seed),
                parts.held_out.batches(standardise),
                parts.calibration.batches(standardise),
            )
            chosen = self._solver(solver, whole, parts.train, isinstance(model, nn.Linear))
            how = How(epochs, refit=refit, ensemble=self.ensemble, seed=self.settings.seed)
            found = run_solver(model.to(device), self.problem, data, chosen, how, Work())
        result = found.trained
        scorer = Scorer(standardise, result.model.cpu()).eval()
        judged = parts.calibration if refit or isinstance(self.ensemble, Splits) else parts.held_out
        point = judged.point(self.problem, scorer.score(judged.x))
        note = str(result.history[result.best]["solver"])
        seconds = time.perf_counter() - started
        return Candidate(_name(solver), scorer, point, result.history, result.trials, seconds, note)

    def _refits(self, solver: Any) -> bool:
        """Whether the choice is left to us: by the default, or among linear models."""
        return isinstance(solver, str) and (solver == "default" or (solver == AUTO and self.module is None))

    def _solver(self, solver: Any, whole: bool, train: Part, linear: bool) -> Any:
        """What `fit` takes, from a name, a recipe, a solver or a function that makes one."""
        if isinstance(solver, Solver):
            return copy.deepcopy(solver)
        if not isinstance(solver, str):
            return solver(self.problem) if callable(solver) else solver
        n_groups = None if self.problem.group is None else len(name_groups(train.groups)[1])
        case = Case(self.problem, linear, whole, len(train.labels), n_groups)
        made = make_solver(solver, case)
        # Recipes for linear models would make all sparse rows dense at once.
        return by_steps(made, case) if train.is_sparse and linear and not whole else made


def _name(solver: Any) -> str:
    if isinstance(solver, str):
        return solver
    return str(getattr(solver, "__name__", type(solver).__name__))
