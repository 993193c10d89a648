"""Which method trains what: solvers by name, the defaults with their reasons, and the method that each comes down to.

The defaults are those that the studies of linear models and of networks confirmed (`benchmarks`). Every door reads them
here: `sp.fit`, the command line, `setpoint explain`, the estimator.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from setpoint.data.parts import Data
from setpoint.errors import BadSetting, NotEnoughMemory
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.program import program_for
from setpoint.solve.sample_prices import ByArea, Growth
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.average import can_be_averaged
from setpoint.train.best import Best
from setpoint.train.best_of import BestOf
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.ensemble import Ensembled
from setpoint.train.full_batch import IN_BATCHES, FullBatch
from setpoint.train.head import Head
from setpoint.train.identity import work_identity
from setpoint.train.lean import lean_weight
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.on_first import OnFirst
from setpoint.train.race import Race
from setpoint.train.recipes import Anchored, ClassWeights, Ridge, is_linear
from setpoint.train.refit import Refit
from setpoint.train.splits import Seeds, Splits
from setpoint.train.start import InPlace
from setpoint.train.together import averages_itself, share_state
from setpoint.train.tune import check_optuna
from setpoint.train.work import Work

BASELINE = "cross-entropy"
#: Cross-entropy under the best of several class weights: a name for comparisons.
TUNED = "tuned"
#: What can be named as a way to train. None leaves the choice to the library, several are tried in turn until one
#: does not refuse the data.
Choice = Solver | Anchored | Ridge | ClassWeights | Auto | Method | tuple[Solver | Ridge | Auto, ...] | None


@dataclass(frozen=True)
class Case:
    """The circumstances for which a solver is made from its name.

    Args:
        problem: The problem to solve.
        linear: Whether the model is linear, so that recipes can train it.
        whole: Whether all training rows come in one batch.
        rows: The number of training rows.
        n_groups: The number of groups, where groups are compared.
        tune: The number of trials that `Auto` adds by optuna.
        seed: The seed of these trials.
    """

    problem: Problem
    linear: bool = False
    whole: bool = False
    rows: int = 1
    n_groups: int | None = None
    tune: int = 0
    seed: int = 0

    @property
    def memory(self) -> int | None:
        """The memory of solvers: none if a batch holds all rows, else as the solver chooses."""
        return 0 if self.whole else None

    def entropy(self, weight: Literal["balanced"] | None = None) -> Choice:
        """Cross-entropy; for linear models to convergence, if the data allow it."""
        return (Ridge(weight), CrossEntropy(weight)) if self.linear else CrossEntropy(weight)

    def auto(self) -> Auto:
        """All candidates, and the choice among them."""
        return Auto(tune=self.tune, seed=self.seed)

    def implicit(self) -> Solver:
        """Implicit thresholds."""
        return ImplicitThreshold(self.problem, n_groups=self.n_groups, memory=self.memory)

    def augmented(self, growth: Growth) -> Solver:
        """The augmented Lagrangian over cross-entropy."""
        return AugmentedLagrangian(CrossEntropy(), n_samples=self.rows, problem=self.problem, mu=1e-3, growth=growth)


#: What `--solver` and `SetpointClassifier(solver=...)` take.
SOLVERS: dict[str, Callable[[Case], Choice]] = {
    "default": lambda case: None,
    "auto": lambda case: (case.auto(), case.implicit()) if case.linear else case.auto(),
    "implicit": lambda case: case.implicit(),
    "lagrangian": lambda case: Lagrangian(case.problem, n_groups=case.n_groups, memory=case.memory),
    "augmented": lambda case: case.augmented(Growth()),
    "augmented-auc": lambda case: case.augmented(Growth(metric=ByArea())),
    "pairwise": lambda case: PairwiseArea(case.problem, memory=case.memory),
    "program": lambda case: program_for(case.problem),
    "weighted": lambda case: case.entropy("balanced"),
    BASELINE: lambda case: case.entropy(),
}


def make_solver(name: str, case: Case) -> Choice:
    """The solver of that name for that case."""
    return ClassWeights() if name == TUNED else SOLVERS[check_solver(name)](case)


def check_solver(name: str) -> str:
    """The name, if there is a solver of that name."""
    if name not in SOLVERS:
        raise BadSetting(f"solver {name!r} is none of {', '.join(SOLVERS)}")
    return name


@dataclass(frozen=True)
class How:
    """The settings of a training, for any solver. A method ignores settings that it does not need.

    Args:
        epochs: The largest number of passes over the training rows.
        warm_start: The share of the epochs in which balanced cross-entropy comes before the solver.
        patience: Stop after this many epochs without a better one.
        optimizer: Makes the optimizer from the parameters; None is Adam on a cosine schedule.
        accumulate: The number of batches that count as one.
        refit: Retrain on training and held-out rows together; None does so where the library chooses the solver.
        ensemble: The number of members with different seeds, or `Splits(k)` for members on different splits too.
        seed: The seed of the first member.
    """

    epochs: int = 30
    warm_start: float = 0.3
    patience: int | None = None
    optimizer: OptimizerMaker | None = None
    accumulate: int = 1
    refit: bool | None = None
    ensemble: int | Splits = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or not 0 <= self.warm_start <= 1 or (self.patience is not None and self.patience < 1):
            raise BadSetting(
                f"fit needs epochs >= 1, a warm_start share of 0 to 1 and patience >= 1 or None, "
                f"got {self.epochs}, {self.warm_start} and {self.patience}"
            )
        if isinstance(self.accumulate, bool) or not isinstance(self.accumulate, int) or self.accumulate < 1:
            raise BadSetting(
                f"accumulate is the number of batches that count as one, from 1 up, got {self.accumulate!r}"
            )

    @property
    def made_of(self) -> Seeds:
        """The members of the ensemble; one member is the model itself."""
        return self.ensemble if isinstance(self.ensemble, Splits) else Seeds(self.ensemble)


@dataclass(frozen=True)
class Chosen:
    """The method that was chosen for a model and data.

    Args:
        method: The method.
        solver: The solver, recipe or method that was named, or chosen by default.
        model: The model to train. None if the method makes its own.
        how: The settings of the training.
        instead: The reason why the first choice refused the data, if it did.
    """

    method: Method
    solver: Choice
    model: nn.Module | None
    how: How
    instead: str = ""

    @property
    def expected_rows(self) -> int:
        """About how many rows of history there will be."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """None: the method was asked when it was chosen."""
        return None

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train by the method, from the parameters of the first process; a store of other work is refused."""
        if work.store.is_on:
            own = work_identity(self.model, self.solver, problem, data, self.how, work.processes)
            work.identity = {**work.identity, **own}
        if self.model is not None:
            share_state(self.model, work.processes, parameters=True)
        return self.method.train(problem, data, work)


def default_choices(model: nn.Module | None, problem: Problem, whole: bool) -> list[Choice]:
    """The default for a model and a problem, then what stands in for it where the data refuse it.

    What has been measured to work: for linear models the anchored recipe; where groups are compared, converged
    cross-entropy, which nothing did better than; for networks cross-entropy, see `lean_weight`. A recipe that needs all
    rows in memory is replaced by training in batches.
    """
    if model is None or not is_linear(model):
        return [CrossEntropy(lean_weight(problem))]
    if problem.group is None:
        return [Anchored(), ImplicitThreshold(problem, memory=0 if whole else None)]
    return [Ridge(), CrossEntropy()]


def method_for(
    model: nn.Module | None, problem: Problem, choice: Choice, how: How, data: Data, processes: Processes
) -> Chosen:
    """The method that trains the model as was chosen, or the next that does not refuse the data.

    Without calibration rows, to set the threshold on, held-out rows are never trained on.

    Raises:
        BadSetting: The settings do not go together.
        NotEnoughMemory: The method refuses the data, and there is none to stand in for it.
    """
    refusals: list[str] = []
    in_turn = default_choices(model, problem, data.comes_whole) if choice is None else _in_turn(choice)
    for each in in_turn:
        # What stands in is a choice like any other, and is trained once.
        named, own = (each, replace(how, refit=False)) if refusals else (None if choice is None else each, how)
        method = _method(model, problem, named, each, own, data)
        if not processes.alone and data.is_on_each and model is not None and not isinstance(each, Solver):
            method = OnFirst(method)
        why = method.refuses(problem, data)
        if not processes.alone:
            # All processes train by the same method: one that cannot speaks for all.
            why = next(filter(None, processes.all_objects(why)), None)
        if why is None:
            return Chosen(method, each, model, how, refusals[0] if refusals else "")
        refusals.append(why)
    raise NotEnoughMemory(f"{refusals[0]}; {IN_BATCHES}")


def _method(model: nn.Module | None, problem: Problem, named: Choice, choice: Any, how: How, data: Data) -> Method:
    """The method for a choice, trained again or in several copies where the settings say so.

    `named` is None where the choice was left to the library.
    """
    made_of, refit, calibrated = how.made_of, how.refit, data.calibration is not None
    if isinstance(made_of, Splits):
        if not calibrated or refit:
            lacking = "no refit, which trains every member on all rows" if refit else "calibration= data"
            raise BadSetting(f"an ensemble over splits trains on the held-out rows too, so it takes {lacking}")
        refit = False
    if model is None or is_method(choice):
        if not is_method(choice) or made_of != Seeds(1):
            raise BadSetting("without a model there is nothing to train by a solver or in several copies; pass a model")
        return Refit(choice) if refit else choice
    by_us, again = named is None, refits(refit, model, named, calibrated)
    if isinstance(choice, Auto) and choice.tune:
        check_optuna()

    def one(make: Callable[[], nn.Module], own: Any) -> Method:
        method = _plain_method(make, own, how, linear=is_linear(model), by_us=by_us, again=again)
        if again and not isinstance(method, Race):
            return Refit(method, required=refit is not None)
        head = by_us and calibrated and problem.group is None and isinstance(method, ByEpochs)
        return Head(method) if head else method

    if made_of == Seeds(1):
        return one(InPlace(model), choice)
    if isinstance(choice, ImplicitLastLayer):
        raise BadSetting("ImplicitLastLayer belongs to one model's head; train the members of an ensemble by hand")
    return Ensembled(lambda make: one(make, copy.deepcopy(choice)), model, made_of, how.seed)


def is_method(choice: Any) -> bool:
    """Whether a choice is a method by itself, not a solver, a recipe or a name."""
    return hasattr(choice, "refuses") and hasattr(choice, "train") and not isinstance(choice, nn.Module)


def _plain_method(
    make: Callable[[], nn.Module], choice: Any, how: How, *, linear: bool, by_us: bool, again: bool
) -> Method:
    """The method for a choice by itself, before anything is trained again."""
    if isinstance(choice, ClassWeights) and not linear:
        by_weight = {f"weight-{w:g}": CrossEntropy(w) for w in choice.weights}
        each = {n: _plain_method(make, s, how, linear=False, by_us=by_us, again=again) for n, s in by_weight.items()}
        return BestOf(each)
    if isinstance(choice, Anchored | Ridge | ClassWeights):
        return FullBatch(make, choice)
    if isinstance(choice, Auto) and linear:
        return Best(make, choice.caution, choice.tune, choice.seed)
    patience = how.patience or (max(5, how.epochs // 4) if by_us else None)
    training = ByEpochs(
        make, CrossEntropy() if isinstance(choice, Auto) else choice, how.epochs, how.warm_start, patience,
        how.optimizer, how.accumulate, by_loss=by_us or again, averaged=again,
    )  # fmt: skip
    return Race(training, choice.caution, choice.tune, choice.seed) if isinstance(choice, Auto) else training


def _in_turn(choice: Choice) -> tuple[Choice, ...]:
    return choice if isinstance(choice, tuple) else (choice,)


def can_refit(choice: Choice, model: nn.Module | None) -> bool:
    """Whether what a choice has settled on can be trained again on other rows."""
    choice = _in_turn(choice)[0]
    if isinstance(choice, Auto):
        return model is not None and is_linear(model)
    return choice is None or isinstance(choice, CrossEntropy | Anchored | Ridge)


def refits(refit: bool | None, model: nn.Module, choice: Choice, calibrated: bool) -> bool:
    """Whether to train again on all rows; if nobody says, where the choice is left to us and nothing speaks against."""
    against = None
    left_to_us = choice is None or (isinstance(choice, Auto) and is_linear(model))
    if not can_refit(choice, model):
        against = "refit goes with cross-entropy and the recipes for linear models; leave the solver out"
    elif averages_itself(model) or not can_be_averaged(model):
        against = (
            "refit keeps an average of the model's parameters; pass a model that copy.deepcopy copies, all its "
            "parameters there, without a wrapper"
        )
    elif not calibrated:
        against = "refit trains on the held-out rows, so the threshold needs others: pass calibration= data"
    if refit and against is not None:
        raise BadSetting(against)
    return against is None and (left_to_us if refit is None else refit)
