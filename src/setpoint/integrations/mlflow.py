"""MLflow as a `fit(on_epoch=...)` hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from setpoint.errors import missing
from setpoint.integrations.scalars import scalars

try:
    import mlflow
except ImportError as cause:
    raise missing("mlflow", "tracking", cause) from None


def to_mlflow(run_id: str | None = None) -> Callable[[Mapping[str, Any]], None]:
    """A hook that writes every row of history to a run, by default the active one, started when there is none."""

    def write(row: Mapping[str, Any]) -> None:
        mlflow.log_metrics(scalars(row), step=int(row["epoch"]), run_id=run_id)

    return write
