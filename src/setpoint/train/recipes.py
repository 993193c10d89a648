"""The candidates for a linear model by name: cross-entropy under several class weights, then what refines it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import torch
from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.train.anchored import Anchored, Ridge
from setpoint.train.linear import Anchor, Rows, class_weights, cross_entropy, deciding_bound, match, refine

#: Few, and far apart: among 21 weights it is noise that is chosen.
CLASS_WEIGHTS = (0.25, 4.0)
KAPPA = 0.25


class Recipes:
    """Parameters on one set of rows by any recipe; plain and matched cross-entropy, the starts, are made once."""

    def __init__(self, problem: Problem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows

    @cached_property
    def plain(self) -> Tensor:
        return cross_entropy(self.rows, class_weights(self.rows, 1.0))

    @cached_property
    def start(self) -> tuple[Tensor, Tensor]:
        """Matched cross-entropy and its sample weights; plain where no bound on a rate can be matched."""
        return match(self.problem, self.rows)

    def weighted(self, ratio: float | None = None) -> Tensor:
        """Cross-entropy with positives so many times as heavy; None balances the classes."""
        if ratio is None:
            ratio = Ridge("balanced").ratio(self.rows.labels, self.rows.weights)
        return cross_entropy(self.rows, class_weights(self.rows, ratio), self.plain)

    def matched(self) -> Tensor:
        if deciding_bound(self.problem) is None:
            raise BadProblem(f"'{self.problem}' has no bound to match, so that this is plain cross-entropy")
        return self.start[0]

    def anchored(self, kappa: float = KAPPA, solver: Solver | None = None, weight: float = 1.0) -> Tensor:
        """The start, refined on its anchor; `weight` multiplies the class weight of both."""
        theta, weights = self.start
        if weight != 1:
            weights = weights * torch.where(self.rows.labels > 0, weight, 1.0)
            weights = weights / weights.mean()
            theta = cross_entropy(self.rows, weights, theta)
        anchor = Anchor(self.rows.labels, weights, torch.zeros_like(theta))
        return refine(self.problem, self.rows, theta, anchor, kappa, solver)

    def lagrangian(self) -> Tensor:
        return self.anchored(solver=Lagrangian(self.problem, n_groups=self.rows.n_groups, temperature=1.0, memory=0))

    def augmented(self) -> Tensor:
        size = len(self.rows.labels)
        return self.anchored(solver=AugmentedLagrangian(CrossEntropy(), n_samples=size, problem=self.problem, mu=1e-3))

    def pairwise(self) -> Tensor:
        return self.anchored(solver=PairwiseArea(self.problem, memory=0))


Recipe = Callable[[Recipes], Tensor]

#: From simple to bold. What does not fit a problem raises BadProblem.
RECIPES: dict[str, Recipe] = {
    "CrossEntropy": lambda on: on.plain,
    "CrossEntropy(balanced)": Recipes.weighted,
    **{f"CrossEntropy({ratio:g})": partial(Recipes.weighted, ratio=ratio) for ratio in CLASS_WEIGHTS},
    "CrossEntropy(matched)": Recipes.matched,
    **{f"Anchored({kappa:g})": partial(Recipes.anchored, kappa=kappa) for kappa in Anchored.auto().kappas},
    "Lagrangian": Recipes.lagrangian,
    "AugmentedLagrangian": Recipes.augmented,
    "PairwiseArea": Recipes.pairwise,
}
