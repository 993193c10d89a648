"""Recipes for linear models, full batch: cross-entropy to convergence, and the anchored default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from setpoint.capacity import refuse_beyond_memory
from setpoint.errors import BadFeatures, BadSetting, ShapeMismatch
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.train.batch import Batch, Batches, read_batches
from setpoint.train.calibrate import evaluate
from setpoint.train.checkpoint import Checkpoint, refusing_damage
from setpoint.train.draws import Draws
from setpoint.train.history import History, record, score
from setpoint.train.linear import Anchor, Rows, Scaling, class_weights, cross_entropy, match, recipe_bytes, refine
from setpoint.train.select import preference
from setpoint.train.sparse import SparseRows


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

    def __post_init__(self) -> None:
        CrossEntropy(self.pos_weight)

    def ratio(self, labels: Tensor, weights: Tensor) -> float:
        """How many negatives a positive counts for."""
        if self.pos_weight == "balanced":
            positives = (weights * labels).sum()
            return float((weights.sum() - positives) / positives.clamp(min=1e-300))
        return 1.0 if self.pos_weight is None else float(self.pos_weight)


def fit_linear(
    model: nn.Linear,
    problem: Problem,
    recipe: Anchored | Ridge,
    train: Iterable[Any],
    held_out: Iterable[Any],
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    identity: dict[str, Any] | None = None,
) -> tuple[History, int]:
    """Set the parameters of a linear model; the candidates as rows of history, and which of them it now is.

    A checkpoint keeps the candidates that are done; on resuming they are judged again, which is quick.
    """
    made = _Candidates(checkpoint or Checkpoint(None), identity or {}, Draws([train, held_out]))
    rows, scaling = read_rows(train, model)
    history: History = []
    candidates: list[tuple[Tensor, OperatingPoint]] = []

    def stand(name: str, theta: Tensor) -> None:
        set_layer(model, *scaling.undo(theta))
        seen = Sample(rows.x @ theta, rows.labels, rows.weights)
        on_train = evaluate(problem, seen.scores, seen.labels, weights=seen.weights)
        judged = score(model, held_out)
        on_held_out = evaluate(problem, judged.scores, judged.labels, weights=judged.weights)
        history.append(record(problem, len(history), name, seen, on_train, on_held_out))
        candidates.append((theta, on_held_out))
        if on_epoch is not None:
            on_epoch(history[-1])

    if isinstance(recipe, Ridge):
        ratio = recipe.ratio(rows.labels, rows.weights)
        (theta,) = made.take(lambda: (cross_entropy(rows, class_weights(rows, ratio)),))
        stand("CrossEntropy", theta)
        return history, 0
    (plain,) = made.take(lambda: (cross_entropy(rows, class_weights(rows, 1.0)),))
    stand("CrossEntropy", plain)
    matched, matched_weights = made.take(lambda: match(problem, rows))
    stand("CrossEntropy(matched)", matched)
    anchor = Anchor(rows.labels, matched_weights, torch.zeros_like(matched))
    for kappa in recipe.kappas:
        (theta,) = made.take(lambda kappa=kappa: (refine(problem, rows, matched, anchor, kappa),))  # type: ignore[misc]
        stand(f"Anchored({kappa:g})", theta)
    best = len(candidates) - 1
    if len(recipe.kappas) > 1:
        best = max(range(len(candidates)), key=lambda i: preference(candidates[i][1]))
    set_layer(model, *scaling.undo(candidates[best][0]))
    return history, best


def read_rows(train: Iterable[Any], model: nn.Linear) -> tuple[Rows, Scaling]:
    """Everything that a loader yields as standardised rows of a weight above 0."""
    if isinstance(train, Batches):
        train = train.in_order()
        if isinstance(train.whole.x, SparseRows):
            # Before all of it is made dense.
            _refuse_too_large(*train.whole.x.shape)
    batch = _join([*read_batches(train, torch.device("cpu"))])
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
    if len(batches) == 1:
        return batches[0]
    weights = [b.weights for b in batches if b.weights is not None]
    groups = [b.groups for b in batches if b.groups is not None]
    return Batch(
        torch.cat([b.x for b in batches]),
        torch.cat([b.labels for b in batches]),
        torch.cat(weights) if weights else None,
        torch.cat(groups) if groups else None,
    )


@torch.no_grad()
def set_layer(model: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    """Write parameters into the layer; without a bias of its own the scores shift, which thresholds absorb."""
    model.weight.copy_(weight.reshape(1, -1))
    if model.bias is not None:
        model.bias.copy_(bias.reshape(1))
