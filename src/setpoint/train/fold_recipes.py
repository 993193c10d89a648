"""The linear recipes of a cross-fit, computed for all its folds at once where rows are few."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from setpoint.data.batch import batches_like
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.problem.problem import Problem
from setpoint.train.full_batch import read_rows
from setpoint.train.lean import is_lean
from setpoint.train.linear import MATCH_ROWS, refine_together
from setpoint.train.penalty import LinearPenalty, ScaledColumns
from setpoint.train.recipes import KAPPA, PLAIN, Only, Recipe, Recipes
from setpoint.train.stacked_rows import StackedRows

#: With more values (rows times columns) in a fold than this, numbers take longer than Python: fold by fold is as fast.
FEW_VALUES = 1_000_000
#: With fewer values than this the anchored recipe takes less time than it takes to know whether it is needed.
QUICK_VALUES = 150_000


class FoldRecipes:
    """Plain cross-entropy and the anchored recipe on all rows but those of a fold, for each fold.

    Args:
        problem: The problem to solve.
        data: The data that is folded.
        rows: Its rows.
        folds: The number of the fold of each row.
        penalty: The penalty of all folds.
    """

    def __init__(self, problem: Problem, data: Data, rows: Rows, folds: Tensor, penalty: LinearPenalty) -> None:
        self.problem, self.penalty = problem, penalty
        self.data, self.rows, self.folds = data, rows, folds

    @property
    def is_small(self) -> bool:
        """Whether all folds are computed at once."""
        rows = len(self.rows.labels)
        return rows <= MATCH_ROWS and self._width < rows // 2 and rows * self._width <= FEW_VALUES

    @property
    def _width(self) -> int:
        """The number of columns that take part: all, or those that a lasso keeps in any fold."""
        return max(self._stacked.features) if self.penalty.lasso else int(self.rows.x.shape[1])

    @cached_property
    def _columns(self) -> list[ScaledColumns]:
        """The columns of the penalty, for each fold."""
        layer, found = nn.Linear(self.rows.x.shape[1], 1), []
        for fold in range(int(self.folds.max()) + 1):
            own, _ = read_rows([batches_like(self.data.in_memory, self.rows.take(self.folds != fold), 0)], layer)
            found.append(ScaledColumns.under(own, self.penalty))
        return found

    @cached_property
    def _stacked(self) -> StackedRows:
        return StackedRows([columns.rows for columns in self._columns])

    @cached_property
    def plain(self) -> Tensor:
        """The parameters of plain cross-entropy for each fold."""
        even = torch.ones(len(self._stacked.sets), dtype=torch.float64)
        return self._stacked.cross_entropy(self._stacked.class_weights(even))[0]

    @cached_property
    def anchored(self) -> Tensor:
        """The parameters of the anchored recipe for each fold."""
        theta, weights = self._stacked.match(self.problem, self.plain)
        return refine_together(self.problem, self._stacked, theta, weights, KAPPA)

    def plain_of(self, fold: int) -> Only:
        """Plain cross-entropy on one fold, as a recipe."""
        made: Recipe = partial(self._whole, "plain", fold) if self.is_small else PLAIN
        return Only("CrossEntropy", made, self.penalty)

    def anchored_of(self, fold: int) -> Only:
        """The anchored recipe on one fold."""
        made: Recipe = partial(self._whole, "anchored", fold) if self.takes_asked else Recipes.anchored
        return Only(f"Anchored({KAPPA:g})", made, self.penalty)

    @property
    def takes_asked(self) -> bool:
        """Whether the anchored recipe is computed for all folds at once."""
        return self.is_small and is_lean(self.problem, replace(self.rows, x=self.rows.labels))

    @property
    def is_quick(self) -> bool:
        """Whether the anchored recipe takes so little time that it may be computed for nothing."""
        return not self.penalty.lasso and self.takes_asked and self.rows.x.numel() <= QUICK_VALUES

    def _whole(self, name: str, fold: int, recipes: Recipes) -> Tensor:
        return self._columns[fold].whole(self._stacked.own(getattr(self, name), fold))
