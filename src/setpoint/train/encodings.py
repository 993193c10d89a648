"""How columns become features where the labels must tell: whole numbers as levels too, and words by the target.

Each change is judged by the cross-validated cross-entropy of linear models with a ridge of 1, and made only where it is
better beyond noise. Trees read the amount of a number alone, so levels change nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.column import Categorical, Numeric
from setpoint.data.columns import Columns
from setpoint.data.frame import Frame, numbers
from setpoint.data.learn import MOSTLY_ONCE
from setpoint.data.reading import apply_readings
from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.data.target_mean import Truth, learn_target_mean
from setpoint.train.linear import MATCH_ROWS, some_rows
from setpoint.train.penalty import FOLDS, Validated, deal_folds, rescaled, ridge_path

#: Whole numbers of at least and at most so many different values may have a feature per value.
FEWEST_LEVELS, MOST_LEVELS = 3, 12
#: A value of fewer rows has no feature of its own: the amount says what is known of it.
LEAST_ROWS = 30
#: The standard errors by which a change must be better.
CAUTION = 3.0

Known = TypeVar("Known", bound=Columns)


def choose_encodings(
    columns: Known, frame: Frame, truth: Truth | None, asked: Mapping[str, str]
) -> tuple[Known, list[str]]:
    """The columns with those changes that cross-validate better, and a sentence on each kind of change.

    Args:
        columns: The columns as they were learned from the training rows.
        frame: The training rows.
        truth: Their labels; None for more than two classes, which change nothing.
        asked: The kinds of columns that the user has named; these stay as they are.
    """
    free = [column for column in columns.columns if column.name not in asked]
    levels = {c.name: own for c in free if isinstance(c, Numeric) and (own := _few_values(columns, c, frame))}
    rich = [column.name for column in free if isinstance(column, Categorical) and column.other]
    rich += [name for name, why in columns.dropped if why == MOSTLY_ONCE and name not in asked]
    if truth is None or not (levels or rich) or not _are_enough(truth, columns):
        return columns, []
    notes, trial = [], _Trial(frame, truth)
    best = trial.of(columns)
    for name in rich:
        changed = _by_target(columns, name, frame, truth)
        if _is_better(other := trial.of(changed), best):
            columns, best = changed, other
            notes.append(f"column {name!r} is encoded by the target, which cross-validates better; --hash hashes it")
    scores = rescaled(trial.rows, best.out_of_fold) if levels else best.out_of_fold
    levels = {name: own for name, own in levels.items() if trial.gains_by_levels(scores, columns, name, own)}
    if levels:
        changed = _with_levels(columns, levels)
        if _is_better(trial.of(changed), best):
            columns, names = changed, ", ".join(map(repr, levels))
            notes.append(
                f"the values of {names} have a feature each beside the amount, which cross-validates better in linear "
                "models; --numeric turns that off"
            )
    return columns, notes


def _are_enough(truth: Truth, columns: Columns) -> bool:
    """Whether each fold has two rows of each class, and there are more rows than features."""
    positives = int((truth.labels > 0).sum())
    rows = len(truth.labels)
    return min(positives, rows - positives) >= 2 * FOLDS and rows > len(columns.features)


def _few_values(columns: Columns, column: Numeric, frame: Frame) -> tuple[float, ...]:
    """The frequent values of a column, if all its values are whole and few."""
    if columns.readings[column.name].kind != "number" or column.low % 1 or column.high % 1:
        return ()
    values = numbers(apply_readings(frame.select(column.name), columns.readings)[column.name])
    found, times = np.unique(values[np.isfinite(values)], return_counts=True)
    few = FEWEST_LEVELS <= len(found) <= MOST_LEVELS and not (found % 1).any()
    return tuple(found[times >= LEAST_ROWS].tolist()) if few else ()


def _by_target(columns: Known, name: str, frame: Frame, truth: Truth) -> Known:
    read = apply_readings(frame.select(name), columns.readings)[name]
    rest = [column for column in columns.columns if column.name != name]
    dropped = tuple((other, why) for other, why in columns.dropped if other != name)
    return replace(columns, columns=(*rest, learn_target_mean(read, truth)), dropped=dropped)


def _with_levels(columns: Known, levels: Mapping[str, Sequence[float]]) -> Known:
    changed = (
        replace(column, levels=tuple(levels[column.name]))
        if isinstance(column, Numeric) and column.name in levels
        else column
        for column in columns.columns
    )
    return replace(columns, columns=tuple(changed))


def _is_better(one: Validated, other: Validated) -> bool:
    gain, error = one.gain_over(other)
    return gain > CAUTION * error


class _Trial:
    """The training rows, on which encodings are cross-validated; at most `MATCH_ROWS` of them."""

    def __init__(self, frame: Frame, truth: Truth) -> None:
        labels = torch.from_numpy(np.asarray(truth.labels, dtype=np.float64))
        weights = None if truth.weights is None else torch.from_numpy(np.asarray(truth.weights, dtype=np.float64))
        every = some_rows(Rows(torch.arange(len(labels)), labels, weights), MATCH_ROWS)
        self.frame, self.truth, self.rows, self.places = frame, truth, every, every.x
        self.fold = deal_folds(every)

    def of(self, columns: Columns) -> Validated:
        """The linear model on the features of these columns."""
        features = columns.of_training(columns.encode(self.frame), self.frame, self.truth)[self.places]
        weights = self.rows.weights_or_ones
        x = Standardiser.of(features, weights).with_ones(features)
        return ridge_path(replace(self.rows, x=x), self.fold, (1.0,))[0]

    def gains_by_levels(self, scores: Tensor, columns: Columns, name: str, levels: Sequence[float]) -> bool:
        """Whether a shift of the logits per value of a column, learned on the other folds, is better beyond noise.

        One Newton step from no shift is enough to see that.
        """
        read = apply_readings(self.frame.select(name), columns.readings)[name]
        values = torch.from_numpy(numbers(read))[self.places]
        # A place per level and fold, with one more for all other values.
        is_level = values.unsqueeze(-1) == torch.tensor([levels])
        codes = torch.where(is_level.any(1), is_level.long().argmax(1), len(levels))
        place = codes * FOLDS + self.fold
        labels, weights = self.rows.labels, self.rows.weights_or_ones
        passed = torch.sigmoid(scores)

        def elsewhere(values: Tensor) -> Tensor:
            sums = torch.bincount(place, values, FOLDS * (len(levels) + 1)).view(-1, FOLDS)
            return (sums.sum(1, keepdim=True) - sums).flatten()

        slope, curvature = elsewhere(weights * (passed - labels)), elsewhere(weights * passed * (1 - passed))
        shifted = scores - (slope / (curvature + 1))[place]
        gain = weights * (F.softplus(scores) - F.softplus(shifted) + labels * (shifted - scores))
        return bool(gain.sum() > CAUTION * gain.std() * len(gain) ** 0.5)
