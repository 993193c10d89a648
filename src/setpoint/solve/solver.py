"""The solver: a drop-in criterion. It checks its input once and leaves the method to its children."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from setpoint.errors import BadScores
from setpoint.measure.joined import joined
from setpoint.measure.looks import may_look
from setpoint.measure.sample import DOUBTS, Sample, check_sample, doubts_of
from setpoint.processes import Processes, ProcessGroup
from setpoint.solve.memory import Memory
from setpoint.solve.refuse import above_zero

S = TypeVar("S", bound="Solver")
#: Steps on a device from one look at the doubts about its batches to the next.
LOOK_EVERY = 100
#: Temperature times the spread of the scores, when nothing else is known of their scale.
SPREADS = 4.0
#: The steepest step that is set by itself.
STEEPEST = 1e12


class Solver(nn.Module, ABC):
    """A criterion: `loss = solver(scores, labels)`, with your own loop, optimizer and sampler.

    All state (thresholds, prices, memory) is in buffers; in `eval()` mode none of it changes. A batch that lacks a
    class is ordinary. Scores that are not finite, labels other than 0 and 1, and shapes that do not match are refused
    by name.

    When `torch.distributed` is initialised, the loss is that of the batches of all processes together, and so are
    thresholds, prices and memory; every process must then call the solver at every step, with no samples if it has
    none. `across` chooses other processes, or none.

    Example:
        >>> import torch, setpoint as sp
        >>> class Hinge(sp.losses.Solver):
        ...     def loss(self, batch, index=None):
        ...         return (1 - (2 * batch.labels - 1) * batch.scores).clamp(min=0).mean()
        >>> float(Hinge()(torch.tensor([2.0, 0.5]), torch.tensor([1.0, 0.0])))
        0.75
    """

    #: Whether `loss` takes the part of this process and joins what it needs of the others; else it is given all.
    takes_parts: ClassVar[bool] = False
    #: Whether training starts with this solver at once; others are warmed up by balanced cross-entropy.
    starts_cold: ClassVar[bool] = False
    #: Whether each row needs its number, `index`, since something is learned for each of them.
    needs_index: ClassVar[bool] = False
    #: Whether each row needs the number of its list, `lists`, and batches hold whole lists.
    needs_lists: ClassVar[bool] = False
    _chosen: Processes | None = None
    _averaged = True

    doubts: Tensor

    #: Whether scores of several labels are taken together, `(n, L)`, even of a linear model.
    takes_labels = False

    def __init__(self) -> None:
        super().__init__()
        # What was wrong with batches at which nobody looked: those of `DOUBTS`, and the loss.
        self.register_buffer("doubts", torch.zeros(len(DOUBTS) + 1, dtype=torch.bool), persistent=False)
        self._unlooked = 0

    def across(self: S, process_group: ProcessGroup = None, *, averaged: bool = True) -> S:
        """Choose whose batches count as one: a process group, all (None or True), or this process alone (False).

        Gradients are made for those who average them over processes, as DistributedDataParallel and FSDP do; for
        those who add them up set `averaged` to False.
        """
        chosen = None if process_group is None else Processes.of(process_group)
        for solver in self.modules():
            if isinstance(solver, Solver):
                solver._chosen, solver._averaged = chosen, averaged
        return self

    @property
    def processes(self) -> Processes:
        """Those that train together."""
        chosen = Processes.of() if self._chosen is None else self._chosen
        return chosen if chosen.averaged == self._averaged else replace(chosen, averaged=self._averaged)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar.

        Args:
            scores: Score of each sample, `(n,)`.
            labels: 1 for a positive, 0 for a negative.
            weights: Weight of each sample; None is 1 each.
            groups: Group number of each sample, for problems that compare groups.
            index: Number of each sample among all training samples, for solvers that price each of them.

        Returns:
            The loss, with a gradient to the scores.
        """
        if not _autocasts(scores):
            return self.judged(self.check(scores, labels, weights, groups), index)
        with full_precision(scores):
            return self.judged(self.check(scores, labels, weights, groups), index)

    def judged(self, part: Sample, index: Tensor | None) -> Tensor:
        """The loss of a checked batch together with those of the other processes, in float32 at least."""
        processes = self.processes
        if processes.size == 1:
            return self.refuse_odd_loss(self.loss(part.widened(), index))
        part = replace(part, processes=processes)
        return self.refuse_odd_loss(self.loss(*self._taken(part.widened(), index)))

    def joined_loss(self, part: Sample, index: Tensor | None) -> Tensor:
        """The loss of the parts of all processes; its gradient is that by this one's own."""
        return self.loss(*self._taken(part, index))

    def _taken(self, part: Sample, index: Tensor | None) -> tuple[Sample, Tensor | None]:
        return (part, index) if self.takes_parts else joined(part, index)

    def refuse_odd_loss(self, loss: Tensor) -> Tensor:
        """The loss, if it is a number that can be learned from."""
        if not may_look(loss):
            self.doubts[-1] |= ~loss.detach().isfinite()
            return torch.where(self.doubts.any(), torch.nan, loss)
        value = loss.item()
        if not math.isfinite(value):
            raise BadScores(self._odd_loss(str(value)))
        return loss

    def _odd_loss(self, value: str) -> str:
        return (
            f"the loss of {type(self).__name__} is {value}: numbers too large to count with; lower the learning "
            "rate, or scale the scores or the settings"
        )

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """The border: a batch as this solver takes it, or one clear error. Changes no state."""
        if not isinstance(scores, Tensor) or may_look(scores):
            return check_sample(scores, labels, weights, groups, to_train=True)
        sample = check_sample(scores, labels, weights, groups, look=False)
        self.doubts[:-1] |= doubts_of(sample)
        if not torch.compiler.is_compiling():
            self._unlooked += 1
            if self._unlooked % LOOK_EVERY == 0:
                self.look()
        return sample

    def look(self) -> None:
        """Raise the error of any batch so far whose numbers were not looked at when it came.

        On a device other than the processor, and in a compiled step, looking at numbers costs more than counting
        them. There the loss turns NaN after a batch with scores that are not finite, odd labels or odd weights, and
        every hundredth step, or this call, says what it was.
        """
        # The one wait for the device, once in a hundred steps.
        found = self.doubts.tolist()
        self.doubts.zero_()
        for (error, told), wrong in zip(DOUBTS, found):
            if wrong:
                raise error(f"in a batch of the last {LOOK_EVERY} steps {told}")
        if found[-1]:
            raise BadScores(self._odd_loss("not finite"))

    @abstractmethod
    def loss(self, batch: Sample, index: Tensor | None) -> Tensor:
        """The loss of a checked batch."""

    @property
    def warm_up(self) -> Solver | None:
        """The loss that trains the model before this one; None is balanced cross-entropy."""
        return None

    @torch.no_grad()
    def remember(
        self, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Tensor | None = None
    ) -> None:
        """Take a batch into the memory, without a step. Solvers without a memory ignore it.

        Call it while another loss trains the model, so that this solver begins with a full memory.

        Args:
            scores: Score of each sample, as for `forward`.
            labels: Label of each sample.
            weights: Weight of each sample; None is 1 each.
            groups: Group number of each sample.

        Example:
            >>> import torch, setpoint as sp
            >>> solver = sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 5%"))
            >>> solver.remember(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
            >>> int(solver.memory.weights.sum())
            2
        """
        if self.training and any(isinstance(part, Memory) for part in self.modules()):
            with full_precision(scores):
                part = replace(self.check(scores, labels, weights, groups), processes=self.processes).widened()
                self.keep(joined(part)[0])

    def keep(self, batch: Sample) -> None:
        """Keep a checked batch of all processes in the memory, if there is one."""
        memory = getattr(self, "memory", None)
        if isinstance(memory, Memory):
            memory.push(batch)

    def inside(self, model: nn.Module) -> contextlib.AbstractContextManager[object]:
        """The time in which this solver trains a model, for solvers that look into it; most need nothing of it."""
        return contextlib.nullcontext()

    def progress(self, held_out: Sample, merit: float) -> float:
        """The value to hand to `step_metric` after an epoch: the merit of the ask on held-out data, by default."""
        return merit

    def step_metric(self, value: float) -> None:
        """Take the held-out metric of an epoch, larger being better; most solvers do nothing with it."""

    def status(self) -> dict[str, Any]:
        """The numbers worth logging, such as thresholds, prices and temperature."""
        return {}


def temperature_buffer(temperature: float | None) -> Tensor:
    """The given temperature, or 0 for one that is still to be set."""
    above_zero(temperature=temperature)
    return torch.tensor(temperature or 0.0)


def settle_temperature(buffer: Tensor, spread: Callable[[], Tensor], dtype: torch.dtype, *, keep: bool) -> Tensor:
    """The temperature in the buffer; the first time that scores have a spread, one over it, kept if asked to."""
    if may_look(buffer) and float(buffer) > 0:
        return buffer.to(dtype)
    with torch.no_grad():
        found = spread()
        # Scores that differ in their last digits only would make it infinite.
        new = torch.where(found > 0, (SPREADS / found).clamp(max=STEEPEST), 0.0).to(dtype)
        temperature = torch.where(buffer > 0, buffer.to(dtype), new)
        if keep:
            buffer.copy_(temperature)
        return torch.where(temperature > 0, temperature, 1.0)


def full_precision(scores: Tensor) -> contextlib.AbstractContextManager[object]:
    """Switches autocast off: it would add up counts in half precision, which cannot count beyond 256."""
    if _autocasts(scores):
        return torch.autocast(scores.device.type if isinstance(scores, Tensor) else "cpu", enabled=False)
    return contextlib.nullcontext()


def _autocasts(scores: Tensor) -> bool:
    device = scores.device.type if isinstance(scores, Tensor) and not scores.is_cpu else "cpu"
    return (device == "cpu" or torch.amp.is_autocast_available(device)) and torch.is_autocast_enabled(device)
