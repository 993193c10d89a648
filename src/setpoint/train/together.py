"""Training in several processes: one start, one gradient, one count of steps, each with rows of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.data.batch import OnEach, is_on_each
from setpoint.data.rows import Rows, read_batch
from setpoint.processes import Processes
from setpoint.train.history import scores_of

T = TypeVar("T")


def averages_itself(model: nn.Module) -> bool:
    """Whether the model's own wrapper (DistributedDataParallel, FSDP) joins the gradients of all processes."""
    # A sharded parameter lies on a mesh of devices; its class would take half a second to import.
    return isinstance(model, DistributedDataParallel) or any(hasattr(p, "device_mesh") for p in model.parameters())


@torch.no_grad()
def share_state(model: nn.Module, processes: Processes, *, parameters: bool) -> None:
    """Take the buffers, and if asked the parameters, of the first process."""
    if processes.alone or averages_itself(model):
        return
    shared = [*model.buffers(), *(model.parameters() if parameters else ())]
    for tensor in shared:
        processes.copy_first(tensor)


@torch.no_grad()
def average_gradients(model: nn.Module, processes: Processes) -> None:
    """The mean of the gradients of all processes, in one round; a process without one has zeros."""
    if processes.alone or averages_itself(model):
        return
    learned = [p for p in model.parameters() if p.requires_grad]
    kinds: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
    for parameter in learned:
        kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    for of_kind in kinds.values():
        has = torch.stack([p.new_tensor(float(p.grad is not None)) for p in of_kind])
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in of_kind]
        whole = processes.sum(torch.cat([has, *(part.flatten() for part in parts)])) / processes.size
        sizes = [len(of_kind), *(part.numel() for part in parts)]
        used, *gradients = whole.split(sizes)
        for parameter, gradient, anyone in zip(of_kind, gradients, used.tolist()):
            if anyone > 0:
                parameter.grad = gradient.view_as(parameter)


def nothing_of(batch: Rows | None) -> Rows:
    """A batch like this one, without rows: how a process takes part in a step for which it has none."""
    return Rows(None, torch.zeros(0)) if batch is None else batch.take(slice(0))


def training_scores(model: nn.Module, batch: Rows) -> Tensor:
    """The scores of a batch; of none without asking the model, unless its wrapper waits for every process."""
    if len(batch.labels) or (averages_itself(model) and batch.x is not None):
        return scores_of(model, batch)
    one = next(model.parameters())
    return torch.zeros(0, dtype=one.dtype, device=one.device, requires_grad=True)


def in_step(batches: Iterable[T], processes: Processes) -> Iterator[T | None]:
    """Batches as long as any process has one; None when it is not this one's turn any more."""
    left = iter(batches)
    while True:
        batch = next(left, None)
        # Loaders may differ in length, and the last batch of one is known when it comes: hence a word a step.
        if not processes.largest(float(batch is not None))[0]:
            return
        yield batch


def every_batch(loader: Iterable[Any], processes: Processes) -> Iterable[Any]:
    """The batches of all processes, in the order of ranks, on each of them: for what is done on all rows at once."""
    if processes.alone or is_on_each(loader):
        return loader
    return OnEach(batch for part in processes.all_objects([read_batch(item) for item in loader]) for batch in part)


def whole_rows(rows: Rows, processes: Processes) -> Rows:
    """The rows of all processes."""
    return rows if processes.alone else Rows.join([part for part in processes.all_objects(rows) if len(part.labels)])
