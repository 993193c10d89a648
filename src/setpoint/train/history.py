"""The history of a training: one dict per epoch or candidate, with the soft and the true values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from setpoint.data.batch import is_on_each
from setpoint.data.rows import Rows, read_batches
from setpoint.errors import BadSetting
from setpoint.measure.joined import joined
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.train.scoring import scorer, scores_by

History = list[dict[str, Any]]
#: What PyTorch says where BatchNorm is to learn from a single value.
_ALONE = "more than 1 value per channel"


def record(
    problem: Problem,
    epoch: int,
    solver: str,
    seen: Sample,
    on_train: OperatingPoint,
    on_held_out: OperatingPoint,
    **more: Any,
) -> dict[str, Any]:
    """One row of history; `soft` is the objective through the smooth step at the true threshold."""
    temperature = more.get("temperature") or 1.0
    # Several labels have a temperature each.
    temperature = sum(temperature) / len(temperature) if isinstance(temperature, list) else temperature
    counts = on_train.thresholds.soft_counts(seen, SigmoidStep(float(temperature or 1.0)))
    return {
        "epoch": epoch,
        "solver": solver,
        "soft": float(problem.objective(counts).mean()),
        "train": on_train.objective,
        "held_out": on_held_out.objective,
        "bounds": {
            str(c): {"train": on_train.rates[str(c.quantity)], "held_out": on_held_out.rates[str(c.quantity)]}
            for c in problem.constraints
        },
        "feasible": on_held_out.feasible,
        **more,
    }


def score(model: nn.Module, loader: Iterable[Any], processes: Processes = ALONE) -> Sample:
    """The scores of all rows of a loader, on all processes, by the model in `eval()` mode."""
    scores = scorer(model)
    parts = [batch.sample(scores(batch.x)) for batch in read_batches(loader, device_of(model))]
    return join_all(parts, ALONE if is_on_each(loader) else processes)


def scores_of(model: nn.Module, batch: Rows) -> Tensor:
    """One score per row, with gradients; a last dimension of size one is dropped."""
    try:
        scores = scores_by(model, batch.x)
    except ValueError as cause:
        if _ALONE not in str(cause):
            raise
        # A single row, as the last batch may be, has no statistics of its own.
        norms = [part for part in model.modules() if isinstance(part, _BatchNorm) and part.training]
        if any(part.running_mean is None for part in norms):
            raise BadSetting(
                "a batch of one row has no statistics for BatchNorm, which keeps none here; give it "
                "track_running_stats=True, or another batch_size"
            ) from cause
        for part in norms:
            part.eval()
        try:
            scores = scores_by(model, batch.x)
        finally:
            for part in norms:
                part.train()
    if torch.is_grad_enabled() and not scores.requires_grad:
        raise BadSetting(
            "the model cannot learn, since its scores have no gradient: all its parameters are frozen, or its forward "
            "detaches them; unfreeze some by requires_grad_(True), and leave out detach(), no_grad() and NumPy"
        )
    return scores


def join(parts: list[Sample]) -> Sample:
    """Join the samples of several batches."""
    if not parts:
        raise BadSetting("the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a spent generator")
    weights = [part.weights for part in parts if part.weights is not None]
    groups = [part.groups for part in parts if part.groups is not None]
    values = [part.values for part in parts if part.values is not None]
    lists = [part.lists for part in parts if part.lists is not None]
    return Sample(
        torch.cat([part.scores for part in parts]),
        torch.cat([part.labels for part in parts]),
        torch.cat(weights) if weights else None,
        torch.cat(groups) if groups else None,
        values=torch.cat(values) if values else None,
        lists=torch.cat(lists) if lists else None,
    )


def join_all(parts: list[Sample], processes: Processes) -> Sample:
    """Join the samples of several batches on all processes, some of which may have none."""
    if processes.alone:
        return join(parts)
    nothing = torch.zeros(0)
    own = join(parts) if parts else Sample(nothing, nothing)
    return joined(replace(own, processes=processes))[0]


def device_of(model: nn.Module) -> torch.device:
    """The device of the model's parameters."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))
