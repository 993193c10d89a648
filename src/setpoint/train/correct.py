"""The correction step of implicit thresholds, on k batches that are all scored with the same parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from setpoint.data.rows import Rows, read_batches
from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.solver import Solver
from setpoint.train.history import device_of, join
from setpoint.train.together import nothing_of, training_scores


def correct(model: nn.Module, solver: Solver, batches: Iterable[Any]) -> None:
    """Search the thresholds of a solver on batches that are all scored with the current parameters.

    The model runs in the mode it is in (in training mode with dropout and batch statistics, as in a step), without a
    graph; its buffers stay as they were. Call it before a step; `sp.fit` does so by itself.

    Args:
        model: The model that makes the scores.
        solver: A solver with `Correction(every=n, batches=k)`, by itself or inside another.
        batches: k batches, as a loader yields them.

    Raises:
        BadSetting: If no part of the solver has such a correction, or there are not k batches.

    Example:
        >>> import itertools, torch, setpoint as sp
        >>> x, labels = torch.randn(400, 3), (torch.arange(400) % 2).float()
        >>> loader = sp.Batches(x, labels, batch_size=50, shuffle=True)
        >>> model = torch.nn.Linear(3, 1)
        >>> problem = sp.ask("minimize fnr where fpr <= 10%")
        >>> solver = sp.ImplicitThreshold(problem, correction=sp.losses.Correction(every=100, batches=5))
        >>> sp.methods.correct(model, solver, itertools.islice(loader, 5))
    """
    parts = [*read_batches(batches, device_of(model))]
    waiting = correctable(solver)
    if not waiting:
        raise BadSetting(
            f"{type(solver).__name__} has no sp.losses.Correction(batches=k), so there is nothing to correct"
        )
    for own in waiting:
        if len(parts) != own.correction.batches:
            raise BadSetting(f"the correction is on {own.correction.batches} batches, but {len(parts)} came")
        _correct(model, own, parts)


def correctable(solver: Solver) -> list[ImplicitThreshold]:
    """The parts of a solver with a correction on batches that are scored with the same parameters."""
    return [own for own in solver.modules() if isinstance(own, ImplicitThreshold) and own.correction.batches]


def correct_if_due(
    model: nn.Module, waiting: list[ImplicitThreshold], now: list[Rows], ahead: Callable[[int], list[list[Rows]]]
) -> None:
    """Correct the solvers that need it, on this batch and the next ones of the epoch, k in all.

    With fewer than k batches left, the correction waits for the next epoch.
    """
    for own in waiting:
        if own.needs_correction:
            size = own.correction.batches
            steps = [now, *ahead(size - 1)]
            if len(steps) == size:
                _correct(model, own, [batch for parts in steps for batch in parts])
            elif own.corrected_at < 0:
                raise BadSetting(f"Correction(batches={size}) needs {size} batches per epoch, not {len(steps)}")


@torch.no_grad()
def _correct(model: nn.Module, solver: ImplicitThreshold, batches: list[Rows]) -> None:
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    # A process without rows takes part with an empty batch.
    parts = batches or [nothing_of(None)]
    sample = join([Sample(training_scores(model, b), b.labels, b.weights, b.groups) for b in parts])
    for name, buffer in model.named_buffers():
        buffer.copy_(before[name])
    solver.correct(sample.scores, sample.labels, weights=sample.weights, groups=sample.groups)
