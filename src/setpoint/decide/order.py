"""Which of two models is better: feasible first, then by the exact metric."""

from __future__ import annotations

from setpoint.problem.point import OperatingPoint


def preference(point: OperatingPoint) -> tuple[bool, float]:
    """Larger is better: feasible points by their objective, infeasible ones by how little they break."""
    if not point.feasible:
        return False, -point.violation
    return True, point.objective if point.problem.maximize else -point.objective
