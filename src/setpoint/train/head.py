"""The last layer alone: its input cached once, then trained on for any problem in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import Batches, read_batches
from setpoint.data.parts import Data
from setpoint.decide.calibrate import evaluate
from setpoint.decide.cut import find
from setpoint.decide.order import preference
from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.train.history import device_of, record, scores_of
from setpoint.train.linear import Anchor, Rows, Scaling, refine
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.scoring import uncompiled
from setpoint.train.together import whole_batch
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
    """What the head sees of everything a loader yields, computed once: a loader for training the head alone.

    features = sp.methods.head_features(model, train)
    sp.fit(head, problem, train=features, held_out=sp.methods.head_features(model, held_out))
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
                parts.append(batch)
    finally:
        hook.remove()
        model.train(was_training)
    if len(caught) != len(parts) or not parts:
        raise BadSetting("the head was not called once a batch; pass the layer that makes the scores as head=")
    labels, weights, groups = (
        torch.cat([getattr(p, name) for p in parts]) if getattr(parts[0], name) is not None else None
        for name in ("labels", "weights", "groups")
    )
    assert labels is not None
    how: dict[str, Any] = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed}
    return Batches(torch.cat(caught), labels, weights=weights, groups=groups, **how)


def fit_proximal_head(
    model: nn.Module, problem: Problem, held_out: Iterable[Any], row: int, processes: Processes = ALONE
) -> dict[str, Any] | None:
    """Re-fit the head of a trained network to the problem on rows it was not trained on, if that helps.

    The implicit objective plus the cross-entropy to the network's own probabilities at the threshold, kappa 1, on
    each half of the held-out rows; the two heads are averaged. They are kept only if each is no worse than the
    trained head on the half it did not see, and one is better. Returns a row of history, or None when the model
    has no linear head that can be watched or a half lacks a class.
    """
    try:
        head = find_head(model)
        features = head_features(model, held_out, head)
    except BadSetting:
        return None
    cached = whole_batch(features.whole, processes)
    x = cached.x.double()
    labels = cached.labels.to(x)
    weights = torch.ones_like(labels) if cached.weights is None else cached.weights.to(x)
    bias = torch.zeros(()) if head.bias is None else head.bias.detach().double()[0]
    scaling = Scaling.of(x, weights)
    start = scaling.redo(head.weight.detach().double()[0], bias)
    rows = Rows(scaling.apply(x), labels, weights / weights.mean())
    halves = [_half(labels, side) for side in (0, 1)]
    if any(not Sample(x[h][:, 0], labels[h], weights[h]).has_both_classes for h in halves):
        return None
    refined = [_refine_near(problem, Rows(rows.x[h], rows.labels[h], rows.weights[h]), start) for h in halves]
    gains = []
    for theta, other in zip(refined, reversed(halves)):
        before, after = (
            preference(evaluate(problem, rows.x[other] @ t, labels[other], weights=weights[other]))
            for t in (start, theta)
        )
        gains.append((after > before) - (after < before))
    kept = min(gains) >= 0 and max(gains) > 0
    theta = (refined[0] + refined[1]) / 2
    sample = Sample(rows.x @ theta, labels, rows.weights)
    point = evaluate(problem, sample.scores, labels, weights=rows.weights)
    if kept:
        weight, bias = scaling.undo(theta)
        with torch.no_grad():
            head.weight.copy_(weight.reshape(1, -1))
            if head.bias is not None:
                head.bias.copy_(bias.reshape(1))
    return record(problem, row, "ProximalHead", sample, point, point, kept=kept)


@dataclass(frozen=True)
class Head:
    """Train by another method, then re-fit the last layer to the problem on held-out rows, if that helps."""

    method: Method

    @property
    def expected_rows(self) -> int:
        """About how many rows of history there will be."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why this cannot be trained, if so, as for the method itself."""
        return self.method.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train, then try another last layer; its row of history says whether it was kept."""
        first = self.method.train(problem, data, work)
        row = fit_proximal_head(first.model, problem, data.held_out, len(first.history), work.processes)
        if row is None:
            return first
        best = len(first.history) if row["kept"] else first.best
        return replace(first, history=[*first.history, row], best=best)


def _half(labels: Tensor, side: int) -> Tensor:
    """Every other row of each class."""
    classes = [(labels == label).nonzero().squeeze(-1)[side::2] for label in (0, 1)]
    return torch.cat(classes)


def _refine_near(problem: Problem, rows: Rows, start: Tensor) -> Tensor:
    """Refined parameters, held to the probabilities that the network itself gives at its threshold."""
    threshold = find(problem, Sample(rows.x @ start, rows.labels, rows.weights)).thresholds.mean()
    shifted = start.clone()
    shifted[-1] -= threshold
    anchor = Anchor(torch.sigmoid(rows.x @ shifted), rows.weights, shifted)
    theta = refine(problem, rows, shifted, anchor, kappa=1.0)
    theta[-1] += threshold
    return theta
