"""From scores to an operating point: the best cut on these data, or the threshold to run at."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from setpoint.decide.certify import certify, is_certifiable
from setpoint.decide.certify_groups import certify_each_group, certify_gap
from setpoint.decide.cut import find
from setpoint.decide.estimate import estimate
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadGroups, BadProblem, BadSetting, NotCertified, SetpointError, TooFewSamples
from setpoint.measure.sample import Sample, check_sample, name_groups
from setpoint.problem.language import read_problem
from setpoint.problem.point import Certificate, OperatingPoint, refuse_absent_classes
from setpoint.problem.problem import Problem
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
    columns = _gathered(scores, labels, weights, groups, Processes.of(process_group))
    sample, names = _judged_sample(problem, *columns)
    return OperatingPoint.at(problem, find(problem, sample).thresholds, sample, names)


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
    columns = _gathered(scores, labels, weights, groups, Processes.of(process_group))
    if per_group and (problem.group is not None or problem.over is not None or confidence is None):
        raise BadSetting("per_group certifies plain bounds in every group: it needs confidence=, and no gap or area")
    sample, names = _judged_sample(problem, *columns, by_group=per_group)
    if confidence is None:
        return OperatingPoint.at(problem, find(problem, sample).thresholds, sample, names)
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
    point = OperatingPoint.at(problem, thresholds, sample, names, certificate)
    return replace(point, estimates=estimate(problem, thresholds, sample, confidence, found_here=certificate is None))


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
    refuse_absent_classes(problem, wide)
    if names:
        wide = replace(wide, n_groups=len(names))
    return wide, names


def _gathered(scores: Any, labels: Any, weights: Any, groups: Any, processes: Processes) -> tuple[Any, Any, Any, Any]:
    """Scores, labels, weights and the names of groups of all processes; of none of them if one was given bad ones."""
    if processes.alone:
        return scores, labels, weights, groups
    own: Any
    try:
        sample = check_sample(scores, labels, weights).double()
        names = None
        if groups is not None:
            codes, known = name_groups(groups)
            names = np.array(known, dtype=object)[codes.numpy()]
        own = (sample.scores.cpu(), sample.labels.cpu(), None if weights is None else sample.weights, names)
    except SetpointError as cause:
        own = cause
    parts = [part for part in processes.all_objects(own) if isinstance(part, SetpointError) or len(part[0])]
    for part in parts:
        if isinstance(part, SetpointError):
            raise part
    if not parts:
        return scores, labels, weights, groups
    some_weights = any(part[2] is not None for part in parts)
    some_groups = any(part[3] is not None for part in parts)
    if some_groups and any(part[3] is None for part in parts):
        raise BadGroups("some processes pass groups and others do not; pass groups= on all of them")
    return (
        torch.cat([part[0] for part in parts]),
        torch.cat([part[1] for part in parts]),
        torch.cat([torch.ones_like(p[0]) if p[2] is None else p[2].cpu() for p in parts]) if some_weights else None,
        np.concatenate([part[3] for part in parts]) if some_groups else None,
    )
