"""The two orders of operating points: by preference, to keep the best, and by merit, where one number is needed."""

from __future__ import annotations

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


def merit(point: OperatingPoint) -> float:
    """The objective minus the price of broken bounds, for searches and standard errors; larger is better."""
    value = worth(point.problem, point.objective)
    return value if point.feasible else value - BROKEN_PRICE * point.violation
