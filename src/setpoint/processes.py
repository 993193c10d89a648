"""Processes that train together, each with its own part of the rows.

Every process must make the same calls in the same order, also when it has no rows. Gradients flow only to the part of
the calling process, which alone can pass them on to its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from setpoint.errors import BadSetting
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: A process group; None: the default one, if there is one; True: the default one, which must be there; False: none.
ProcessGroup = Any
T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The number of processes and the rank of this one.

    `averaged` says whether the gradients of all processes are averaged, as DistributedDataParallel and FSDP do, or
    added up. Where they are averaged, the gradient of each part is made `size` times as large.
    """

    size: int = 1
    rank: int = 0
    group: ProcessGroup = None
    averaged: bool = True

    @classmethod
    def of(cls, process_group: ProcessGroup = None, *, averaged: bool = True) -> Processes:
        """The processes of a group, of the default one, or this one alone."""
        there = torch.distributed.is_available() and torch.distributed.is_initialized()
        if process_group is True and not there:
            raise BadSetting("process_group=True, but there is none: call torch.distributed.init_process_group first")
        if process_group is False or not there:
            return ALONE
        group = None if process_group is None or process_group is True else process_group
        size, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
        if rank < 0:
            raise BadSetting("this process is not one of the given process_group; let its members alone call this")
        return cls(size, rank, group, averaged) if size > 1 else ALONE

    def __deepcopy__(self, memo: Any) -> Processes:
        return self

    @property
    def alone(self) -> bool:
        return self.size == 1

    @property
    def leads(self) -> bool:
        """Whether this is the first process, which alone writes files and prints."""
        return self.rank == 0

    @property
    def gain(self) -> int:
        """The factor on the gradient of a part, so that all parts together give the gradient of the whole."""
        return self.size if self.averaged else 1

    def felt(self, part: Tensor) -> Tensor:
        """The same values, with a gradient that is larger by `gain`."""
        if self.gain == 1 or not part.requires_grad:
            return part
        return part + (self.gain - 1) * (part - part.detach())

    def sum(self, part: Tensor) -> Tensor:
        """The sum over all processes; its gradient flows to the part of this process, times `gain`."""
        if self.alone:
            return part
        whole = part.detach().clone()
        torch.distributed.all_reduce(whole, group=self.group)
        return whole + self.gain * (part - part.detach()) if part.requires_grad else whole

    def largest(self, *numbers: float) -> list[float]:
        """The maximum of each number over all processes."""
        if self.alone:
            return [*numbers]
        # NCCL knows no other memory than that of its devices.
        device = "cuda" if torch.distributed.get_backend(self.group) == "nccl" else "cpu"
        found = torch.tensor(numbers, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX, group=self.group)
        return [float(number) for number in found.tolist()]

    def all(self, part: Tensor) -> list[Tensor]:
        """The tensors of all processes, which are of one shape and dtype, in the order of ranks."""
        if self.alone:
            return [part]
        parts = [torch.empty_like(part) for _ in range(self.size)]
        torch.distributed.all_gather(parts, part.contiguous(), group=self.group)
        return parts

    def copy_first(self, tensor: Tensor) -> None:
        """Overwrite a tensor with that of the first process."""
        if not self.alone:
            torch.distributed.broadcast(tensor, group=self.group, group_src=0)

    def all_objects(self, part: T) -> list[T]:
        """The objects of all processes, by rank. They are pickled: call it once per epoch, not once per step."""
        if self.alone:
            return [part]
        parts: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(parts, part, group=self.group)
        return parts

    def from_first(self, value: T) -> T:
        """The value of the first process; those of the others are ignored."""
        if self.alone:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, group=self.group, group_src=0)
        return box[0]


ALONE = Processes()
