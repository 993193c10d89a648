"""From scores to an operating point: the best cut on these data, or the threshold to run at."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from setpoint.decide.certify import certify, is_certifiable
from setpoint.decide.certify_groups import certify_each_group, certify_gap
from setpoint.decide.cut import find
from setpoint.decide.estimate import estimate
from setpoint.decide.gathered import gathered
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadGroups, BadProblem, BadSetting, NotCertified, TooFewSamples
from setpoint.measure.sample import Sample, check_sample, name_groups
from setpoint.problem.certificate import Certificate
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import thresholds_from
from setpoint.processes import Processes, ProcessGroup


def evaluate(
    problem: Problem | str,
    scores: Any,
    labels: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    process_group: ProcessGroup = False,
) -> OperatingPoint:
    """The best feasible cut on these very data: a point of their curve, not a promise for others.

    A bound in rows, `flagged == 100 rows`, is about these rows: the cut at which the 100 highest scores pass. Of rows
    with tied scores all pass or none, so that the nearest number that can be had is taken.
    With a `process_group`, of the data of all its processes, as in `calibrate`.
    """
    problem = read_problem(problem, rows=True)
    columns = gathered(scores, labels, weights, groups, Processes.of(process_group))
    sample, names = _judged_sample(problem, *columns)
    return OperatingPoint.at(problem, thresholds_from(find(problem, sample).thresholds, problem, names), sample)


def calibrate(
    problem: Problem | str,
    scores: Any,
    labels: Any,
    *,
    confidence: float | None = None,
    weights: Any = None,
    groups: Any = None,
    per_group: bool = False,
    process_group: ProcessGroup = False,
) -> OperatingPoint:
    """The threshold to run at, set on data that the model was not trained on.

    Without `confidence` it is the best cut of these data (plug-in), which on new data breaks its bound about
    half the time. With `confidence` the threshold is moved to the safe side until the bounds hold with that
    probability, and the point carries a certificate; if there are too few samples for that, the error says how many
    are needed and what these could certify. Where no promise can be made (areas, F-scores, metrics, or no bound at
    all) the point is the plug-in one with an estimate of its objective, and no certificate.

    `groups`, names or numbers, one a sample, are needed when the problem compares groups, each of which gets a
    threshold. With `per_group` each of them gets one though the problem does not compare them, and every bound is
    certified in every group at once.

    With a `process_group` (True: the default one) the point is that of the data of all its processes, each of which
    makes this call with data of its own, or with none. Never by itself: data that every process has all of would be
    counted again by each, and a certificate be false.
    """
    problem = read_problem(problem)
    processes = Processes.of(process_group)
    scores, labels, weights, groups = gathered(scores, labels, weights, groups, processes)
    if per_group and (problem.group is not None or problem.over is not None or confidence is None):
        raise BadSetting("per_group certifies plain bounds in every group: it needs confidence=, and no gap or area")
    sample, names = _judged_sample(problem, scores, labels, weights, groups, by_group=per_group)
    if confidence is None:
        return OperatingPoint.at(problem, thresholds_from(find(problem, sample).thresholds, problem, names), sample)
    refuse_confidence(confidence)
    certificate: Certificate | None = None
    if not is_certifiable(problem) and not any(c.relation == "==" for c in problem.constraints):
        thresholds = find(problem, sample).thresholds
    elif names is None:
        thresholds, certificate = certify(problem, sample, confidence)
    elif problem.group is not None:
        thresholds, certificate = certify_gap(problem, sample, names, confidence)
    else:
        thresholds, certificate = certify_each_group(problem, sample, names, confidence)
    point = OperatingPoint.at(problem, thresholds_from(thresholds, problem, names), sample, certificate)
    return replace(point, estimates=estimate(point, sample, confidence))


def settle(
    problem: Problem, scores: Any, labels: Any, confidence: float | None, *, weights: Any = None, groups: Any = None
) -> tuple[OperatingPoint, str | None]:
    """As `calibrate`, but where the rows allow no certificate: the plain point, and the sentence that says why.

    A trained model is not thrown away for want of a certificate.
    """
    try:
        return calibrate(problem, scores, labels, confidence=confidence, weights=weights, groups=groups), None
    except (TooFewSamples, BadProblem) as cause:
        if confidence is None:
            raise
        return calibrate(problem, scores, labels, weights=weights, groups=groups), str(cause)


def warn_of_refusal(refusal: str | None) -> None:
    """Warn that a threshold carries no certificate, if it was to carry one."""
    if refusal is not None:
        warnings.warn(f"{refusal}; the threshold is set without a certificate", NotCertified, stacklevel=3)


def _judged_sample(
    problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any, *, by_group: bool = False
) -> tuple[Sample, list[str] | None]:
    """A sample in float64 that holds every class the problem is a share of, and the names of its groups."""
    names = None
    if problem.group is not None or by_group:
        if groups is None:
            why = f"'{problem}' compares groups of {problem.group}" if problem.group else "per_group is set"
            raise BadGroups(f"{why}; pass groups=, one a sample")
        groups, names = name_groups(groups)
    wide = check_sample(scores, labels, weights, groups if names else None).double()
    problem.refuse_absent_classes(wide)
    if names:
        wide = replace(wide, n_groups=len(names))
    return wide, names
