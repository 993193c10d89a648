"""Rows of history for trackers: as flat numbers, and written to TensorBoard and MLflow by `fit(on_epoch=...)`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from setpoint.decide.order import preference
from setpoint.errors import missing
from setpoint.problem.point import OperatingPoint


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Flatten a row of history to numbers under names that every tracker takes.

    Args:
        row: A row of history, as `fit(on_epoch=...)` is given it.

    Returns:
        The numbers by name: `soft`, `train`, `held_out`, `fpr/held_out`, `prices/0`, ... The rates of a bound are under
        the name of the bounded rate, the parts of a list under their places. Words, the epoch and numbers that are not
        finite are left out; a row of the training on held-out rows too (`again`) gives no numbers.

    Example:
        >>> from setpoint.integrations.trackers import scalars
        >>> scalars({"epoch": 3, "train": 0.25, "bounds": {"fpr <= 1%": {"train": 0.009}}, "prices": [2.0]})
        {'train': 0.25, 'prices/0': 2.0, 'fpr/train': 0.009}
    """
    if row.get("again"):
        return {}
    rest = {name: value for name, value in row.items() if name not in ("epoch", "bounds")}
    rates = {_bounded(bound): values for bound, values in row.get("bounds", {}).items()}
    return {name: value for name, value in _numbers("", {**rest, **rates}) if math.isfinite(value)}


def preference_number(point: OperatingPoint) -> float:
    """One number in the order of `preference`, for those who can monitor only one: larger is better.

    Between 1 and 2 when feasible, rising with the objective; between 0 and 1 when not, falling with the violation.
    """
    feasible, value = preference(point)
    return 1.5 + 0.5 * value / (1 + abs(value)) if feasible else 1 / (1 - value)


def _bounded(bound: str) -> str:
    """`fpr` of `fpr <= 1%`."""
    return re.split(r" (?:<=|>=|==) ", bound)[0]


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(f"{name}/{key}" if name else str(key), part)
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _numbers(f"{name}/{place}", part)
    elif isinstance(value, int | float):
        yield re.sub(r"[^\w./-]+", "_", name), float(value)


class ScalarWriter(Protocol):
    """A writer of numbers, as `torch.utils.tensorboard.SummaryWriter` is."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> Any: ...


def to_tensorboard(writer: ScalarWriter) -> Callable[[Mapping[str, Any]], None]:
    """Make a hook for `fit(on_epoch=...)` that writes every row of history to TensorBoard.

    Args:
        writer: A `SummaryWriter` of yours, which you also close.

    Returns:
        The hook.

    Example:
        >>> from setpoint.integrations.trackers import to_tensorboard
        >>> class Printer:
        ...     def add_scalar(self, tag, scalar_value, global_step):
        ...         print(global_step, tag, scalar_value)
        >>> to_tensorboard(Printer())({"epoch": 3, "train": 0.25})
        3 train 0.25
    """

    def write(row: Mapping[str, Any]) -> None:
        for name, value in scalars(row).items():
            writer.add_scalar(name, value, int(row["epoch"]))

    return write


def to_mlflow(run_id: str | None = None) -> Callable[[Mapping[str, Any]], None]:
    """Make a hook for `fit(on_epoch=...)` that writes every row of history to MLflow.

    Args:
        run_id: The run to write to; if None, the active run, which MLflow starts if there is none.

    Returns:
        The hook.

    Raises:
        MissingPackage: If MLflow is not installed.

    Example:
        ```python
        sp.fit(model, problem, train, held_out, on_epoch=to_mlflow())
        ```
    """
    try:
        import mlflow  # noqa: PLC0415  (slow to import, and the other trackers do without it)
    except ImportError as cause:
        raise missing("mlflow", "tracking", cause) from None

    def write(row: Mapping[str, Any]) -> None:
        mlflow.log_metrics(scalars(row), step=int(row["epoch"]), run_id=run_id)

    return write
