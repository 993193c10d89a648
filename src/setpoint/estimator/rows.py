"""The input beside the features: two classes, weights and groups; and the split of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from setpoint.data.split import split, split_clusters, strata
from setpoint.decide.population import cluster_codes
from setpoint.decide.samples_needed import safe_side
from setpoint.errors import BadGroups, BadLabels, BadProblem, BadSetting, BadWeights, ShapeMismatch, TooFewSamples
from setpoint.measure.classes import CLASSES
from setpoint.measure.labels import LABELS
from setpoint.measure.lists import number_lists
from setpoint.measure.rate import Gap
from setpoint.measure.sample import name_groups, present_values
from setpoint.measure.values import stack_values
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import ROWS, belonging

#: The least number of rows per class in a part; fewer say almost nothing about a threshold.
FEWEST = 5
#: The warning when there are fewer rows, and no certificate is asked for.
SHARED = "the threshold is set on the rows the model is trained on, and looks better than it is"
#: Row numbers, or the number of the class of each row.
Numbers = NDArray[np.int64]


def read_ask(question: Any) -> Problem:
    """The problem, from a problem, a text, or a mapping from each label to its ask."""
    if not isinstance(question, str | Problem | Mapping):
        raise BadProblem(f"ask must be a text such as 'minimize fnr where fpr <= 5%' or a problem, got {question!r}")
    return read_problem(question)


def classes_for(problem: Problem, y: NDArray[Any]) -> tuple[Problem, NDArray[Any], Numbers]:
    """The problem with the numbers of its classes, the sorted classes of `y`, and the place of each row's among them.

    Two classes, unless the ask is about classes, or about errors alone, which more than two classes have as well.
    """
    many = problem.is_of_errors and len(np.unique(y)) > 2
    if problem.kind != CLASSES and not many:
        return problem, *two_classes(y)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise BadLabels(f"y holds one class, {classes.tolist()[0]!r}; hand over rows of more than one class")
    return problem.resolved(names_of(classes)), classes, codes


def names_of(classes: NDArray[Any]) -> list[str]:
    """The names by which an ask knows classes: 1 and 1.0 are the same."""
    values = classes.tolist()
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]


def is_foreseeable(problem: Problem) -> bool:
    """Whether the number of samples alone tells if all bounds can be certified, whatever the scores are."""
    return problem.kind != CLASSES and all(safe_side(c) or isinstance(c.quantity, Gap) for c in problem.constraints)


def refuse_positive(problem: Problem, positive: Any) -> None:
    """Refuse a positive class beside an ask about classes or labels."""
    if problem.kind in (CLASSES, LABELS) and positive is not None:
        raise BadSetting(f"positive sets one class against the rest, but '{problem}' is about all; leave it out")


def two_classes(y: NDArray[Any]) -> tuple[NDArray[Any], Numbers]:
    """The two classes of `y`, sorted, and the place of each row's class among them."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        raise BadLabels(f"y holds one class, {classes.tolist()[0]!r}; hand over rows of both classes")
    if len(classes) != 2:
        listed = ", ".join(map(repr, classes.tolist()[:4])) + (", ..." if len(classes) > 4 else "")
        raise BadLabels(f"Only binary classification is supported. y holds {len(classes)} classes: {listed}")
    return classes, codes


def refuse_missing(y: Any) -> None:
    """Refuse labels of which some are missing, before scikit-learn sorts them, or takes a missing one for a class."""
    if y is not None and not scipy.sparse.issparse(y):
        present_values(y, "labels", "drop those rows", BadLabels, "y")


def known_codes(y: Any, classes: NDArray[Any]) -> Numbers:
    """The place of each row's class among the known classes."""
    refuse_missing(y)
    values = np.asarray(y, dtype=object).reshape(-1)
    codes = np.full(len(values), -1, dtype=np.int64)
    for place, name in enumerate(classes.tolist()):
        codes[values == name] = place
    if (codes < 0).any():
        *most, last = map(repr, classes.tolist())
        raise BadLabels(f"y holds {values[codes < 0][0]!r}, but the classes are {', '.join(most)} and {last}")
    return codes


def positive_place(classes: NDArray[Any], positive: Any) -> int:
    """The place of the positive class among the two sorted classes; the second by default."""
    names = classes.tolist()
    if positive is None:
        return 1
    if positive not in names:
        raise BadLabels(f"positive is {positive!r}, but the classes are {names[0]!r} and {names[1]!r}")
    return int(names.index(positive))


def read_weights(sample_weight: Any, size: int) -> NDArray[np.float64] | None:
    """One weight per row, 0 or more and not all 0; a single number is the weight of every row."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = np.full(size, weights) if weights.ndim == 0 else weights
    if weights.shape != (size,):
        raise ShapeMismatch(f"sample_weight has shape {weights.shape} for {size} rows; give one number per row")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise BadWeights("sample_weight must be finite and not negative; drop such rows or set their weight to 0")
    if not weights.any():
        raise BadWeights("sample_weight is zero for every row; leave at least one row of each class a weight")
    return weights


def read_groups(problem: Problem, groups: Any, size: int) -> NDArray[Any] | None:
    """One group per row for asks that compare groups, else None."""
    if problem.group is None:
        return None
    if groups is None:
        raise BadGroups(f"'{problem}' compares groups of {problem.group}; pass groups=, one per row")
    values = np.asarray(groups)
    if values.shape != (size,):
        raise ShapeMismatch(f"groups have shape {values.shape} for {size} rows; give one group per row")
    return values


def read_lists(problem: Problem, lists: Any, size: int) -> NDArray[Any] | None:
    """One list per row for asks about lists, else None."""
    lists = belonging(problem, None, lists)
    if lists is None:
        return None
    values = np.asarray(lists)
    if values.shape != (size,):
        raise ShapeMismatch(f"lists have shape {values.shape} for {size} rows; give one list per row")
    return values


def read_values(problem: Problem, values: Any, X: Any, size: int) -> NDArray[np.float64] | None:
    """The values of the columns that the ask names, `(n, C)`, from `values` or else from a frame X; None if none."""
    if not problem.columns:
        if values is not None:
            raise BadWeights(f"'{problem}' counts the values of no column; leave out values=")
        return None
    columns: dict[str, Any] = {}
    for name in problem.columns:
        found = next((given for given in (values, X) if name in _columns_of(given)), None)
        if found is None:
            raise BadWeights(
                f"'{problem}' counts the values of {name!r}; pass values={{{name!r}: ...}}, one per row, or X as a "
                "frame with that column"
            )
        columns[name] = np.asarray(found[name])
    stacked: NDArray[np.float64] = stack_values(columns).numpy()
    if len(stacked) != size:
        raise ShapeMismatch(f"values of {problem.columns[0]!r} are {len(stacked)} for {size} rows; give one per row")
    return stacked


def _columns_of(given: Any) -> list[str]:
    """The names of the columns of a frame, an Arrow table or a mapping; none for anything else."""
    names = given if isinstance(given, Mapping) else getattr(given, "column_names", getattr(given, "columns", ()))
    return [str(name) for name in names]


def with_values(problem: Problem, weights: Any, values: NDArray[np.float64] | None) -> Any:
    """Weights as `sp.calibrate` takes them: with the values of each column that the ask names, if it names one."""
    if values is None:
        return weights
    return {**dict(zip(problem.columns, values.T)), **({} if weights is None else {ROWS: weights})}


def check_shares(**shares: Any) -> None:
    """Refuse shares that are not numbers from 0 to below 1, or that leave no rows to train on."""
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
            raise BadSetting(f"{name} must be a share of the rows from 0 up to below 1, such as 0.2, got {share!r}")
    if sum(shares.values()) >= 1:
        raise BadSetting(f"{' and '.join(shares)} leave no rows to train on; make them smaller")


def read_clusters(clusters: Any, size: int) -> NDArray[Any] | None:
    """One cluster per row, by number, if any."""
    return None if clusters is None else cluster_codes(clusters, size).numpy()


def set_aside(
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    seed: int,
    confidence: float | None,
    lists: NDArray[Any] | None = None,
    clusters: NDArray[Any] | None = None,
    **shares: float,
) -> list[Numbers] | None:
    """The row numbers to train on, and those of one part per share, split as tables are; lists and clusters stay whole.

    A part with a share above 0 has at least `FEWEST` rows of each class, and both classes of every group. If there are
    too few rows for that, the result is None after a warning, or with `confidence` an error.
    """
    both, codes = torch.from_numpy(labels), None if groups is None else name_groups(groups)[0]
    each = (1 - sum(shares.values()), *shares.values())
    try:
        if clusters is None:
            whole = None if lists is None else number_lists(lists)[0]
            parts = split(both, each, seed, codes, lists=whole)
        else:
            parts = split_clusters(both, each, seed, name_groups(clusters)[0])
        if min(_fewest(both[rows]) for rows in parts if len(rows)) >= FEWEST:
            return [rows.numpy() for rows in parts]
    except TooFewSamples:
        pass
    positives = int((labels > 0).sum(0).min())
    aside = " and ".join(f"{share:g} for {name}" for name, share in shares.items())
    held = f"{positives} positive and {len(labels) - positives} negative rows are"
    if labels.ndim == 2:
        held = f"{_fewest(both)} rows that have or lack a label are"
    elif labels.max(initial=0) > 1:
        held = f"{np.bincount(labels.astype(int)).min()} rows of the rarest class are"
    shortage = (
        f"{held} too few to set aside {aside} (each part "
        f"needs {FEWEST} of either class{'' if groups is None else ', and both classes of every group'})"
    )
    if confidence is not None:
        raise TooFewSamples(f"{shortage}, and a certificate needs rows of its own; bring more rows")
    warnings.warn(f"{shortage}; {SHARED}", stacklevel=4)
    return None


def _fewest(labels: torch.Tensor) -> int:
    """The rows of the rarest class; of several labels those that have, or lack, the rarest one."""
    if labels.dim() == 2:
        return int(torch.stack([(labels == 1).sum(0), (labels == 0).sum(0)]).min())
    return min(len(kind) for kind in strata(labels))
