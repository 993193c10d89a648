"""The best decision and the certified one, for problems of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from setpoint.decide.band import find_band
from setpoint.decide.certify import certify
from setpoint.decide.certify_band import certify_band, needed_for_band
from setpoint.decide.certify_groups import certify_each_group, certify_gap
from setpoint.decide.certify_shifts import certify_shifts, needed_for_shifts
from setpoint.decide.cut import find
from setpoint.decide.labels import certify_labels, find_labels, needed_for_labels
from setpoint.decide.lists import certify_lists, find_first, needed_lists
from setpoint.decide.samples_needed import allowed_share, needed
from setpoint.decide.shifts import find_shifts, with_limit
from setpoint.decide.worth import certify_worth, find_worth
from setpoint.errors import BadProblem
from setpoint.measure.band import BAND
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT, Constraint
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.measure.sample import Sample
from setpoint.measure.worth import WORTH
from setpoint.problem.certificate import Certificate
from setpoint.problem.problem import Problem
from setpoint.problem.read_thresholds import thresholds_from
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Thresholds


@dataclass(frozen=True)
class Decider:
    """How problems of one kind are decided.

    Args:
        best: Finds the best decision on a sample, whose groups or classes have these names, if any.
        certify: Finds the best decision at which all bounds hold with a given confidence, likewise.
        needed: The fewest samples, of those that a bound is a share of, with which it can be certified.
        bounded: Adds to a decision how much better any other could be on a sample, where that is not known to be 0.
    """

    best: Callable[[Problem, Sample, Sequence[str] | None], Thresholds]
    certify: Callable[[Problem, Sample, float, Sequence[str] | None], tuple[Thresholds, Certificate]]
    needed: Callable[[Problem, Constraint, float], int] = lambda _, bound, sure: needed(allowed_share(bound), sure)
    bounded: Callable[[Problem, Sample, Thresholds], Thresholds] = lambda problem, sample, found: found


def decider(problem: Problem) -> Decider:
    """The decider for the kind of a problem.

    Raises:
        BadProblem: If problems of that kind are not decided here.
    """
    if problem.kind not in _DECIDERS:
        raise BadProblem(f"'{problem}' can be written down but not decided yet; ask for a rate of two classes")
    return _DECIDERS[problem.kind]


def _best_cut(problem: Problem, sample: Sample, names: Sequence[str] | None) -> Thresholds:
    return thresholds_from(find(problem, sample).thresholds, problem, names)


def _certified_cut(
    problem: Problem, sample: Sample, confidence: float, names: Sequence[str] | None
) -> tuple[Thresholds, Certificate]:
    if names is None:
        found, certificate = certify(problem, sample, confidence)
    elif problem.group is not None:
        found, certificate = certify_gap(problem, sample, list(names), confidence)
    else:
        found, certificate = certify_each_group(problem, sample, list(names), confidence)
    return thresholds_from(found, problem, names), certificate


def _bounded_shifts(problem: Problem, sample: Sample, found: Thresholds) -> Thresholds:
    assert isinstance(found, Shifts)
    return with_limit(problem, sample, found)


_DECIDERS = {
    CUT: Decider(_best_cut, _certified_cut),
    BAND: Decider(
        lambda problem, sample, names: find_band(problem, sample),
        lambda problem, sample, confidence, names: certify_band(problem, sample, confidence),
        needed_for_band,
    ),
    WORTH: Decider(find_worth, certify_worth),
    CLASSES: Decider(find_shifts, certify_shifts, needed_for_shifts, _bounded_shifts),
    LISTS: Decider(find_first, certify_lists, needed_lists),
    LABELS: Decider(find_labels, certify_labels, needed_for_labels),
}
