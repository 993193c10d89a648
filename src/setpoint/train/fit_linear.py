"""Fit a linear model by a recipe, full batch: make its candidates, judge them, keep one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.capacity import refuse_beyond_memory
from setpoint.data.batch import Batch, Batches, join_batches, read_batches
from setpoint.data.sparse import SparseRows
from setpoint.decide.order import preference
from setpoint.errors import BadFeatures, BadSetting, ShapeMismatch
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.train.again import rows_of
from setpoint.train.checkpoint import Checkpoint, refusing_damage
from setpoint.train.draws import Draws
from setpoint.train.history import History, record, score
from setpoint.train.linear import Rows, Scaling, recipe_bytes
from setpoint.train.recipes import Anchored, Recipes, Ridge
from setpoint.train.trial import judge


def fit_linear(
    model: nn.Linear,
    problem: Problem,
    recipe: Anchored | Ridge,
    train: Iterable[Any],
    held_out: Iterable[Any],
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    *,
    again: bool = False,
    checkpoint: Checkpoint | None = None,
    identity: dict[str, Any] | None = None,
) -> tuple[History, int]:
    """Set the parameters of a linear model; the candidates as rows of history, and which of them it now is.

    With `again`, that one is made once more of training and held-out rows together. A checkpoint keeps the candidates
    that are done; on resuming they are judged again, which is quick.
    """
    made = _Candidates(checkpoint or Checkpoint(None), identity or {}, Draws([train, held_out]))
    rows, scaling = read_rows([train], model)
    if again:
        _refuse_too_large(len(rows.x) + rows_of(held_out), model.in_features)
    recipes = Recipes(problem, rows)
    history: History = []
    candidates: list[tuple[Tensor, OperatingPoint]] = []
    for name, make in recipe.candidates.items():
        (theta,) = made.take(lambda make=make: (make(recipes),))  # type: ignore[misc]
        set_layer(model, *scaling.undo(theta))
        seen = Sample(rows.x @ theta, rows.labels, rows.weights, rows.groups)
        on_train, on_held_out = judge(problem, seen), judge(problem, score(model, held_out))
        history.append(record(problem, len(history), name, seen, on_train, on_held_out))
        candidates.append((theta, on_held_out))
        if on_epoch is not None:
            on_epoch(history[-1])
    best = len(candidates) - 1
    if recipe.chooses:
        best = max(range(len(candidates)), key=lambda i: preference(candidates[i][1]))
    theta = candidates[best][0]
    if again:
        del rows, recipes, seen
        chosen = [*recipe.candidates.values()][best]
        rows, scaling = read_rows([train, held_out], model)
        (theta,) = made.take(lambda: (chosen(Recipes(problem, rows)),))
    set_layer(model, *scaling.undo(theta))
    return history, best


def read_rows(loaders: Iterable[Iterable[Any]], model: nn.Linear) -> tuple[Rows, Scaling]:
    """Everything that loaders yield as standardised rows of a weight above 0."""
    loaders = [loader.in_order() if isinstance(loader, Batches) else loader for loader in loaders]
    for loader in loaders:
        if isinstance(loader, Batches) and isinstance(loader.whole.x, SparseRows):
            # Before all of it is made dense.
            _refuse_too_large(*loader.whole.x.shape)
    batch = _join([batch for loader in loaders for batch in read_batches(loader, torch.device("cpu"))])
    _refuse_too_large(len(batch.x), batch.x[:1].numel())
    zeros = torch.zeros(len(batch.labels), dtype=torch.float64)
    sample = check_sample(zeros, batch.labels, batch.weights, batch.groups)
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    present = weights > 0
    x, labels, groups = batch.x.flatten(1), sample.labels, sample.groups
    if not bool(present.all()):
        x, labels, weights = x[present], labels[present], weights[present]
        groups = None if groups is None else groups[present]
    _refuse_odd_features(x, model)
    scaling = Scaling.of(x, weights)
    return Rows(scaling.apply(x), labels, weights / weights.mean(), groups), scaling


def _refuse_too_large(size: int, features: int) -> None:
    refuse_beyond_memory(
        f"the full-batch recipe for {size} rows of {features} features",
        recipe_bytes(size, features),
        "train in mini-batches, with a solver such as sp.CrossEntropy() or sp.ImplicitThreshold(problem)",
    )


class _Candidates:
    """Candidates in a fixed order, those that an earlier process made taken from its checkpoint."""

    def __init__(self, checkpoint: Checkpoint, identity: dict[str, Any], draws: Draws) -> None:
        self.checkpoint, self.done, self.next = checkpoint, list[tuple[Tensor, ...]](), 0
        state = checkpoint.open(identity)
        # The order of the rows decides the last digits of their sums, so it is drawn from where it was drawn before.
        if state is not None:
            with refusing_damage(checkpoint.path):
                self.done, self.at_start = state["done"], state["at_start"]
                draws.load(self.at_start)
        elif checkpoint.is_on:
            self.at_start = draws.state()
            self._save()

    def _save(self) -> None:
        if self.checkpoint.is_on:
            self.checkpoint.save({"done": self.done, "at_start": self.at_start})

    def take(self, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """The next candidate."""
        if self.next == len(self.done):
            self.done.append(make())
            self._save()
        self.next += 1
        return self.done[self.next - 1]


def _refuse_odd_features(x: Tensor, model: nn.Linear) -> None:
    if not len(x):
        raise BadFeatures("there are no rows to train on; the loader yielded empty batches")
    if x.shape[1] != model.in_features:
        raise BadFeatures(f"the model takes {model.in_features} features, but the rows have {x.shape[1]}")
    # A sum that is finite has no other terms, and is had in a fraction of the time.
    if not bool(x.sum().isfinite()) and not bool(x.isfinite().all()):
        odd = int((~x.isfinite()).any(1).sum())
        raise BadFeatures(f"{odd} of {len(x)} rows hold NaN or infinite features; fill them in or drop those rows")


def _join(batches: list[Batch]) -> Batch:
    if not batches:
        raise BadSetting("the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a spent generator")
    if not all(isinstance(b.x, Tensor) for b in batches):
        kind = next(type(b.x).__name__ for b in batches if not isinstance(b.x, Tensor))
        raise ShapeMismatch(f"a linear model takes batches of tensors, but x is a {kind}; use torch.as_tensor(x)")
    return join_batches(batches)


@torch.no_grad()
def set_layer(model: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    """Write parameters into the layer; without a bias of its own the scores shift, which thresholds absorb."""
    model.weight.copy_(weight.reshape(1, -1))
    if model.bias is not None:
        model.bias.copy_(bias.reshape(1))
