"""Rows of the terminal and of the page, one for each of several labels."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.measure.labels import OfLabel
from setpoint.problem.labels import LabelProblem
from setpoint.problem.point import OperatingPoint
from setpoint.report.words import show_bound, show_bounded, show_value


@dataclass(frozen=True)
class LabelRow:
    """One label at the thresholds of a point, on the rows that the point was judged on.

    Attributes:
        label: The name of the label.
        objective: The objective of this label and its value; the value alone where all labels have the same ask.
        bounds: Each bounded rate beside its bound, and whether it is beyond that bound.
        threshold: The threshold of this label.
    """

    label: str
    objective: str
    bounds: tuple[tuple[str, bool], ...]
    threshold: float


def label_rows(point: OperatingPoint) -> list[LabelRow]:
    """A row per label, from a point that was judged."""
    problem = point.problem
    assert isinstance(problem, LabelProblem)
    found = []
    for place, ((label, own), cut) in enumerate(zip(problem.each.items(), point.thresholds.values)):
        value = show_value(own.objective, objective_of(point, place))
        bounds = []
        for c in problem.bounds_of(place):
            assert isinstance(c.quantity, OfLabel)
            shown, beyond = show_bounded(c, point.rates, feasible=point.feasible)
            name = "" if problem.is_uniform else f"{c.quantity.rate} "
            bounds.append((f"{name}{shown}" + ("" if problem.is_uniform else f" {c.relation} {show_bound(c)}"), beyond))
        name = "" if problem.is_uniform else f"{own.objective} "
        found.append(LabelRow(label, f"{name}{value}", tuple(bounds), cut))
    return found


def label_heads(problem: LabelProblem) -> tuple[str, list[str]]:
    """The head of the objectives, and those of the bounds: one per bound where all labels have the same ask."""
    first = next(iter(problem.each.values()))
    if not problem.is_uniform:
        return "objective", ["bounds"] if problem.constraints else []
    return str(first.objective), [f"{c.quantity}\n{c.relation} {show_bound(c)}" for c in first.constraints]


def objective_of(point: OperatingPoint, place: int) -> float:
    """The objective of one label by itself, on the rows that the point was judged on."""
    problem = point.problem
    assert isinstance(problem, LabelProblem)
    return point.rates[str(OfLabel(problem.over_labels.rates[place], problem.labels[place]))]


def bounds_held(point: OperatingPoint) -> tuple[int, int]:
    """How many bounds of all labels hold on the rows that the point was judged on, and how many there are."""
    bounds = point.problem.constraints
    # An equality is met within one row, which the rates alone do not tell.
    broken = [show_bounded(c, point.rates, feasible=point.feasible)[1] and c.relation != "==" for c in bounds]
    return len(bounds) - sum(broken), len(bounds)
