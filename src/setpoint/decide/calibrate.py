"""Operating points from scores: the best cut on these data, or the threshold to run at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from setpoint.decide.by_kind import decider
from setpoint.decide.certify import is_certifiable
from setpoint.decide.estimate import estimate
from setpoint.decide.population import independent
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadGroups, BadSetting, SetpointError, TooFewSamples
from setpoint.measure.constraint import CUT
from setpoint.measure.in_first import LISTS
from setpoint.measure.sample import Sample, name_groups
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import about_scores, belonging, read_sample, refuse_absent
from setpoint.processes import Processes, ProcessGroup


def evaluate(
    problem: Problem | str | Mapping[str, str],
    scores: Any,
    labels: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    classes: Sequence[Any] | None = None,
    lists: Any = None,
    process_group: ProcessGroup = False,
) -> OperatingPoint:
    """Find the best threshold on these very data: a point of their curve, not a promise for other data.

    For several classes it is a shift per class, subtracted from the scores before the largest is chosen: exact for two
    classes and for asks about one class alone, found by search otherwise.

    A bound in rows such as `flagged == 100 rows` is about these rows: the 100 highest scores pass. Rows with tied
    scores all pass or none does, so the nearest possible number is taken.

    Args:
        problem: A problem, or the text of an ask; for several labels per row also a mapping from each label to its ask.
        scores: Scores `(n,)`, as a tensor, an array or a list; `(n, K)` for K classes, `(n, L)` for L labels.
        labels: Labels `(n,)` of 0 and 1; for K classes their numbers, or their names where `classes` has them; for L
            labels per row `(n, L)` of 0 and 1, and NaN or None where a label is not known.
        weights: Weights `(n,)`, if any; for asks that name columns, such as `recall weighted by amount`, the values of
            each column by its name.
        groups: The group of each sample, by name or number; needed when the problem compares groups.
        classes: The names of the K classes or L labels, in the order of the columns of the scores; None names them by
            their numbers, from 0 up, or as the ask does.
        lists: The list of each sample, by name or number; needed when the problem is about lists, such as `maximize
            precision in the first 5`.
        process_group: The processes whose data are judged together, as in `sp.calibrate`.

    Returns:
        The threshold, or one per group or class, with the true rates there. If no threshold meets the bounds,
        `feasible` is False and the threshold breaks them least.

    Raises:
        MissingClass: If a rate of the problem has no samples to be a share of.

    Example:
        >>> import setpoint as sp
        >>> point = sp.evaluate("minimize fnr where fpr <= 25%", [0.1, 0.3, 0.6, 0.2, 0.5, 0.9], [0, 0, 0, 0, 1, 1])
        >>> point.threshold, point.rates["fpr"], point.rates["fnr"]
        (0.4, 0.25, 0.0)
    """
    problem, known = about_scores(read_problem(problem, rows=True), scores, classes, labels)
    belongs = belonging(problem, groups, lists)
    columns = _gathered(problem, known, scores, labels, weights, belongs, Processes.of(process_group))
    sample, names = _judged_sample(problem, known, *columns)
    return _told(OperatingPoint.at(problem, decider(problem).best(problem, sample, names), sample), sample)


def calibrate(
    problem: Problem | str | Mapping[str, str],
    scores: Any,
    labels: Any,
    *,
    confidence: float | None = None,
    weights: Any = None,
    groups: Any = None,
    classes: Sequence[Any] | None = None,
    lists: Any = None,
    clusters: Any = None,
    per_group: bool = False,
    process_group: ProcessGroup = False,
) -> OperatingPoint:
    """Set the threshold to run at, on data that the model was not trained on.

    Without `confidence` it is the best threshold on these data, which breaks its bound on new data about half the
    time. With `confidence` the threshold is moved to the safe side until the bounds hold with that probability, and
    the point carries a certificate. Areas, F-scores, metrics and problems without bounds cannot be certified: the
    point is then the best one on these data, with an estimate of its objective.

    Args:
        problem: A problem, or the text of an ask; for several labels per row also a mapping from each label to its ask.
        scores: Scores `(n,)`, as a tensor, an array or a list; `(n, K)` for K classes, `(n, L)` for L labels.
        labels: Labels `(n,)` of 0 and 1; for K classes their numbers, or their names where `classes` has them; for L
            labels per row `(n, L)` of 0 and 1, and NaN or None where a label is not known.
        confidence: The probability with which the bounds are to hold, such as 0.95.
        weights: Weights `(n,)`, if any; unequal weights can be certified as `sp.PopulationWeights` alone. For asks
            that name columns, such as `recall weighted by amount`, the values of each column by its name.
        groups: The group of each sample, by name or number; needed when the problem compares groups, and then each
            group gets a threshold.
        classes: The names of the K classes or L labels, in the order of the columns of the scores; None names them by
            their numbers, from 0 up, or as the ask does.
        lists: The list of each sample, by name or number; needed when the problem is about lists. Lists are the
            samples that a certificate counts.
        clusters: The cluster of each sample, such as the patient, where samples of one cluster depend on each other.
            The certificate then rests on one random sample of each cluster, and says so: its promise is about a random
            row of a random cluster.
        per_group: Give each group a threshold though the problem does not compare groups, and certify every bound in
            every group at once.
        process_group: The processes whose data are taken together; True for the default group. Each process calls
            this with its own data, or with none. It is never assumed: data that every process holds in full would be
            counted once per process, and the certificate would be false.

    Returns:
        The threshold, or one per group or class, with the true rates there, and with a certificate or estimates if
        `confidence` is given. Without it, `limit` says what no shifts of classes could pass, where that is known.

    Raises:
        TooFewSamples: If the samples cannot certify the bounds; the message says how many are needed, and which
            weaker bound they could certify.
        BadProblem: If no number of samples could certify the bounds.

    Example:
        >>> import setpoint as sp, torch
        >>> scores = torch.linspace(0, 1, 1000)
        >>> point = sp.calibrate("minimize fnr where fpr <= 1%", scores, scores > 0.7, confidence=0.95)
        >>> print(point.certificate)
        fpr <= 1% with confidence 95%, from 700 samples (order statistic of the calibration scores)
    """
    problem, known = about_scores(read_problem(problem), scores, classes, labels)
    belongs = belonging(problem, groups, lists)
    weights, most = (weights.weights, weights.most) if isinstance(weights, PopulationWeights) else (weights, None)
    if problem.kind == LISTS and (clusters is not None or most is not None):
        raise BadSetting("a certificate about lists counts whole lists; leave out clusters and population weights")
    processes = Processes.of(process_group)
    if not processes.alone and (clusters is not None or most is not None):
        raise BadSetting("clusters and population weights are not gathered from processes; calibrate on one of them")
    columns = _gathered(problem, known, scores, labels, weights, belongs, processes)
    plain = problem.group is None and problem.over is None and problem.kind == CUT
    if per_group and (not plain or confidence is None):
        raise BadSetting(
            "per_group certifies plain bounds in every group: it needs confidence=, and no gap, area or review"
        )
    sample, names = _judged_sample(problem, known, *columns, by_group=per_group)
    ways, certificate = decider(problem), None
    if confidence is None:
        bare = ways.bounded(problem, sample, ways.best(problem, sample, names))
        return _told(OperatingPoint.at(problem, bare, sample), sample)
    refuse_confidence(confidence)
    drawn = independent(sample, clusters, most)
    if not is_certifiable(problem) and not any(c.relation == "==" for c in problem.constraints):
        thresholds = ways.best(problem, sample, names)
    else:
        try:
            thresholds, certificate = ways.certify(problem, drawn.sample, confidence, names)
        except TooFewSamples as cause:
            raise drawn.said_of_refusal(cause) from cause
        certificate = drawn.said_of(certificate)
    point = _told(OperatingPoint.at(problem, thresholds, sample, certificate), sample)
    return replace(point, estimates=estimate(point, drawn.sample, confidence))


def _told(point: OperatingPoint, sample: Sample) -> OperatingPoint:
    """The point, whose thresholds are shown with as few digits as decide the rows of the sample in the same way."""
    return replace(point, thresholds=point.thresholds.legible(sample.scores.detach().cpu()))


def _judged_sample(
    problem: Problem, known: list[str], scores: Any, labels: Any, weights: Any, groups: Any, *, by_group: bool = False
) -> tuple[Sample, list[str] | None]:
    """A sample in float64 that holds every class the problem is a share of, and the names of its groups or classes."""
    names = None
    if problem.group is not None or by_group:
        if groups is None:
            why = f"'{problem}' compares groups of {problem.group}" if problem.group else "per_group is set"
            raise BadGroups(f"{why}; pass groups=, one per sample")
        groups, names = name_groups(groups)
    own = groups if names or problem.kind == LISTS else None
    wide = read_sample(problem, scores, labels, weights, own, known)
    refuse_absent(problem, wide)
    if names:
        wide = replace(wide, n_groups=len(names))
    return wide, names or known or None


def _gathered(
    problem: Problem, known: list[str], scores: Any, labels: Any, weights: Any, groups: Any, processes: Processes
) -> tuple[Any, Any, Any, Any]:
    """Scores, labels, weights and names of groups of all processes, by rank; an error in one is raised in all."""
    if processes.alone:
        return scores, labels, weights, groups
    if isinstance(weights, Mapping) or problem.kind == LISTS:
        what = "lists" if problem.kind == LISTS else "values of columns"
        raise BadSetting(f"{what} are not gathered from several processes; calibrate on one of them")
    own: Any
    try:
        sample = read_sample(problem, scores, labels, weights, None, known)
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
        torch.cat([torch.ones(len(p[0])).double() if p[2] is None else p[2].cpu() for p in parts])
        if some_weights
        else None,
        np.concatenate([part[3] for part in parts]) if some_groups else None,
    )
