"""Recipes for linear models, full batch: cross-entropy to convergence, and the anchored default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.train.batch import Batch, read_batches
from setpoint.train.calibrate import evaluate
from setpoint.train.history import History, record, score
from setpoint.train.linear import Anchor, Rows, Scaling, class_weights, cross_entropy, match, refine
from setpoint.train.select import preference


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
) -> tuple[History, int]:
    """Set the parameters of a linear model; the candidates as rows of history, and which of them it now is."""
    rows, scaling = read_rows(train)
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
        stand("CrossEntropy", cross_entropy(rows, class_weights(rows, recipe.ratio(rows.labels, rows.weights))))
        return history, 0
    stand("CrossEntropy", cross_entropy(rows, class_weights(rows, 1.0)))
    matched, matched_weights = match(problem, rows)
    stand("CrossEntropy(matched)", matched)
    anchor = Anchor(rows.labels, matched_weights, torch.zeros_like(matched))
    for kappa in recipe.kappas:
        stand(f"Anchored({kappa:g})", refine(problem, rows, matched, anchor, kappa))
    best = len(candidates) - 1
    if len(recipe.kappas) > 1:
        best = max(range(len(candidates)), key=lambda i: preference(candidates[i][1]))
    set_layer(model, *scaling.undo(candidates[best][0]))
    return history, best


def read_rows(train: Iterable[Any]) -> tuple[Rows, Scaling]:
    """Everything that a loader yields as standardised rows of a weight above 0."""
    batch = _join([*read_batches(train, torch.device("cpu"))])
    zeros = torch.zeros(len(batch.labels), dtype=torch.float64)
    sample = check_sample(zeros, batch.labels, batch.weights, batch.groups)
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    present = weights > 0
    x, labels, weights = batch.x.double().flatten(1)[present], sample.labels[present], weights[present]
    groups = None if sample.groups is None else sample.groups[present]
    scaling = Scaling.of(x, weights)
    return Rows(scaling.apply(x), labels, weights / weights.mean(), groups), scaling


def _join(batches: list[Batch]) -> Batch:
    if not batches:
        raise BadSetting("the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a spent generator")
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
