"""Recipes for linear models: cross-entropy under several class weights, and refinements of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from typing import ClassVar, Literal, Protocol, TypeGuard

import torch
from torch import Tensor, nn

from setpoint.data.rows import Rows
from setpoint.errors import BadProblem, BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.solver import Solver
from setpoint.train.class_weights import GRID, TRIED, class_weights, deciding_bound, ratio_for
from setpoint.train.linear import Anchor, cross_entropy, match, refine
from setpoint.train.newton import products_of
from setpoint.train.penalty import LinearPenalty, ScaledColumns, choose_penalty

KAPPA = 0.25


def is_linear(model: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether recipes can train this model: one linear layer with one output."""
    return isinstance(model, nn.Linear) and model.out_features == 1


class Recipes:
    """The parameters that each recipe gives on one set of rows; what recipes share is computed once.

    Recipes work on the columns of the penalty (`ScaledColumns`), which cross-validation chooses unless it is given.
    """

    def __init__(self, problem: Problem, rows: Rows, penalty: LinearPenalty | None = None) -> None:
        self.problem, self.given = problem, rows
        self.penalty = choose_penalty(rows) if penalty is None else penalty

    @cached_property
    def columns(self) -> ScaledColumns:
        """The columns that the recipes work on."""
        return ScaledColumns.under(self.given, self.penalty)

    @property
    def rows(self) -> Rows:
        """The rows in these columns."""
        return self.columns.rows

    @cached_property
    def products(self) -> Tensor | None:
        """The products of the rows, if they are fewer than the columns."""
        return products_of(self.rows.x)

    @cached_property
    def _plain(self) -> Tensor:
        return self._cross_entropy(1.0)

    def _cross_entropy(self, ratio: float, start: Tensor | None = None) -> Tensor:
        return cross_entropy(self.rows, class_weights(self.rows, ratio), start, self.products)

    @cached_property
    def _start(self) -> tuple[Tensor, Tensor]:
        return match(self.problem, self.rows, self.products)

    @property
    def plain(self) -> Tensor:
        """Cross-entropy to convergence."""
        return self.columns.whole(self._plain)

    def weighted(self, ratio: float | None = None) -> Tensor:
        """Cross-entropy from the plain start, with positives `ratio` times as heavy; None balances the classes."""
        if ratio is None:
            ratio = ratio_for("balanced", self.rows)
        return self.columns.whole(self._cross_entropy(ratio, self._plain))

    def start(self) -> Tensor:
        """Matched cross-entropy; plain cross-entropy if there is no bound to match."""
        return self.columns.whole(self._start[0])

    def ridge(self, ridge: Ridge) -> Tensor:
        """Cross-entropy under the class weight of `ridge`."""
        return self.columns.whole(self._cross_entropy(ratio_for(ridge.pos_weight, self.rows)))

    def matched(self) -> Tensor:
        """Matched cross-entropy."""
        if deciding_bound(self.problem) is None:
            raise BadProblem(f"'{self.problem}' has no bound to match, so this is plain cross-entropy")
        return self.start()

    def anchored(self, kappa: float = KAPPA, solver: Solver | None = None, weight: float = 1.0) -> Tensor:
        """The start, refined with an anchor; `weight` multiplies the class weight of both."""
        theta, weights = self._start
        if weight != 1:
            weights = weights * torch.where(self.rows.labels > 0, weight, 1.0)
            weights = weights / weights.mean()
            theta = cross_entropy(self.rows, weights, theta, self.products)
        anchor = Anchor(self.rows.labels, weights, torch.zeros_like(theta))
        return self.columns.whole(refine(self.problem, self.rows, theta, anchor, kappa, solver, self.products))

    def lagrangian(self) -> Tensor:
        return self.anchored(solver=Lagrangian(self.problem, n_groups=self.rows.n_groups, temperature=1.0, memory=0))

    def augmented(self) -> Tensor:
        size = len(self.rows.labels)
        return self.anchored(solver=AugmentedLagrangian(CrossEntropy(), n_samples=size, problem=self.problem, mu=1e-3))

    def pairwise(self) -> Tensor:
        return self.anchored(solver=PairwiseArea(self.problem, memory=0))


Recipe = Callable[[Recipes], Tensor]
#: A named function, because a lambda cannot be sent to other processes.
PLAIN = attrgetter("plain")


class Candidates(Protocol):
    """A recipe that users name: its candidates by name, from simple to bold, and whether held-out rows choose.

    Its penalty is None until cross-validation has chosen one.
    """

    @property
    def penalty(self) -> LinearPenalty | None: ...

    @property
    def chooses(self) -> bool: ...

    @property
    def candidates(self) -> dict[str, Recipe]: ...


@dataclass(frozen=True)
class Only:
    """A single candidate and its penalty, chosen before."""

    name: str
    make: Recipe
    penalty: LinearPenalty | None = None
    chooses: ClassVar[bool] = False

    @property
    def candidates(self) -> dict[str, Recipe]:
        """The single candidate."""
        return {self.name: self.make}


@dataclass(frozen=True)
class Anchored:
    """Train a linear model by the anchored recipe, on the full batch.

    The recipe starts from cross-entropy whose class weight makes its boundary meet the bound in training. From there it
    improves the objective itself, held near the start by an anchor that fades as the data grow.

    Args:
        kappas: The strengths of the anchor. A single one (1/4 by default) is used as it is. Among several, and plain
            and matched cross-entropy, the best on the held-out rows is kept; ties go to the larger strength.

    Raises:
        BadSetting: If there is no kappa, or one that is not above 0.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(torch.nn.Linear(1, 1), ask, train, held_out, sp.Anchored(), calibration=rest)
        >>> [row["solver"] for row in result.history]
        ['CrossEntropy', 'CrossEntropy(matched)', 'Anchored(0.25)']
    """

    kappas: tuple[float, ...] = (0.25,)
    penalty: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not self.kappas or any(not 0 < kappa < float("inf") for kappa in self.kappas):
            raise BadSetting(f"Anchored needs at least one kappa, all above 0, got {self.kappas}")

    @property
    def chooses(self) -> bool:
        """Whether held-out rows choose among the candidates."""
        return len(self.kappas) > 1

    @property
    def candidates(self) -> dict[str, Recipe]:
        """The candidates by name, from simple to bold."""
        refined = {f"Anchored({kappa:g})": partial(Recipes.anchored, kappa=kappa) for kappa in self.kappas}
        return {"CrossEntropy": PLAIN, "CrossEntropy(matched)": Recipes.start, **refined}

    @classmethod
    def auto(cls) -> Anchored:
        """The recipe with the strengths 4, 1, 1/4 and 1/16, among which the held-out rows choose."""
        return cls((4.0, 1.0, 0.25, 0.0625))


@dataclass(frozen=True)
class Ridge:
    """Train a linear model by cross-entropy on the full batch, to convergence.

    The sum of losses has a ridge of 1/2 |theta|^2 on standardised features, or another penalty where cross-validation
    finds one that is clearly better. It is the baseline for `Anchored`, which has the same penalty.

    Args:
        pos_weight: The weight of positives, as in `sp.CrossEntropy`.

    Raises:
        BadSetting: If the weight is neither a number above 0, "balanced" nor None.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(torch.nn.Linear(1, 1), ask, train, held_out, sp.Ridge("balanced"), calibration=rest)
        >>> result.point.feasible
        True
    """

    pos_weight: float | Literal["balanced"] | None = None
    chooses: ClassVar[bool] = False
    penalty: ClassVar[None] = None

    def __post_init__(self) -> None:
        CrossEntropy(self.pos_weight)

    @property
    def candidates(self) -> dict[str, Recipe]:
        """The single candidate."""
        return {"CrossEntropy": partial(Recipes.ridge, ridge=self)}


@dataclass(frozen=True)
class ClassWeights:
    """Cross-entropy under the class weight that is best on the held-out rows: a strong baseline for comparisons.

    Args:
        weights: The weights to choose from: the number of negatives that one positive counts for.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> weights = sp.methods.ClassWeights((0.25, 4.0))
        >>> result = sp.fit(torch.nn.Linear(1, 1), ask, train, held_out, weights, calibration=rest)
        >>> [row["solver"] for row in result.history]
        ['CrossEntropy(0.25)', 'CrossEntropy(4)']
    """

    weights: tuple[float, ...] = GRID
    chooses: ClassVar[bool] = True
    penalty: ClassVar[None] = None

    @property
    def candidates(self) -> dict[str, Recipe]:
        """One per weight."""
        return {f"CrossEntropy({w:g})": partial(Recipes.ridge, ridge=Ridge(w)) for w in self.weights}


#: The recipes of `Auto`, from simple to bold. A recipe that does not fit a problem raises BadProblem.
RECIPES: dict[str, Recipe] = {
    "CrossEntropy": PLAIN,
    "CrossEntropy(balanced)": Recipes.weighted,
    **{f"CrossEntropy({ratio:g})": partial(Recipes.weighted, ratio=ratio) for ratio in TRIED},
    "CrossEntropy(matched)": Recipes.matched,
    **{f"Anchored({kappa:g})": partial(Recipes.anchored, kappa=kappa) for kappa in Anchored.auto().kappas},
    "Lagrangian": Recipes.lagrangian,
    "AugmentedLagrangian": Recipes.augmented,
    "PairwiseArea": Recipes.pairwise,
}
