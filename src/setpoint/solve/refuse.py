"""Settings, problems and batches that no solver can use, refused in one sentence."""

from __future__ import annotations

import math
from dataclasses import replace

from setpoint.errors import BadGroups, BadProblem, BadSetting
from setpoint.measure.constraint import CUT
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem


def above_zero(**settings: float | None) -> None:
    """Refuse settings that are not finite numbers above 0; None stands for one that is left out."""
    for name, value in settings.items():
        if value is not None and not 0 < value < math.inf:
            raise BadSetting(f"{name} must be above 0, got {value!r}")


def whole_number(name: str, value: int, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadSetting(f"{name} must be a whole number from {least} up, got {value!r}")
    return value


def finite_start(name: str, value: float | None) -> None:
    if value is not None and not abs(value) <= 1e30:
        raise BadSetting(f"{name} must be a number to start from, or None, got {value!r}")


def check_problem(problem: Problem, n_groups: int | None) -> None:
    """A problem, and the number of groups if it compares any."""
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected a problem, got {problem!r}; turn a text into one with sp.ask")
    problem.refuse_rows()
    if problem.kind != CUT:
        raise BadProblem(f"'{problem}' is decided by cuts that are set after training; train by sp.CrossEntropy()")
    if problem.group is not None and n_groups is None:
        raise BadProblem(f"'{problem}' compares groups of {problem.group}: say how many there are with n_groups=")
    if problem.group is None and n_groups is not None:
        raise BadProblem(f"'{problem}' compares no groups, so it takes no n_groups")


def with_groups(batch: Sample, problem: Problem, n_groups: int | None) -> Sample:
    """The batch as a problem that may compare groups needs it; any of them may be absent."""
    if n_groups is None:
        return batch
    if batch.groups is None:
        raise BadGroups(f"'{problem}' compares groups of {problem.group}; pass groups= with each batch")
    if len(batch.groups) and int(batch.groups.max()) >= n_groups:
        raise BadGroups(f"group {int(batch.groups.max())} in a batch, but n_groups is {n_groups}")
    return replace(batch, n_groups=n_groups)
