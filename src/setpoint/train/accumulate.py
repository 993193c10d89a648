"""Several micro-batches that count as one: losses that do not add up over samples, on less memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.data.batch import Batch, read_batches
from setpoint.errors import BadSetting
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.solver import Solver
from setpoint.train.history import device_of, scores_of


def accumulate(model: nn.Module, solver: Solver, batches: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """The loss of several batches as if they were one, its gradient added to that of the model; and their scores.

    sp.methods.accumulate(model, solver, micro_batches); optimizer.step(); optimizer.zero_grad()

    Scores of all micro-batches are computed without a graph, the solver is asked once, and each micro-batch is then run
    again to take its part of the gradient. Exact for every solver, at the price of one more forward pass; memory is
    that of one micro-batch. The second pass draws what the first one drew (dropout) and buffers move once. Batches are
    what a loader yields. Under DistributedDataParallel gradients are exchanged once, with the last micro-batch.
    """
    parts = [*read_batches(batches, device_of(model))]
    _refuse_watchers(solver)
    if not parts:
        raise BadSetting("there is no micro-batch; give at least one, without rows if there are none")
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    draws, found = [], []
    with torch.no_grad():
        for part in parts:
            draws.append(_draws())
            found.append(scores_of(model, part))
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
    after = _draws()
    scores = torch.cat(found).requires_grad_()
    whole = {name: _joined(parts, name) for name in ("weights", "groups", "index")}
    loss: Tensor = solver(scores, torch.cat([part.labels for part in parts]), **whole)
    loss.backward()
    assert scores.grad is not None
    for place, (part, slope) in enumerate(zip(parts, scores.grad.split([len(part.labels) for part in parts]))):
        with _alone(model, last=place + 1 == len(parts)):
            _draw_again(draws[place])
            scores_of(model, part).backward(slope)
    _draw_again(after)
    return loss.detach(), scores.detach()


def in_groups(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Batches by so many at a time."""
    group: list[Batch] = []
    for batch in batches:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _refuse_watchers(solver: Solver) -> None:
    for part in solver.modules():
        if isinstance(part, ImplicitLastLayer) or (isinstance(part, ImplicitThreshold) and part.follower is not None):
            raise BadSetting(
                f"{type(part).__name__} here looks into the model as it makes the scores, so that micro-batches cannot "
                "count as one; use larger batches"
            )


def _joined(parts: Sequence[Batch], name: str) -> Tensor | None:
    columns = [getattr(part, name) for part in parts]
    if any(column is None for column in columns):
        if any(column is not None for column in columns):
            raise BadSetting(f"some micro-batches have {name}, others have none; give them to all or to none")
        return None
    return torch.cat(columns)


def _draws() -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _draw_again(state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])


def _alone(model: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[Any]:
    return model.no_sync() if isinstance(model, DistributedDataParallel) and not last else contextlib.nullcontext()
