"""Experiment trackers as `fit(on_epoch=...)` hooks: every row of history, as scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from setpoint.integrations.missing import missing
from setpoint.integrations.scalars import scalars

Hook = Callable[[Mapping[str, Any]], None]


class ScalarWriter(Protocol):
    """What is asked of a TensorBoard writer; `torch.utils.tensorboard.SummaryWriter` is one."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...


def to_tensorboard(writer: ScalarWriter) -> Hook:
    """A hook that writes to a `SummaryWriter` of yours, which you also close."""

    def write(row: Mapping[str, Any]) -> None:
        for name, value in scalars(row).items():
            writer.add_scalar(name, value, int(row["epoch"]))

    return write


def to_mlflow(run_id: str | None = None) -> Hook:
    """A hook that writes to an MLflow run, by default the active one (one is started when there is none)."""
    try:
        import mlflow
    except ImportError as cause:
        raise missing("mlflow", "tracking") from cause

    def write(row: Mapping[str, Any]) -> None:
        mlflow.log_metrics(scalars(row), step=int(row["epoch"]), run_id=run_id)

    return write
