"""TensorBoard as a `fit(on_epoch=...)` hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from setpoint.integrations.scalars import scalars


class ScalarWriter(Protocol):
    """What is asked of a writer; `torch.utils.tensorboard.SummaryWriter` is one."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...


def to_tensorboard(writer: ScalarWriter) -> Callable[[Mapping[str, Any]], None]:
    """A hook that writes every row of history to a `SummaryWriter` of yours, which you also close."""

    def write(row: Mapping[str, Any]) -> None:
        for name, value in scalars(row).items():
            writer.add_scalar(name, value, int(row["epoch"]))

    return write
