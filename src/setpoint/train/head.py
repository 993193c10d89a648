"""Training the last layer alone: its input is computed once, and any problem is then trained on it in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import Batches
from setpoint.data.parts import Data
from setpoint.data.rows import Rows, read_batches
from setpoint.data.split import every_other, strata
from setpoint.data.standardise import Standardiser
from setpoint.decide.calibrate import evaluate
from setpoint.decide.cut import find
from setpoint.decide.order import preference
from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.train.full_batch import set_layer
from setpoint.train.history import device_of, record, scores_of
from setpoint.train.linear import Anchor, refine
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.scoring import uncompiled
from setpoint.train.together import whole_rows
from setpoint.train.work import Work


def find_head(model: nn.Module) -> nn.Linear:
    """The last `nn.Linear` with one output."""
    heads = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == 1]
    if not heads:
        raise BadSetting("the model has no nn.Linear with one output; name its last layer with head=")
    return heads[-1]


def head_features(
    model: nn.Module,
    loader: Iterable[Any],
    head: nn.Module | None = None,
    *,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
) -> Batches:
    """Compute the input of a model's last layer once, as a loader for training that layer alone.

    Args:
        model: The model; it runs in `eval()` mode and is left in the mode it was in.
        loader: Batches for the model.
        head: The layer that makes the scores. None takes the last `nn.Linear` with one output.
        batch_size: The rows per batch of the new loader; None gives all rows at once.
        shuffle: Whether each pass of the new loader draws a new order.
        seed: The seed of that order.

    Returns:
        A loader of the layer's input, with the labels, weights and groups of the given loader.

    Raises:
        BadSetting: If the model has no such layer, or does not call it once per batch.

    Example:
        >>> import torch, setpoint as sp
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> features = sp.methods.head_features(model, sp.Batches(torch.randn(10, 2), torch.arange(10) % 2))
        >>> features.resident.x.shape
        torch.Size([10, 4])
    """
    model = uncompiled(model)
    head = find_head(model) if head is None else head
    caught: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0].detach()))
    was_training = model.training
    model.eval()
    parts = []
    try:
        with torch.no_grad():
            for batch in read_batches(loader, device_of(model)):
                scores_of(model, batch)
                parts.append(replace(batch, x=None))
    finally:
        hook.remove()
        model.train(was_training)
    if len(caught) != len(parts) or not parts:
        raise BadSetting("the head was not called once per batch; pass the layer that makes the scores as head=")
    seen = Rows.join([replace(part, x=x) for part, x in zip(parts, caught)])
    how: dict[str, Any] = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed}
    return Batches(seen.x, seen.labels, weights=seen.weights, groups=seen.groups, **how)


def fit_proximal_head(
    model: nn.Module, problem: Problem, held_out: Iterable[Any], row: int, processes: Processes = ALONE
) -> dict[str, Any] | None:
    """Re-fit the last layer of a trained network to the problem on the held-out rows, if that helps.

    One layer is fitted on each half of the rows, by the implicit objective plus the cross-entropy to the network's own
    probabilities at the threshold, kappa 1. The average of the two layers is kept only if each is no worse than the
    trained layer on the other half, and one is better. Gives a row of history, or None if the model has no linear head
    that can be watched or a half lacks a class.
    """
    try:
        head = find_head(model)
        features = head_features(model, held_out, head)
    except BadSetting:
        return None
    cached = whole_rows(features.resident, processes)
    x = cached.x.double()
    labels = cached.labels.to(x)
    weights = torch.ones_like(labels) if cached.weights is None else cached.weights.to(x)
    bias = torch.zeros(()) if head.bias is None else head.bias.detach().double()[0]
    scaling = Standardiser.of(x, weights)
    start = scaling.redo(head.weight.detach().double()[0], bias)
    rows = Rows(scaling.with_ones(x), labels, weights / weights.mean())
    halves = [every_other(strata(labels), side) for side in (0, 1)]
    if any(not Sample(x[h][:, 0], labels[h], weights[h]).has_both_classes for h in halves):
        return None
    refined = [_refine_near(problem, rows.take(h), start) for h in halves]
    gains = []
    for theta, other in zip(refined, reversed(halves)):
        before, after = (
            preference(evaluate(problem, rows.x[other] @ t, labels[other], weights=weights[other]))
            for t in (start, theta)
        )
        gains.append((after > before) - (after < before))
    kept = min(gains) >= 0 and max(gains) > 0
    theta = (refined[0] + refined[1]) / 2
    sample = rows.sample(rows.x @ theta)
    point = evaluate(problem, sample.scores, labels, weights=rows.weights)
    if kept:
        set_layer(head, *scaling.undo(theta))
    return record(problem, row, "ProximalHead", sample, point, point, kept=kept)


@dataclass(frozen=True)
class Head:
    """Train by another method, then re-fit the last layer to the problem on the held-out rows, if that helps.

    Args:
        method: The method that trains the network.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> by_epochs = sp.methods.ByEpochs(lambda: model, sp.CrossEntropy(), epochs=2)
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.Head(by_epochs), calibration=rest)
        >>> [row["solver"] for row in result.history]
        ['CrossEntropy', 'CrossEntropy', 'ProximalHead']
    """

    method: Method

    @property
    def expected_rows(self) -> int:
        """The number for the method itself."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the method cannot train, or None."""
        return self.method.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train, then re-fit the last layer; the new row of history says whether it was kept."""
        first = self.method.train(problem, data, work)
        row = fit_proximal_head(first.model, problem, data.held_out, len(first.history), work.processes)
        if row is None:
            return first
        best = len(first.history) if row["kept"] else first.best
        return replace(first, history=[*first.history, row], best=best)


def _refine_near(problem: Problem, rows: Rows, start: Tensor) -> Tensor:
    """Refined parameters, anchored to the network's own probabilities at its threshold."""
    threshold = find(problem, rows.sample(rows.x @ start)).thresholds.mean()
    shifted = start.clone()
    shifted[-1] -= threshold
    anchor = Anchor(torch.sigmoid(rows.x @ shifted), rows.weights_or_ones, shifted)
    theta = refine(problem, rows, shifted, anchor, kappa=1.0)
    theta[-1] += threshold
    return theta
