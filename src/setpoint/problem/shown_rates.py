"""The rates that every operating point shows beside those of its ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setpoint.measure.band import BAND, review
from setpoint.measure.classes import CLASSES, Macro, OfClass, as_class_quantity
from setpoint.measure.constraint import Quantity
from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.labels import LABELS, OfLabel
from setpoint.measure.rate import (
    Gap,
    Rate,
    accuracy,
    error,
    f_score,
    flagged,
    fnr,
    fpr,
    npv,
    precision,
    recall,
    tnr,
)
from setpoint.measure.worth import WORTH, Weighted
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Thresholds

if TYPE_CHECKING:
    from torch import Tensor

_SHOWN: tuple[Rate, ...] = (fpr, fnr, recall, tnr, precision, flagged, accuracy, error)
_SHOWN_OF_ALL_CLASSES = (as_class_quantity(error), Macro(recall), Macro(precision), Macro(f_score(1)))
_SHOWN_OF_EACH_CLASS: tuple[Rate, ...] = (recall, precision, flagged)
_SHOWN_OF_EACH_LABEL: tuple[Rate, ...] = (recall, fpr, precision, flagged)


def rates_by_class(thresholds: Thresholds, counts: Tensor) -> dict[str, float]:
    """The rates of each class that every point shows."""
    if not isinstance(thresholds, Shifts):
        return {}
    labels = [int(name) if name.isdecimal() else name for name in thresholds.names]
    each = {rate: rate(counts[0]).tolist() for rate in _SHOWN_OF_EACH_CLASS}
    return {str(OfClass(rate, label)): each[rate][k] for k, label in enumerate(labels) for rate in each}


def rates_by_label(problem: Problem, counts: Tensor) -> dict[str, float]:
    """The objective of each label, and the rates of each label that every point shows."""
    if not isinstance(problem, LabelProblem):
        return {}
    named = enumerate(zip(problem.labels, problem.over_labels.rates))
    each = [OfLabel(rate, label, k) for k, (label, own) in named for rate in (own, *_SHOWN_OF_EACH_LABEL)]
    return {str(quantity): float(quantity(counts)[0]) for quantity in each}


def shown_quantities(problem: Problem) -> list[Quantity]:
    """The rates that every point shows, for the kind of its problem."""
    if problem.kind == WORTH:
        return [Weighted(rate, None) for rate in _SHOWN]
    if problem.kind == CLASSES:
        return list(_SHOWN_OF_ALL_CLASSES)
    if isinstance(problem.objective, InFirst):
        return [InFirst(rate, problem.objective.k) for rate in (precision, recall, hit)]
    if problem.kind == LABELS:
        return []
    if problem.kind == BAND:
        return [review, *map(review.adopt, (*_SHOWN, npv))]
    return list(_SHOWN)


def rates_by_group(problem: Problem, thresholds: Thresholds, counts: Tensor) -> dict[str, float]:
    """Each bounded rate in each group that has samples to count the rate among."""
    rates: dict[str, float] = {}
    for quantity in (c.quantity for c in problem.constraints if thresholds.by_group):
        own = quantity.rate if isinstance(quantity, Gap) else quantity
        if isinstance(quantity, Gap) or problem.group is None:
            sizes = own.size(counts[0]) if isinstance(own, Rate) else counts[0].sum(-1)
            each = zip(thresholds.by_group, own(counts[0]).tolist(), sizes > 0)
            rates |= {f"{own}[{name}]": value for name, value, some in each if some}
    return rates
