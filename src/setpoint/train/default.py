"""Which method trains what: the defaults, and what each kind of solver comes down to.

The defaults are those that the studies of linear models and of networks confirmed (`benchmarks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.average import can_be_averaged
from setpoint.train.best import Best
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.full_batch import FullBatch
from setpoint.train.head import Head
from setpoint.train.lean import lean_weight
from setpoint.train.method import Method
from setpoint.train.race import Race
from setpoint.train.recipes import Anchored, Ridge, is_linear
from setpoint.train.refit import Refit
from setpoint.train.together import averages_itself
from setpoint.train.tune import check_optuna

Named = Solver | Anchored | Ridge | Auto
Maker = Callable[[Callable[[], nn.Module], Any], Method]


@dataclass(frozen=True)
class How:
    """How a training by epochs goes, whichever solver it is; other methods have no use for it."""

    epochs: int
    warm_start: float
    patience: int | None = None
    optimizer: OptimizerMaker | None = None
    accumulate: int = 1


def by_default(model: nn.Module, problem: Problem) -> Solver | Anchored | Ridge:
    """What has been measured to work; where groups are compared, nothing did better than converged cross-entropy."""
    if is_linear(model):
        return Anchored() if problem.group is None else Ridge()
    return CrossEntropy(lean_weight(problem))


def choose_method(
    problem: Problem, solver: Named | None, model: nn.Module, how: How, *, calibrated: bool, refit: bool | None
) -> tuple[Named, Maker]:
    """The solver, chosen if none is named, and what makes the method that trains by it from a maker of models.

    With `refit` unset, the model is trained again on all rows where the choice is left to the library and there are
    `calibrated` rows to set the threshold on.
    """
    again = refits(refit, model, solver, calibrated)
    by_us = solver is None
    solver = by_default(model, problem) if solver is None else solver
    if isinstance(solver, Auto) and solver.tune:
        check_optuna()
    patience = how.patience or (max(5, how.epochs // 4) if by_us else None)

    def make_method(make: Callable[[], nn.Module], solver: Named) -> Method:
        method = plain_method(make, solver)
        if again and not (isinstance(solver, Auto) and not is_linear(model)):
            return Refit(method, required=refit is not None)
        head = by_us and calibrated and problem.group is None and isinstance(method, ByEpochs)
        return Head(method) if head else method

    def plain_method(make: Callable[[], nn.Module], solver: Named) -> Method:
        if isinstance(solver, Anchored | Ridge):
            return FullBatch(make, solver)
        if isinstance(solver, Auto) and is_linear(model):
            return Best(make, solver.caution, solver.tune, solver.seed)
        training = ByEpochs(
            make, CrossEntropy() if isinstance(solver, Auto) else solver, how.epochs, how.warm_start, patience,
            how.optimizer, how.accumulate, by_loss=by_us or again, averaged=again,
        )  # fmt: skip
        return Race(training, solver.caution, solver.tune, solver.seed) if isinstance(solver, Auto) else training

    return solver, make_method


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
