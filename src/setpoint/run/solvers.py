"""Solvers by name, a line each: what the command line and the estimator offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.program import program_for
from setpoint.solve.sample_prices import ByArea, Growth
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.recipes import Ridge

BASELINE = "cross-entropy"
#: What `fit` takes; None leaves the choice to it.
Choice = Solver | Ridge | Auto | None


@dataclass(frozen=True)
class Case:
    """What a solver is made for: a problem, a linear model or not, so many training rows, all in one batch or not.

    `tune` and `seed` are those of `Auto`.
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
        """None where a batch is too small to tell the threshold, and the solver is to choose."""
        return 0 if self.whole else None

    def entropy(self, weight: Literal["balanced"] | None = None) -> Solver | Ridge:
        """Cross-entropy: to convergence for linear models."""
        return Ridge(weight) if self.linear else CrossEntropy(weight)

    def augmented(self, growth: Growth) -> Solver:
        """The augmented Lagrangian over cross-entropy."""
        return AugmentedLagrangian(CrossEntropy(), n_samples=self.rows, problem=self.problem, mu=1e-3, growth=growth)


SOLVERS: dict[str, Callable[[Case], Choice]] = {
    "default": lambda case: None,
    "auto": lambda case: Auto(tune=case.tune, seed=case.seed),
    "implicit": lambda case: ImplicitThreshold(case.problem, n_groups=case.n_groups, memory=case.memory),
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
    return SOLVERS[check_solver(name)](case)


def check_solver(name: str) -> str:
    if name not in SOLVERS:
        raise BadSetting(f"solver {name!r} is none of {', '.join(SOLVERS)}")
    return name


def by_steps(solver: Choice, case: Case) -> Choice:
    """What stands in for a recipe for linear models where its full batch does not fit into memory."""
    if isinstance(solver, Ridge):
        return CrossEntropy(solver.pos_weight)
    return solver if isinstance(solver, Solver) else make_solver("implicit", case)
