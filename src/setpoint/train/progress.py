"""The progress of a training by epochs: all that the rest of the training depends on, to be saved and resumed."""

from __future__ import annotations

import copy
import itertools
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from setpoint.data.rows import Rows, read_batches
from setpoint.errors import BadFile
from setpoint.measure.sample import Sample
from setpoint.processes import ALONE, Processes
from setpoint.train.accumulate import in_groups
from setpoint.train.adam import Adam
from setpoint.train.checkpoint import Checkpoint, plain, refusing_damage
from setpoint.train.draws import Draws
from setpoint.train.history import History, join
from setpoint.train.together import in_step

#: The largest number of rows whose scores are kept to judge an epoch by.
MOST_SEEN = 262_144

T = TypeVar("T")


class Coming(Iterator[T]):
    """An iterator whose next items can be looked at before they are taken."""

    def __init__(self, items: Iterable[T]) -> None:
        self.items = iter(items)
        self.read: deque[T] = deque()

    def __next__(self) -> T:
        return self.read.popleft() if self.read else next(self.items)

    def peek(self, number: int) -> list[T]:
        """The next `number` items, or fewer at the end."""
        self.read.extend(itertools.islice(self.items, max(number - len(self.read), 0)))
        return [*itertools.islice(self.read, number)]


@dataclass
class Progress:
    """The modules that learn, the optimizer, the epoch, the batches taken in it, and the best so far.

    `loss` is the sum over the batches taken. `seen` holds every `stride`-th of their `rows`, so that a long epoch takes
    no more memory than a short one. Only buffers and parameters of modules are saved, so a solver that keeps its state
    elsewhere cannot be resumed.
    """

    modules: dict[str, nn.Module]
    optimizer: torch.optim.Optimizer | Adam
    draws: Draws
    processes: Processes = ALONE
    epoch: int = 0
    taken: int = 0
    stopped: bool = False
    loss: Tensor | None = None
    steps: int = 0
    seen: list[Sample] = field(default_factory=list)
    rows: int = 0
    stride: int = 1
    history: History = field(default_factory=list)
    best_epoch: int = -1
    best: tuple[bool, float] | None = None
    best_state: dict[str, Any] | None = None
    snapshots: dict[int, dict[str, Any]] = field(default_factory=dict)
    at_start: dict[str, Any] | None = None
    coming: Coming[list[Rows] | None] = field(default_factory=lambda: Coming(()))

    def resume(self, checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
        """Resume from a checkpoint of this work, or begin one."""
        state = checkpoint.open(identity)
        if state is None:
            if checkpoint.is_on:
                checkpoint.save(self.state())
            return
        with refusing_damage(checkpoint.path):
            self._load(state)

    def batches(
        self, loader: Iterable[Any], device: torch.device, checkpoint: Checkpoint, at_once: int = 1
    ) -> Iterator[list[Rows]]:
        """The remaining batches of this epoch, in lists of `at_once`; a state is saved between them when due.

        A list is empty when this process has no more batches but another process has. A resumed epoch draws its order
        again, from the generators as they were at its start, and skips the batches that were taken.
        """
        now = self.draws.state() if checkpoint.is_on else None
        if self.taken and now is not None and self.at_start is not None:
            self.draws.load(self.at_start)
        else:
            self.at_start = now
        left = in_groups(read_batches(loader, device), at_once)
        for place in range(self.taken):
            if next(left, None) is None and self.processes.alone:
                raise BadFile(f"the loader yielded {place} batches; before the kill it had yielded {self.taken}")
        if self.taken and now is not None:
            self.draws.load(now)
        self.coming = Coming(in_step(left, self.processes))
        for batch in self.coming:
            yield batch or []
            self.taken += 1
            # Batches that were read but not taken are in no checkpoint.
            if not self.coming.read and checkpoint.is_due():
                checkpoint.save(self.state())

    def ahead(self, number: int) -> list[list[Rows]]:
        """The next `number` batches of this epoch, or fewer at the end, without taking them."""
        return [batch or [] for batch in self.coming.peek(number)]

    def saw(self, loss: Tensor, batches: list[Sample]) -> None:
        """Remember the samples and the loss of a step."""
        loss = loss.detach().double()
        self.loss, self.steps = loss if self.loss is None else self.loss + loss, self.steps + 1
        for batch in batches:
            self.seen.append(batch if self.stride == 1 else _every(batch, self.stride, -self.rows % self.stride))
            self.rows += len(batch.scores)
        if self.rows > MOST_SEEN * self.stride:
            self.seen, self.stride = [_every(join(self.seen), 2)], 2 * self.stride

    def judged(self, merit: tuple[bool, float], model: nn.Module) -> None:
        """Keep the model of this epoch if it is the best so far."""
        if self.best is None or merit > self.best:
            self.best_epoch, self.best = self.epoch, merit
            self.best_state = copy.deepcopy(model.state_dict())

    def keep(self, model: nn.Module) -> None:
        """Keep the model of this epoch, however good it is."""
        self.snapshots[self.epoch] = copy.deepcopy(model.state_dict())

    def next_epoch(self, stopped: bool) -> None:
        """Go to the next epoch."""
        self.epoch, self.stopped, self.taken, self.at_start = self.epoch + 1, stopped, 0, None
        self.loss, self.seen = None, []
        self.steps = self.rows = 0
        self.stride = 1

    def state(self) -> dict[str, Any]:
        """The whole progress as a checkpoint can hold it, including the own state of the other processes."""
        own = self._own()
        others = [] if self.processes.alone else self.processes.all_objects(plain(own))[1:]
        return {
            "modules": {name: module_state(module) for name, module in self.modules.items()},
            "optimizer": self.optimizer.state_dict(),
            **own,
            "others": others,
            "loss": self.loss,
            "best_state": None if self.best_state is None else state_parts(self.best_state),
            "snapshots": [[epoch, state_parts(state)] for epoch, state in self.snapshots.items()],
            "best": self.best,
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def _own(self) -> dict[str, Any]:
        """The state that differs between processes."""
        seen = join(self.seen) if self.seen else None
        return {
            "draws": self.draws.state(),
            "at_start": self.at_start,
            "seen": None if seen is None else [getattr(seen, name) for name in _SEEN],
            "rows": self.rows,
            "stride": self.stride,
            "buffers": dict(self.modules["model"].named_buffers()) if not self.processes.alone else {},
        }

    @torch.no_grad()
    def _load(self, state: dict[str, Any]) -> None:
        if self.processes.rank:
            state = {**state, **state["others"][self.processes.rank - 1]}
        for name, module in self.modules.items():
            load_module(module, state["modules"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.at_start, self.loss = state["at_start"], state["loss"]
        self.seen = [] if state["seen"] is None else [Sample(**dict(zip(_SEEN, state["seen"])))]
        self.best_state = None if state["best_state"] is None else state_dict(state["best_state"])
        self.snapshots = {epoch: state_dict(parts) for epoch, parts in state["snapshots"]}
        self.best = state["best"]
        for name in _PLAIN:
            setattr(self, name, state[name])
        self.draws.load(state["draws"])
        for name, value in state.get("buffers", {}).items():
            self.modules["model"].get_buffer(name).copy_(value)


#: The columns of the rows that were trained on, which are kept to judge by.
_SEEN = ("scores", "labels", "weights", "groups", "values", "lists")
_PLAIN = ("epoch", "taken", "stopped", "history", "best_epoch", "steps", "rows", "stride")


def _every(sample: Sample, stride: int, first: int = 0) -> Sample:
    """Every `stride`-th row of a sample, copied, because a view would keep all rows in memory."""
    rows = slice(first, None, stride)
    own: dict[str, Any] = {
        name: None if (part := getattr(sample, name)) is None else part[rows].clone() for name in _SEEN
    }
    return replace(sample, **own)


def module_state(module: nn.Module) -> dict[str, Any]:
    """The state of a module, with the buffers that its `state_dict` leaves out."""
    state = module.state_dict()
    return {**state_parts(state), "left_out": {n: b for n, b in module.named_buffers() if n not in state}}


def load_module(module: nn.Module, saved: dict[str, Any]) -> None:
    """Set a module to a saved state."""
    module.load_state_dict(state_dict(saved))
    with torch.no_grad():
        for name, value in saved["left_out"].items():
            module.get_buffer(name).copy_(value)


def state_parts(state: dict[str, Any]) -> dict[str, Any]:
    """A `state_dict` as plain data: its values, and the versions of its layers."""
    return {"values": state, "metadata": getattr(state, "_metadata", {})}


def state_dict(parts: dict[str, Any]) -> dict[str, Any]:
    """A `state_dict` from `state_parts`."""
    state: OrderedDict[str, Any] = OrderedDict(parts["values"])
    state._metadata = parts["metadata"]  # type: ignore[attr-defined]
    return state
