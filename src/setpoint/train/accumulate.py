"""Several micro-batches that count as one, for losses that are not sums over samples, in less memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.data.rows import Rows, read_batches
from setpoint.errors import BadSetting
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.solver import Solver
from setpoint.train.history import device_of, scores_of


def accumulate(model: nn.Module, solver: Solver, batches: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """Compute the loss of several batches as if they were one, and add its gradient to the model's.

    The scores of all batches are computed without a graph, the solver is called once, and each batch is then run again
    for its part of the gradient. This is exact for every solver, takes the memory of one batch, and costs one more
    forward pass. Dropout draws the same in both passes, and buffers change once. Under DistributedDataParallel
    gradients are exchanged once, with the last batch.

    Args:
        model: The model that makes the scores.
        solver: The loss.
        batches: The batches, as a loader yields them.

    Returns:
        The loss, and the scores of all batches one after the other, both without a graph.

    Raises:
        BadSetting: If there is no batch, if only some batches have weights, groups or an index, or if the solver looks
            into the model as it makes the scores.

    Example:
        >>> import torch, setpoint as sp
        >>> model, solver = torch.nn.Linear(2, 1), sp.CrossEntropy()
        >>> batches = sp.Batches(torch.randn(12, 2), torch.arange(12) % 2, batch_size=4)
        >>> loss, scores = sp.methods.accumulate(model, solver, batches)
        >>> model.weight.grad.shape, scores.shape
        (torch.Size([1, 2]), torch.Size([12]))
    """
    parts = [*read_batches(batches, device_of(model))]
    _refuse_watchers(solver)
    if not parts:
        raise BadSetting("there is no micro-batch; pass at least one, which may be empty")
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
    whole = {name: _joined(parts, name) for name in given_to(solver, parts[0])}
    loss: Tensor = solver(scores, torch.cat([part.labels for part in parts]), **whole)
    loss.backward()
    assert scores.grad is not None
    for place, (part, slope) in enumerate(zip(parts, scores.grad.split([len(part.labels) for part in parts]))):
        with _alone(model, last=place + 1 == len(parts)):
            _draw_again(draws[place])
            scores_of(model, part).backward(slope)
    _draw_again(after)
    return loss.detach(), scores.detach()


def given_to(solver: Solver, batch: Rows) -> dict[str, Tensor | None]:
    """The columns of a batch that a solver takes beside scores and labels."""
    names = ("weights", "groups", "index", *(("lists",) if solver.needs_lists else ()))
    return {name: getattr(batch, name) for name in names}


def in_groups(batches: Iterable[Rows], size: int) -> Iterator[list[Rows]]:
    """Lists of `size` batches; the last list may be shorter."""
    group: list[Rows] = []
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
                f"{type(part).__name__} here looks into the model as it makes the scores, so micro-batches cannot "
                "count as one; use larger batches"
            )


def _joined(parts: Sequence[Rows], name: str) -> Tensor | None:
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
