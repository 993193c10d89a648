"""Thresholds from plain values, from searches and from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from setpoint.measure.band import BAND
from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS, InFirst
from setpoint.measure.labels import LABELS
from setpoint.plain import brief, listed, named, number
from setpoint.problem.first_of_list import FirstOfList
from setpoint.problem.labels import LabelProblem
from setpoint.problem.per_label import PerLabel
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Band, OneThreshold, PerBound, PerGroup, Threshold, Thresholds

if TYPE_CHECKING:
    from torch import Tensor

#: More thresholds than this are read from no file.
MOST_THRESHOLDS = 100_000


def as_thresholds(value: Thresholds | Threshold, problem: Problem) -> Thresholds:
    """The thresholds that a plain value stands for, of the groups that the problem compares if it does."""
    if isinstance(value, Thresholds):
        return value
    if problem.kind == BAND and isinstance(value, dict):
        return Band(value["low"], value["high"])
    if problem.kind == CLASSES and isinstance(value, dict):
        return Shifts(tuple(value), tuple(value.values()))
    if problem.kind == LISTS:
        return first_rows(problem)
    if problem.kind == LABELS and isinstance(value, dict):
        return PerLabel(tuple(value), tuple(value.values()))
    if isinstance(value, dict):
        return PerGroup(value, problem.group or "group")
    return PerBound(value) if isinstance(value, tuple) else OneThreshold(value)


def first_rows(problem: Problem) -> FirstOfList:
    """The decision of a problem about lists: the rows that its objective looks at are flagged."""
    assert isinstance(problem.objective, InFirst)
    return FirstOfList(problem.objective.k, problem.depth)


def thresholds_from(found: Tensor, problem: Problem, names: Sequence[str] | None = None) -> Thresholds:
    """The thresholds that a search found.

    Args:
        found: the thresholds, `(m,)`, or `(1, G)` for G groups.
        problem: the problem that the thresholds answer.
        names: the names of the groups; without names the groups are numbered.

    Example:
        >>> import torch, setpoint as sp
        >>> from setpoint.problem.read_thresholds import thresholds_from
        >>> thresholds_from(torch.tensor([[0.25, 0.5]]), sp.ask("minimize error where recall.gap(site) <= 5%"))
        PerGroup(plain={'0': 0.25, '1': 0.5}, column='site')
    """
    if found.dim() == 2:
        return as_thresholds(dict(zip(names or map(str, range(found.shape[1])), found[0].tolist())), problem)
    return OneThreshold(float(found[0])) if problem.over is None else PerBound(tuple(found.tolist()))


def read_thresholds(data: Any, problem: Problem) -> Thresholds:
    """The thresholds that `Thresholds.stored` gave.

    Raises:
        TypeError: the data are of another kind or number than the problem asks for.
    """
    if problem.kind == BAND:
        low, high = number(data["low"]), number(data["high"])
        if not low <= high or len(data) != 2:
            raise TypeError(f"expected a lower and an upper cut, found {brief(data)}")
        return Band(low, high)
    if problem.kind == CLASSES:
        shifts = named(data, number, MOST_THRESHOLDS)
        if len(shifts) < 2:
            raise TypeError(f"expected a shift per class, found {brief(data)}")
        return Shifts(tuple(shifts), tuple(shifts.values()))
    if problem.kind == LISTS:
        first = first_rows(problem)
        if data != first.plain:
            raise TypeError(f"expected {first.plain}, found {brief(data)}")
        return first
    if isinstance(problem, LabelProblem):
        cuts = named(data, number, MOST_THRESHOLDS)
        if tuple(cuts) != problem.labels:
            raise TypeError(f"expected a threshold for each of its labels, found {brief(data)}")
        return PerLabel(tuple(cuts), tuple(cuts.values()))
    if problem.over is not None:
        if problem.n_thresholds > MOST_THRESHOLDS or not isinstance(data, list) or len(data) != problem.n_thresholds:
            raise TypeError(f"expected {problem.n_thresholds} thresholds, found {brief(data)}")
        return PerBound(tuple(listed(data, number)))
    if isinstance(data, dict) and data:
        return as_thresholds(named(data, number, MOST_THRESHOLDS), problem)
    return OneThreshold(number(data))
