"""From a choice (a solver, a recipe, a method, or none) to the method that trains a model by it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from setpoint.data.in_lists import refuse_processes
from setpoint.data.parts import Data
from setpoint.errors import BadSetting, NotEnoughMemory
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.average import can_be_averaged
from setpoint.train.best import Best
from setpoint.train.best_of import BestOf
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.by_sums import BySums, Sums
from setpoint.train.default import Choice, default_choices
from setpoint.train.each_label import EachLabel, row_of
from setpoint.train.ensemble import Ensembled
from setpoint.train.full_batch import IN_BATCHES, FullBatch
from setpoint.train.head import Head
from setpoint.train.identity import work_identity
from setpoint.train.method import InPlace, Method, expected_rows, is_method
from setpoint.train.multinomial import Multinomial
from setpoint.train.on_first import OnFirst
from setpoint.train.race import Race
from setpoint.train.recipes import Anchored, ClassWeights, Ridge, is_linear
from setpoint.train.refit import Refit
from setpoint.train.snapshots import OfSnapshots, Snapshots
from setpoint.train.splits import Seeds, Splits
from setpoint.train.together import averages_itself, share_state
from setpoint.train.tune import check_optuna
from setpoint.train.work import Work


@dataclass(frozen=True)
class How:
    """The settings of a training, for any solver. A method ignores settings that it does not need.

    Args:
        epochs: The largest number of passes over the training rows.
        warm_start: The share of the epochs that come before the solver, by balanced cross-entropy for most solvers.
        patience: Stop after this many epochs without a better one.
        optimizer: Makes the optimizer from the parameters; None is Adam on a cosine schedule.
        accumulate: The number of batches that count as one.
        refit: Retrain on training and held-out rows together; None does so where the library chooses the solver.
        ensemble: The number of members with different seeds, or `Splits(k)` or `Folds(k)` for other rows per member.
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
    model: nn.Module | None = None
    how: How = How()
    instead: str = ""

    @property
    def expected_rows(self) -> int:
        """About how many rows of history there will be."""
        return expected_rows(self.method)

    def begin(self, problem: Problem, data: Data, work: Work) -> Method:
        """The method, ready to train: from the first process's parameters, in a store that holds no other work."""
        if work.store.is_on:
            own = work_identity(self.model, self.solver, problem, data, self.how, work.processes)
            work.identity = {**work.identity, **own}
        if self.model is not None:
            share_state(self.model, work.processes, parameters=True)
        return self.method


def method_for(
    model: nn.Module | None, problem: Problem, choice: Any, how: How, data: Data, processes: Processes
) -> Chosen:
    """The method that trains the model as was chosen, or the next that does not refuse the data.

    The choice is a `Choice`; for problems about several labels it may be a mapping from each label to its choice.

    Without calibration rows, to set the threshold on, held-out rows are never trained on.

    Raises:
        BadSetting: The settings do not go together.
        NotEnoughMemory: The method refuses the data, and there is none to stand in for it.
    """
    refuse_processes(problem, processes.alone)
    if isinstance(problem, LabelProblem) and _label_by_label(model, choice):
        return _for_each_label(model, problem, choice, how, data, processes)
    refusals: list[str] = []
    in_turn = default_choices(model, problem, data.comes_whole) if choice is None else _in_turn(choice)
    for each in in_turn:
        # A choice that stands in for a refused one is trained once, and never on held-out rows.
        named, own = (each, replace(how, refit=False)) if refusals else (None if choice is None else each, how)
        method = _method(model, problem, named, each, own, data)
        linear = model is not None and is_linear(model) and not isinstance(each, Solver)
        if (linear or hasattr(each, "pool")) and not processes.alone and data.is_on_each:
            method = OnFirst(method)
        why = method.refuses(problem, data)
        if not processes.alone:
            # All processes train by the same method: one that cannot speaks for all.
            why = next(filter(None, processes.all_objects(why)), None)
        if why is None:
            return Chosen(method, each, model, how, refusals[0] if refusals else "")
        refusals.append(why)
    raise NotEnoughMemory(f"{refusals[0]}; {IN_BATCHES}")


def _label_by_label(model: nn.Module | None, choice: Any) -> bool:
    """Whether each label has its own model: of trees and linear models, unless the choice takes all labels together."""
    return not getattr(choice, "takes_labels", False) and (model is None or isinstance(model, nn.Linear))


def _for_each_label(
    model: nn.Module | None, problem: LabelProblem, choice: Any, how: How, data: Data, processes: Processes
) -> Chosen:
    """One model per label, each by the method that its own ask gets."""
    linear = model if isinstance(model, nn.Linear) else None
    each, starts = [], []
    for place, (label, own) in enumerate(problem.each.items()):
        start = None if linear is None else row_of(linear, place)
        named = choice[label] if isinstance(choice, Mapping) else choice
        named = copy.deepcopy(named) if isinstance(named, Solver) else named
        each.append(method_for(start, own, named, how, data.of_label(place), processes))
        starts += [] if start is None else [start]
    method = EachLabel(tuple(one.method for one in each), linear, tuple(starts))
    return Chosen(method, each[0].solver, model, how, next((one.instead for one in each if one.instead), ""))


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
    method: Method
    if is_method(choice):
        if hasattr(choice, "pool"):
            # Trained on all rows by itself.
            method = replace(choice, pool=choice.pool and refit is not False)  # type: ignore[type-var]
        else:
            method = Refit(choice) if refit else choice
        return method if made_of == Seeds(1) else Ensembled(method, made_of, how.seed)
    if model is None:
        raise BadSetting("a solver needs a model to train; pass one, or a method that makes its own")
    by_us, again = named is None, refits(refit, model, named, calibrated)
    if isinstance(choice, Auto) and choice.tune:
        check_optuna()
    if isinstance(choice, Snapshots):
        choice.check(problem, made_of.members)

    if problem.kind == CLASSES and isinstance(model, nn.Linear) and isinstance(choice, Ridge):
        method = Multinomial(InPlace(model))
    else:
        method = _plain_method(InPlace(model), choice, how, linear=is_linear(model), by_us=by_us, again=again)
    if again and not isinstance(method, Race):
        method = Refit(method, required=refit is not None)
    elif by_us and calibrated and problem.group is None and problem.kind == CUT and isinstance(method, ByEpochs):
        method = Head(method)
    if made_of == Seeds(1):
        return method
    if isinstance(choice, ImplicitLastLayer) and choice.has_head:
        raise BadSetting("ImplicitLastLayer belongs to one model's head; leave out head=, and each member has its own")
    return Ensembled(method, made_of, how.seed)


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
    if isinstance(choice, Sums):
        return BySums(make, choice)
    if isinstance(choice, Auto) and linear:
        return Best(make, choice.caution, choice.tune, choice.seed)
    if isinstance(choice, Snapshots):
        by_solver = _plain_method(make, choice.solver, how, linear=linear, by_us=False, again=False)
        assert isinstance(by_solver, ByEpochs)
        return OfSnapshots(replace(by_solver, keep=choice.most))
    patience = how.patience or (max(5, how.epochs // 4) if by_us else None)
    training = ByEpochs(
        make, CrossEntropy() if isinstance(choice, Auto) else choice, how.epochs, how.warm_start, patience,
        how.optimizer, how.accumulate, by_loss=by_us or again, averaged=again,
    )  # fmt: skip
    return Race(training, choice.caution, choice.tune, choice.seed) if isinstance(choice, Auto) else training


def _in_turn(choice: Any) -> tuple[Choice, ...]:
    if isinstance(choice, Mapping):
        return _in_turn(next(iter(choice.values())))
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
