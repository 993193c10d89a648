"""Scores and labels as the kind of a problem reads them: 0 and 1, class numbers with K scores, or several labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.errors import BadGroups, BadLabels, BadSetting, BadWeights, MissingClass, ShapeMismatch
from setpoint.measure.classes import CLASSES, OfClass, check_classes
from setpoint.measure.constraint import CUT, Quantity
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import OfLabel, check_labels, of_label
from setpoint.measure.lists import with_lists
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample, check_sample, present_values
from setpoint.measure.values import stack_values
from setpoint.measure.worth import WORTH
from setpoint.on_use import is_tensor, torch
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor

#: The key of the weights of the rows themselves, beside the values of columns.
ROWS = ""
#: Classes that an error names.
_SHOWN = 8


def about_scores(
    problem: Problem, scores: Any, classes: Sequence[Any] | None = None, labels: Any = None
) -> tuple[Problem, list[str]]:
    """The problem with the numbers of its classes, and the names of all classes; no names for a score per row.

    Scores of three columns or more are about classes, and so is `minimize error` of them. Labels of two dimensions are
    about several labels per row.

    Args:
        problem: The problem.
        scores: The scores, `(n,)`, `(n, K)` or `(n, L)`.
        classes: The names of the K classes or L labels; None takes the names that the problem was resolved with, or
            else numbers.
        labels: The labels.
    """
    if classes is None:
        classes = problem.class_names or None
    shape = tuple(scores.shape) if hasattr(scores, "shape") else _shape(scores)
    found = about_labels(problem, labels, classes)
    if found is not None:
        return found, list(found.labels)
    if problem.kind == CLASSES and shape is None:
        raise ShapeMismatch("scores are rows of different lengths; give each row one score per class")
    shape = shape or ()
    width = shape[1] if len(shape) == 2 else 0
    if problem.kind != CLASSES and classes is None and width < 3:
        return problem, []
    if width < 2:
        raise ShapeMismatch(f"scores have shape {shape}; '{problem}' needs one column per class, two or more")
    names = list(map(str, range(width) if classes is None else classes))
    if classes is None and _has_numbers(problem, width):
        return problem, names
    if len(set(names)) < len(names) or len(names) != width:
        raise BadSetting(f"classes= names each of the {width} columns of the scores once, but got {_listed(names)}")
    return problem.resolved(names), names


def about_labels(problem: Problem, labels: Any, names: Sequence[Any] | None) -> LabelProblem | None:
    """The problem about several labels per row, in the order of the columns of the labels; None if it is about one."""
    if isinstance(problem, LabelProblem):
        return problem if names is None else problem.resolved(list(map(str, names)))
    shape = (tuple(labels.shape) if hasattr(labels, "shape") else _shape(labels)) or ()
    if len(shape) != 2 or problem.kind != CUT or shape[1] < 2:
        return None
    known = list(map(str, range(shape[1]) if names is None else names))
    if len(known) != shape[1]:
        raise BadSetting(f"classes= names each of the {shape[1]} columns of the labels, but got {_listed(known)}")
    return LabelProblem.same(problem, known)


def _has_numbers(problem: Problem, n_classes: int) -> bool:
    """Whether all classes of a problem about classes have a number below `n_classes`."""
    named = [q for q in problem.quantities if isinstance(q, OfClass)]
    return problem.kind == CLASSES and all(q.number is not None and q.number < n_classes for q in named)


def _shape(scores: Any) -> tuple[int, ...] | None:
    try:
        return tuple(map(int, np.shape(scores)))
    except ValueError:
        return None


def read_sample(
    problem: Problem, scores: Any, labels: Any, weights: Any = None, groups: Any = None, names: Sequence[str] = ()
) -> Sample:
    """A sample in float64 as the kind of the problem reads it.

    Args:
        problem: The problem.
        scores: Scores `(n,)`, or `(n, K)` for K classes, or `(n, L)` for L labels.
        labels: 0 or 1 per row; for K classes the number or the name of the class; for L labels 0 or 1 in each of L
            columns, and NaN or None where a label is not known.
        weights: One weight per row, if any; for asks that name columns, such as `recall weighted by amount`, the values
            of each column by its name, and the weights of the rows, if any, under the name "".
        groups: The number of the group of each row, if any; for asks about lists the name or number of its list.
        names: The names of the classes, for problems about classes.

    Raises:
        BadWeights: If a column that the ask names is missing, or holds values that cannot be counted.
    """
    if problem.kind == WORTH:
        return _with_values(problem, scores, labels, weights, groups)
    if isinstance(weights, Mapping):
        raise BadWeights(f"'{problem}' names no column, so weights are one number per row, not a mapping")
    if problem.kind == LISTS:
        return with_lists(check_sample(scores, labels, weights).double(), groups)
    if isinstance(problem, LabelProblem):
        return check_labels(scores, labels, weights, n_labels=len(problem.labels)).double()
    if problem.kind != CLASSES:
        return check_sample(scores, labels, weights, groups).double()
    sample = check_classes(scores, class_numbers(labels, names), weights, n_classes=len(names) or None).double()
    return sample if weights is not None else replace(sample, weights=None)


def _with_values(problem: Problem, scores: Any, labels: Any, weights: Any, groups: Any) -> Sample:
    """A sample with the values of the columns that the problem names."""
    weights, values = _by_column(problem, weights)
    sample = check_sample(scores, labels, weights, groups).double()
    if len(values) != len(sample.scores):
        raise ShapeMismatch(f"{len(sample.scores)} scores came with values of {len(values)} rows")
    return replace(sample, values=values)


def _by_column(problem: Problem, weights: Any) -> tuple[Any, Tensor]:
    if not isinstance(weights, Mapping):
        named = ", ".join(f"{column!r}: ..." for column in problem.columns)
        raise BadWeights(f"'{problem}' counts the values of columns; pass weights={{{named}}}, one value per row")
    missing = [column for column in problem.columns if column not in weights]
    if missing:
        there = ", ".join(map(repr, weights)) or "none"
        raise BadWeights(f"'{problem}' counts the values of {missing[0]!r}; pass them in weights= (there: {there})")
    return weights.get(ROWS), stack_values({column: weights[column] for column in problem.columns})


def belonging(problem: Problem, groups: Any, lists: Any) -> Any:
    """The list of each row for an ask about lists, else its group, if any.

    Raises:
        BadGroups: If lists are missing, or given though the ask is not about lists.
    """
    if problem.kind == LISTS and lists is None:
        raise BadGroups(f"'{problem}' is about lists; pass lists=, the name or number of the list of each row")
    if problem.kind != LISTS and lists is not None:
        raise BadGroups(f"'{problem}' is not about lists, as 'maximize precision in the first 5' is; leave lists= out")
    return groups if lists is None else lists


def weights_of(problem: Problem, sample: Sample) -> Any:
    """The weights of a sample as `read_sample` takes them, with the values of each column that the problem names."""
    if sample.values is None:
        return sample.weights
    columns = dict(zip(problem.columns, sample.values.unbind(1)))
    return columns if sample.weights is None else {ROWS: sample.weights, **columns}


def class_numbers(labels: Any, names: Sequence[str]) -> Any:
    """The number of the class of each row where labels are names; numbers as they are."""
    if is_tensor(labels):
        return labels
    values = present_values(labels, "labels", "drop those samples", BadLabels)
    if values.dtype.kind not in "OUS":
        return labels
    if not any(isinstance(value, str) for value in values.flat):
        return labels
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [str(value) for value in values.flat if str(value) not in numbers]
    if unknown:
        raise BadLabels(f"labels hold {unknown[0]!r}, which is none of the classes {_listed(names)}")
    return torch.tensor([numbers[str(value)] for value in values.flat])


def refuse_absent(problem: Problem, sample: Sample, asked: Sequence[Quantity] | None = None) -> None:
    """Refuse a sample without weight in a class that a rate is a share of: a rate that is `asked`, or any."""
    if isinstance(problem, LabelProblem):
        _refuse_absent_labels(problem, sample, asked)
        return
    if problem.kind != CLASSES:
        problem.refuse_absent_classes(sample, asked)
        return
    problem.refuse_nothing(sample)
    weights = torch.ones_like(sample.scores[:, 0]) if sample.weights is None else sample.weights
    sizes = torch.bincount(sample.labels, weights, minlength=sample.scores.shape[1])
    for quantity in problem.quantities if asked is None else asked:
        if isinstance(quantity, OfClass) and isinstance(quantity.rate, Rate) and quantity.rate.has_fixed_whole:
            own = sizes[quantity.k]
            nothing = torch.stack([torch.zeros_like(own), torch.zeros_like(own), own, sizes.sum() - own])
            if float(quantity.rate.size(nothing)) <= 0:
                which = "that class" if own <= 0 else "the other classes"
                raise MissingClass(f"{quantity} needs samples of {which}, but these {len(sample.labels)} hold none")


def _refuse_absent_labels(problem: LabelProblem, sample: Sample, asked: Sequence[Quantity] | None) -> None:
    """Refuse a sample in which some label has no known entry, or none of a kind that a rate is a share of."""
    problem.refuse_nothing(sample)
    for place, (label, own) in enumerate(problem.each.items()):
        named = None if asked is None else [q.rate for q in asked if isinstance(q, OfLabel) and q.k == place]
        known = of_label(sample, place)
        if named != [] and not len(known.labels):
            raise MissingClass(f"label {label!r} is known for none of the {len(sample.labels)} rows; add rows with it")
        try:
            if named != []:
                own.refuse_absent_classes(known, named)
        except MissingClass as cause:
            raise MissingClass(f"label {label!r}: {cause}") from cause


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
