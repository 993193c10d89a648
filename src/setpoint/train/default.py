"""Which method trains what: the defaults, and what each kind of solver comes down to.

The defaults are those that the studies of linear models and of networks confirmed (`benchmarks`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.average import can_be_averaged
from setpoint.train.best import Best
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.ensemble import Ensembled
from setpoint.train.full_batch import FullBatch
from setpoint.train.head import Head
from setpoint.train.lean import lean_weight
from setpoint.train.method import Method
from setpoint.train.race import Race
from setpoint.train.recipes import Anchored, Ridge, is_linear
from setpoint.train.refit import Refit
from setpoint.train.splits import Seeds, Splits
from setpoint.train.start import InPlace
from setpoint.train.together import averages_itself
from setpoint.train.tune import check_optuna

Named = Solver | Anchored | Ridge | Auto


@dataclass(frozen=True)
class How:
    """How to train, whichever solver it is. What a method has no use for (epochs, for a recipe) it leaves aside.

    Args:
        epochs: The most passes over the training rows.
        warm_start: The share of the epochs, at the start, that are balanced cross-entropy, for solvers that need it.
        patience: Stop after so many epochs without a better one.
        optimizer: Makes the optimizer from the parameters; None is Adam on a cosine schedule.
        accumulate: So many batches of the loader count as one.
        refit: Train again on training and held-out rows together; None does so where the choice is left to the library.
        ensemble: The number of members trained from other seeds, or `Splits(k)` for members on other splits too.
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


def by_default(model: nn.Module, problem: Problem) -> Solver | Anchored | Ridge:
    """What has been measured to work; where groups are compared, nothing did better than converged cross-entropy."""
    if is_linear(model):
        return Anchored() if problem.group is None else Ridge()
    return CrossEntropy(lean_weight(problem))


def method_for(
    model: nn.Module, problem: Problem, solver: Named | None, how: How, *, calibrated: bool
) -> tuple[Named, Method]:
    """The solver, chosen if none is named, and the method that trains the model by it.

    Without `calibrated` rows, to set the threshold on, held-out rows are never trained on.
    """
    made_of, refit = how.made_of, how.refit
    if isinstance(made_of, Splits):
        if not calibrated or refit:
            lacking = "no refit, which trains every member on all rows" if refit else "calibration= data"
            raise BadSetting(f"an ensemble over splits trains on the held-out rows too, so it takes {lacking}")
        refit = False
    by_us, again = solver is None, refits(refit, model, solver, calibrated)
    solver = by_default(model, problem) if solver is None else solver
    if isinstance(solver, Auto) and solver.tune:
        check_optuna()

    def one(make: Callable[[], nn.Module], own: Named) -> Method:
        method = _plain_method(make, own, how, linear=is_linear(model), by_us=by_us, again=again)
        if again and not isinstance(method, Race):
            return Refit(method, required=refit is not None)
        head = by_us and calibrated and problem.group is None and isinstance(method, ByEpochs)
        return Head(method) if head else method

    if made_of == Seeds(1):
        return solver, one(InPlace(model), solver)
    if isinstance(solver, ImplicitLastLayer):
        raise BadSetting("ImplicitLastLayer belongs to one model's head; train the members of an ensemble by hand")
    return solver, Ensembled(lambda make: one(make, copy.deepcopy(solver)), model, made_of, how.seed)


def _plain_method(
    make: Callable[[], nn.Module], solver: Named, how: How, *, linear: bool, by_us: bool, again: bool
) -> Method:
    """The method for a solver by itself, before anything is trained again."""
    if isinstance(solver, Anchored | Ridge):
        return FullBatch(make, solver)
    if isinstance(solver, Auto) and linear:
        return Best(make, solver.caution, solver.tune, solver.seed)
    patience = how.patience or (max(5, how.epochs // 4) if by_us else None)
    training = ByEpochs(
        make, CrossEntropy() if isinstance(solver, Auto) else solver, how.epochs, how.warm_start, patience,
        how.optimizer, how.accumulate, by_loss=by_us or again, averaged=again,
    )  # fmt: skip
    return Race(training, solver.caution, solver.tune, solver.seed) if isinstance(solver, Auto) else training


def refits(refit: bool | None, model: nn.Module, solver: Named | None, calibrated: bool) -> bool:
    """Whether to train again on all rows; if nobody says, where the choice is left to us and nothing speaks against."""
    against = None
    left_to_us = solver is None or (isinstance(solver, Auto) and is_linear(model))
    if not (left_to_us or isinstance(solver, CrossEntropy | Anchored | Ridge)):
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
