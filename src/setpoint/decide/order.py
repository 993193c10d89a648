"""The two orders of operating points: by preference, to keep the best, and by merit, where one number is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem

#: The price of a broken bound, in units of the objective per unit of violation, as in `ImplicitThreshold`.
BROKEN_PRICE = 10.0


def worth(problem: Problem, objective: float) -> float:
    """The objective with the sign that makes larger better."""
    return objective if problem.maximize else -objective


def preference(point: OperatingPoint) -> tuple[bool, float]:
    """Feasible points by their objective, then infeasible ones by how little they break; larger is better."""
    return point.feasible, worth(point.problem, point.objective) if point.feasible else -point.violation


def preference_of_row(problem: Problem, row: Mapping[str, Any]) -> tuple[bool, float]:
    """The same order for a row of a training's history, by its held-out rows."""
    if row["feasible"]:
        return True, worth(problem, row["held_out"])
    return False, -max(c.violation_at(float(row["bounds"][str(c)]["held_out"])) for c in problem.constraints)


def merit(point: OperatingPoint) -> float:
    """The objective minus the price of broken bounds, for searches and standard errors; larger is better."""
    value = worth(point.problem, point.objective)
    return value if point.feasible else value - BROKEN_PRICE * point.violation
