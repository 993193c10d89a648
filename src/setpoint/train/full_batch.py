"""Training linear models on the full batch by a recipe: make its candidates, judge them, keep one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.capacity import beyond_memory, refuse_beyond_memory
from setpoint.data.batch import in_order, resident
from setpoint.data.parts import Data, Pooled
from setpoint.data.rows import Rows, SparseRows, read_batches
from setpoint.data.standardise import Standardiser
from setpoint.decide.order import preference
from setpoint.errors import BadFeatures, BadSetting, ShapeMismatch
from setpoint.measure.classes import check_classes
from setpoint.measure.sample import check_sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.train.history import History, record, score
from setpoint.train.linear import recipe_bytes
from setpoint.train.method import Trained
from setpoint.train.penalty import CAUTION, LinearPenalty, choose_penalty
from setpoint.train.recipes import Candidates, Only, Recipes, is_linear
from setpoint.train.together import every_batch
from setpoint.train.trial import judge
from setpoint.train.work import Work

NAME = "the full-batch recipe"
#: The advice when the full batch does not fit into memory.
IN_BATCHES = "train in mini-batches, by a solver such as cross-entropy (sp.CrossEntropy()) or implicit thresholds"


@dataclass(frozen=True)
class FullBatch:
    """Set the parameters of a linear model by a recipe, on all rows at once.

    Args:
        make: Gives the model: one linear layer with one output.
        recipe: A recipe such as `sp.Anchored()` or `sp.Ridge()`: the candidates, and whether held-out rows choose among
            them. If not, the last and boldest candidate is kept.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> method = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Anchored())
        >>> sp.fit(None, ask, train, held_out, method, calibration=rest).point.feasible
        True
    """

    make: Callable[[], nn.Module]
    recipe: Candidates

    @property
    def expected_rows(self) -> int:
        """One per candidate."""
        return len(self.recipe.candidates)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the recipe cannot train, or None: the rows must be in memory, dense, and not too many."""
        parts = []
        for loader in single_loaders(data.train):
            rows = resident(loader)
            if rows is None and hasattr(loader, "resident"):
                return f"{NAME} needs all rows in memory, but they are read from a file in every epoch"
            if rows is not None and isinstance(rows.x, SparseRows) and getattr(loader, "batch_size", 0) < len(rows.x):
                return f"{NAME} would make all {len(rows.x)} sparse rows dense at once"
            parts += [] if rows is None else [rows.x]
        size, features = sum(len(x) for x in parts), math.prod(parts[0].shape[1:]) if parts else 0
        return beyond_memory(f"{NAME} for {size} rows of {features} features", recipe_bytes(size, features))

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Make the candidates, judge each on the held-out rows, keep one."""
        model = linear_layer(self.make(), self.recipe)
        loaders = [every_batch(loader, work.processes) for loader in single_loaders(data.train)]
        held_out = every_batch(data.held_out, work.processes)
        work.redraw([*loaders, held_out])
        rows, scaling = read_rows(loaders, model)
        recipes = Recipes(problem, rows, self.recipe.penalty or penalty_once(rows, work))
        history: History = []
        found: list[tuple[Tensor, OperatingPoint]] = []
        for name, make in self.recipe.candidates.items():
            theta = work.once(name, partial(make, recipes))
            set_layer(model, *scaling.undo(theta))
            seen = rows.sample(rows.x @ theta)
            on_train, on_held_out = judge(problem, seen), judge(problem, score(model, held_out))
            history.append(record(problem, len(history), name, seen, on_train, on_held_out))
            found.append((theta, on_held_out))
            work.tell(history[-1])
        best = len(found) - 1
        if self.recipe.chooses:
            best = max(range(len(found)), key=lambda place: preference(found[place][1]))
        set_layer(model, *scaling.undo(found[best][0]))
        name = [*self.recipe.candidates][best]
        settled = Only(name, self.recipe.candidates[name], recipes.penalty)
        return Trained(model, history, best, replace(self, recipe=settled))


def penalty_once(rows: Rows, work: Work, caution: float = CAUTION) -> LinearPenalty:
    """The penalty that cross-validation chooses, or that it chose before a kill."""
    return LinearPenalty(**work.once("penalty", lambda: asdict(choose_penalty(rows, caution))))


def single_loaders(loader: Iterable[Any]) -> list[Iterable[Any]]:
    """The loaders that a loader consists of: two where training and held-out rows are pooled, else one."""
    return list(loader.parts) if isinstance(loader, Pooled) else [loader]


def linear_layer(model: nn.Module, recipe: Any) -> nn.Linear:
    """The model, if recipes can train it."""
    if not is_linear(model):
        name = type(recipe).__name__
        raise BadSetting(f"{name} trains nn.Linear models with one output; use a Solver for other models")
    return model


def read_rows(loaders: Iterable[Iterable[Any]], model: nn.Linear) -> tuple[Rows, Standardiser]:
    """All rows of the loaders that have a weight above 0, standardised."""
    loaders = [in_order(loader) for loader in loaders]
    for rows in map(resident, loaders):
        if rows is not None and isinstance(rows.x, SparseRows):
            # Refuse before the rows are made dense.
            _refuse_too_large(*rows.x.shape)
    batch = _join([batch for loader in loaders for batch in read_batches(loader, torch.device("cpu"))])
    _refuse_too_large(len(batch.x), batch.x[:1].numel())
    zeros = torch.zeros(len(batch.labels), dtype=torch.float64)
    if model.out_features == 1:
        sample = check_sample(zeros, batch.labels, batch.weights, batch.groups)
    else:
        sample = check_classes(zeros.unsqueeze(-1).expand(-1, model.out_features), batch.labels, batch.weights)
    weights = torch.ones_like(zeros) if sample.weights is None else sample.weights
    found = replace(
        batch, x=batch.x.flatten(1), labels=sample.labels, weights=weights, groups=sample.groups, index=None
    )
    if not bool((weights > 0).all()):
        found = found.take(weights > 0)
        weights = found.weights_or_ones
    _refuse_odd_features(found.x, model)
    scaling = Standardiser.of(found.x, weights)
    return replace(found, x=scaling.with_ones(found.x), weights=weights / weights.mean()), scaling


def _refuse_too_large(size: int, features: int) -> None:
    refuse_beyond_memory(
        f"{NAME} for {size} rows of {features} features",
        recipe_bytes(size, features),
        IN_BATCHES,
    )


def _refuse_odd_features(x: Tensor, model: nn.Linear) -> None:
    if not len(x):
        raise BadFeatures("there are no rows to train on; the loader yielded empty batches")
    if x.shape[1] != model.in_features:
        raise BadFeatures(f"the model takes {model.in_features} features, but the rows have {x.shape[1]}")
    # A finite sum has only finite terms, and takes a fraction of the time of looking at each.
    if not bool(x.sum().isfinite()) and not bool(x.isfinite().all()):
        odd = int((~x.isfinite()).any(1).sum())
        raise BadFeatures(f"{odd} of {len(x)} rows hold NaN or infinite features; fill them in or drop those rows")


def _join(batches: list[Rows]) -> Rows:
    if not batches:
        raise BadSetting("the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a spent generator")
    if not all(isinstance(b.x, Tensor) for b in batches):
        kind = next(type(b.x).__name__ for b in batches if not isinstance(b.x, Tensor))
        raise ShapeMismatch(f"a linear model takes batches of tensors, but x is a {kind}; use torch.as_tensor(x)")
    return Rows.join(batches)


@torch.no_grad()
def set_layer(model: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    """Write parameters into the layer. A layer without a bias has shifted scores, and so a shifted threshold."""
    model.weight.copy_(weight.reshape(1, -1))
    if model.bias is not None:
        model.bias.copy_(bias.reshape(1))
