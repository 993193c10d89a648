"""The problem and the thresholds of a stored operating point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from setpoint.measure.rate import Metric
from setpoint.plain import brief, listed, number, text
from setpoint.problem.language import ask
from setpoint.problem.problem import Problem
from setpoint.problem.read_thresholds import read_thresholds
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Thresholds


def read_decision(data: Mapping[str, Any], metrics: Iterable[Metric] = ()) -> tuple[Problem, Thresholds]:
    """The problem, which has the numbers of its classes if it is about classes, and the thresholds."""
    problem = ask(text(data["ask"]), metrics)
    if "classes" not in data:
        return problem, read_thresholds(data["threshold"], problem)
    names = listed(data["classes"], text)
    problem = problem.resolved(names)
    shifts = read_thresholds(data["threshold"], problem)
    if not isinstance(shifts, Shifts) or list(shifts.names) != names:
        raise TypeError(f"the shifts {brief(data['threshold'])} are not those of its classes")
    return problem, replace(shifts, limit=None if data.get("limit") is None else number(data["limit"]))
