"""Recipes for linear models, and all that `Auto` tries: cross-entropy under several class weights, what refines it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import ClassVar, Literal, Protocol, TypeGuard

import torch
from torch import Tensor, nn

from setpoint.errors import BadProblem, BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.train.linear import Anchor, Rows, class_weights, cross_entropy, deciding_bound, match, refine

#: Few, and far apart: among 21 weights it is noise that is chosen.
CLASS_WEIGHTS = (0.25, 4.0)
KAPPA = 0.25


def is_linear(model: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether recipes can make this model's parameters: one linear layer with one output."""
    return isinstance(model, nn.Linear) and model.out_features == 1


class Recipes:
    """Parameters on one set of rows by any recipe; plain and matched cross-entropy, the starts, are made once."""

    def __init__(self, problem: Problem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows

    @cached_property
    def plain(self) -> Tensor:
        return self.cross_entropy(1.0)

    def cross_entropy(self, ratio: float, start: Tensor | None = None) -> Tensor:
        """To convergence, with positives so many times as heavy."""
        return cross_entropy(self.rows, class_weights(self.rows, ratio), start)

    @cached_property
    def start(self) -> tuple[Tensor, Tensor]:
        """Matched cross-entropy and its sample weights; plain where no bound on a rate can be matched."""
        return match(self.problem, self.rows)

    def weighted(self, ratio: float | None = None) -> Tensor:
        """Cross-entropy with positives so many times as heavy; None balances the classes."""
        if ratio is None:
            ratio = Ridge("balanced").ratio(self.rows.labels, self.rows.weights)
        return self.cross_entropy(ratio, self.plain)

    def start_alone(self) -> Tensor:
        """The start without its sample weights."""
        return self.start[0]

    def ridge(self, ridge: Ridge) -> Tensor:
        """Cross-entropy under the class weight that `ridge` names."""
        return self.cross_entropy(ridge.ratio(self.rows.labels, self.rows.weights))

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
#: Functions with names, so that what was trained on one process can be sent to others.
PLAIN = attrgetter("plain")


class Candidates(Protocol):
    """A recipe that people name: what is made, by name, from simple to bold, and whether held-out rows choose."""

    @property
    def chooses(self) -> bool: ...

    @property
    def candidates(self) -> dict[str, Recipe]: ...


@dataclass(frozen=True)
class Only:
    """One candidate that was chosen already."""

    name: str
    make: Recipe
    chooses: ClassVar[bool] = False

    @property
    def candidates(self) -> dict[str, Recipe]:
        """The one thing that is made."""
        return {self.name: self.make}


@dataclass(frozen=True)
class Anchored:
    """Train a linear model by the anchored recipe, full batch, on data that fit in memory.

    One `kappa` (the default, 1/4) is used as it is, and nothing is chosen. With several, the best on held-out
    data is taken, plain and matched cross-entropy standing as candidates too; ties go to the earlier, that is to
    the simpler and to the larger kappa. `Anchored.auto` holds the four strengths of the default study.
    """

    kappas: tuple[float, ...] = (0.25,)

    def __post_init__(self) -> None:
        if not self.kappas or any(not 0 < kappa < float("inf") for kappa in self.kappas):
            raise BadSetting(f"Anchored needs at least one kappa, all above 0, got {self.kappas}")

    @property
    def chooses(self) -> bool:
        """Whether held-out rows have a say."""
        return len(self.kappas) > 1

    @property
    def candidates(self) -> dict[str, Recipe]:
        """What is made, from simple to bold, by name."""
        refined = {f"Anchored({kappa:g})": partial(Recipes.anchored, kappa=kappa) for kappa in self.kappas}
        return {"CrossEntropy": PLAIN, "CrossEntropy(matched)": Recipes.start_alone, **refined}

    @classmethod
    def auto(cls) -> Anchored:
        """The four strengths 4, 1, 1/4 and 1/16, to be chosen from on held-out data."""
        return cls((4.0, 1.0, 0.25, 0.0625))


@dataclass(frozen=True)
class Ridge:
    """Cross-entropy of a linear model, full batch, to convergence: the baseline that stands beside `Anchored`.

    `pos_weight` as in `CrossEntropy`; a ridge of 1/2 |theta|^2 on standardised features beside the sum of losses.
    """

    pos_weight: float | Literal["balanced"] | None = None
    chooses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        CrossEntropy(self.pos_weight)

    @property
    def candidates(self) -> dict[str, Recipe]:
        """The one thing that is made."""
        return {"CrossEntropy": partial(Recipes.ridge, ridge=self)}

    def ratio(self, labels: Tensor, weights: Tensor) -> float:
        """How many negatives a positive counts for."""
        if self.pos_weight == "balanced":
            positives = (weights * labels).sum()
            return float((weights.sum() - positives) / positives.clamp(min=1e-300))
        return 1.0 if self.pos_weight is None else float(self.pos_weight)


@dataclass(frozen=True)
class ClassWeights:
    """Cross-entropy under the class weight that is best on held-out rows: the strong rival of every comparison.

    Args:
        weights: How many negatives a positive counts for, to be chosen from.
    """

    weights: tuple[float, ...] = tuple(4.0**power for power in range(-3, 4))
    chooses: ClassVar[bool] = True

    @property
    def candidates(self) -> dict[str, Recipe]:
        """One per weight."""
        return {f"CrossEntropy({w:g})": partial(Recipes.ridge, ridge=Ridge(w)) for w in self.weights}


#: From simple to bold. What does not fit a problem raises BadProblem.
RECIPES: dict[str, Recipe] = {
    "CrossEntropy": PLAIN,
    "CrossEntropy(balanced)": Recipes.weighted,
    **{f"CrossEntropy({ratio:g})": partial(Recipes.weighted, ratio=ratio) for ratio in CLASS_WEIGHTS},
    "CrossEntropy(matched)": Recipes.matched,
    **{f"Anchored({kappa:g})": partial(Recipes.anchored, kappa=kappa) for kappa in Anchored.auto().kappas},
    "Lagrangian": Recipes.lagrangian,
    "AugmentedLagrangian": Recipes.augmented,
    "PairwiseArea": Recipes.pairwise,
}
