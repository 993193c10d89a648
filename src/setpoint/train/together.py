"""Training in several processes: each has its own rows; start, gradients and number of steps are shared."""

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
    """Whether a wrapper of the model (DistributedDataParallel, FSDP) averages the gradients of all processes."""
    # A sharded parameter lies on a mesh of devices; its class would take half a second to import.
    return isinstance(model, DistributedDataParallel) or any(hasattr(p, "device_mesh") for p in model.parameters())


@torch.no_grad()
def share_state(model: nn.Module, processes: Processes, *, parameters: bool) -> None:
    """Copy the buffers, and if asked the parameters, of the first process to all others."""
    if processes.alone or averages_itself(model):
        return
    shared = [*model.buffers(), *(model.parameters() if parameters else ())]
    for tensor in shared:
        processes.copy_first(tensor)


@torch.no_grad()
def average_gradients(model: nn.Module, processes: Processes) -> None:
    """Replace gradients by their mean over all processes; a process without a gradient counts as zeros."""
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
    """A batch like this one but without rows, for a process that takes part in a step without rows of its own."""
    return Rows(None, torch.zeros(0)) if batch is None else batch.take(slice(0))


def training_scores(model: nn.Module, batch: Rows) -> Tensor:
    """The scores of a batch. For an empty batch the model is run only if its wrapper waits for every process."""
    if len(batch.labels) or (averages_itself(model) and batch.x is not None):
        return scores_of(model, batch)
    one = next(model.parameters())
    return torch.zeros(0, dtype=one.dtype, device=one.device, requires_grad=True)


def in_step(batches: Iterable[T], processes: Processes) -> Iterator[T | None]:
    """Batches as long as any process has one; None once this process has no more."""
    left = iter(batches)
    while True:
        batch = next(left, None)
        # Loaders may differ in length and do not say when they end, so the processes agree before each step.
        if not processes.largest(float(batch is not None))[0]:
            return
        yield batch


def every_batch(loader: Iterable[Any], processes: Processes) -> Iterable[Any]:
    """The batches of all processes, in the order of ranks, on each process: for methods that need all rows at once."""
    if processes.alone or is_on_each(loader):
        return loader
    return OnEach(batch for part in processes.all_objects([read_batch(item) for item in loader]) for batch in part)


def whole_rows(rows: Rows, processes: Processes) -> Rows:
    """The rows of all processes."""
    return rows if processes.alone else Rows.join([part for part in processes.all_objects(rows) if len(part.labels)])
