"""Several labels per row, as scikit-learn has them: Y with one column of 0 and 1 per label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from setpoint.errors import BadLabels, BadSetting, ShapeMismatch
from setpoint.measure.constraint import CUT
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem

Table = NDArray[np.float32]


def is_about_labels(problem: Problem, y: Any) -> bool:
    """Whether each row has several labels: the ask says so, or Y has several columns."""
    if isinstance(problem, LabelProblem):
        return True
    shape = getattr(y, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(y).shape
        except ValueError:
            shape = ()
    return len(shape) == 2 and shape[-1] > 1 and problem.kind == CUT and problem.group is None and problem.over is None


def read_labels(problem: Problem, y: Any) -> tuple[LabelProblem, Table]:
    """The problem about the labels in the order of the columns of Y, and Y itself: 0, 1, and NaN where not known.

    Labels have the names of the columns of a frame; else those of the ask, or numbers from 0 up.
    """
    values = y.toarray() if scipy.sparse.issparse(y) else y
    try:
        table = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values, dtype=np.float32)
    except (TypeError, ValueError) as cause:
        raise BadLabels("Y of several labels holds 0 and 1, and NaN or None where a label is not known") from cause
    if table.ndim != 2:
        raise ShapeMismatch(f"Y has shape {table.shape}; '{problem}' needs one column per label")
    if not (np.isnan(table) | np.isin(table, (0, 1))).all():
        raise BadLabels("Y of several labels holds 0 and 1, and NaN or None where a label is not known")
    names = list(map(str, getattr(y, "columns", ())))
    if not isinstance(problem, LabelProblem):
        return LabelProblem.same(problem, names or list(map(str, range(table.shape[1])))), table
    if table.shape[1] != len(problem.labels):
        raise ShapeMismatch(f"Y has {table.shape[1]} columns, but '{problem}' is about {len(problem.labels)} labels")
    return problem.resolved(names) if names else problem, table


def known_labels(problem: Problem, y: Any) -> Table:
    """Y as `read_labels` gives it, with its columns in the order of the problem."""
    found, table = read_labels(problem, y)
    assert isinstance(problem, LabelProblem)
    order = [found.labels.index(label) for label in problem.labels]
    return table[:, order]


def scores_per_label(model: Any, X: Any, n_labels: int) -> NDArray[np.float64]:
    """One score per label, `(n, L)`: of `decision_function`, or the probability that the row has the label."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        given = model.predict_proba(X)
        scores = np.stack(list(map(_of_one, given, model.classes_)), 1) if isinstance(given, list) else given
        scores = np.asarray(scores, dtype=np.float64)
    else:
        scores = np.zeros(0)
    if scores.ndim != 2 or scores.shape[1] != n_labels:
        raise BadSetting(f"{type(model).__name__} gives no score for each of {n_labels} labels to cut")
    return scores


def _of_one(chances: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """The probability of class 1 of one label; 0 where the model has never seen it."""
    place = np.flatnonzero(np.asarray(classes) == 1)
    return np.asarray(chances[:, place[0]]) if len(place) else np.zeros(len(chances))
