"""A row of history as flat numbers under names that every tracker takes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from setpoint.decide.order import preference
from setpoint.problem.point import OperatingPoint


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Every finite number of a row: `soft`, `train`, `held_out`, `fpr/held_out`, `prices/0`, `temperature`, ...

    The two rates of a bound come under the name of what it bounds; the parts of a list under their places. Words,
    the epoch itself, and numbers that are not finite (a temperature not yet settled) are left out. Of a training on
    held-out rows (`again`) nothing is worth a curve.
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
