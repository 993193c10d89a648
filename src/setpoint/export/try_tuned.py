"""An exported classifier is tried on its example rows, and on rows made from them, before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import as_frame, holds_numbers, numbers
from setpoint.errors import CannotExport
from setpoint.export.columns import Input
from setpoint.export.made_rows import UNSEEN, MadeRows, at_the_cut, joined
from setpoint.export.verify import PAIRS, ROWS, Verified, as_one_number, refuse_differences, run_session

#: The input of the groups, where each group has its own threshold.
GROUP = Input("group", "group", "words")
#: The name of the input of an array, which has no names of columns.
ARRAY = "X"
#: More columns than these are asked together, not one by one, whether they may be missing.
MOST_ASKED = 200
#: The largest errors of scores by rounding, relative to those of 1 and above: in float64, and in float32.
ERRORS = (1e-12, 1e-6)
_ODD = {"IsNaN": np.nan, "IsInf": np.inf}
Scores = Callable[[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class ExampleRows:
    """Example rows by column: numbers as float64, and words.

    Attributes:
        columns: The values of each column; those of an array are named by their places.
        made: Puts columns into the form in which the classifier takes rows.
        whole: Whether the rows are one array.
    """

    columns: MadeRows
    made: Callable[[MadeRows], Any]
    whole: bool

    @classmethod
    def of(cls, example: Any) -> ExampleRows:
        """The columns of a frame or an array."""
        if not hasattr(example, "columns"):
            values = np.asarray(example, dtype=np.float64)
            columns = {str(place): values[:, place] for place in range(values.shape[1])}
            return cls(columns, lambda rows: np.stack(list(rows.values()), axis=1).astype(np.float64), True)
        frame = type(example)
        return cls(
            {column.name: _column(column) for column in as_frame(example)},
            lambda rows: frame({name: values.tolist() for name, values in rows.items()}),
            False,
        )

    def feeds(self, rows: MadeRows) -> dict[str, NDArray[Any]]:
        """The inputs of the graph: one per column of a frame, or all columns of an array as X."""
        if self.whole:
            return {ARRAY: self.made(rows)}
        return {
            name: (values if _is_words(self.columns[name]) else values.astype(np.float64)).reshape(-1, 1)
            for name, values in rows.items()
        }

    @property
    def free(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name, values in self.columns.items() if not _is_words(values)]

    def refused(self, scores: Scores) -> dict[str, dict[str, NDArray[np.bool_]]]:
        """Per input, and per operator that finds odd numbers: the columns in which Python refuses them."""
        asked = self.free if len(self.free) <= MOST_ASKED else []
        odd: dict[str, list[str]] = {}
        for operator, value in _ODD.items():
            if not self._takes(scores, self.free, value):
                odd[operator] = [name for name in asked if not self._takes(scores, [name], value)] or self.free
        inputs = {ARRAY: self.free} if self.whole else {name: [name] for name in self.free}
        found = {
            name: {operator: np.isin(columns, some) for operator, some in odd.items()}
            for name, columns in inputs.items()
        }
        return {
            name: {operator: where for operator, where in each.items() if where.any()} for name, each in found.items()
        }

    def _takes(self, scores: Scores, names: list[str], value: float) -> bool:
        row = {name: values[:1].copy() for name, values in self.columns.items()}
        row |= {name: np.array([value]) for name in names}
        return _answered(scores, self.made(row)) is not None


def tried_on(tuned: Any, rows: ExampleRows, session: Any) -> Verified:
    """Compare the exported model with Python on the example rows, on rows made from them, and at the threshold.

    Raises:
        CannotExport: If a decision differs, or if one of the two refuses rows that the other decides.
    """
    draw, trial = np.random.default_rng(0), _Trial(tuned, rows, session)
    differing = trial.compare(rows.columns)
    made, cut = _mixed(rows, draw), 0
    for odd in _odd_rows(rows, made, draw):
        differing += trial.compare(odd)
    # At the threshold, and beside it by more than the error of the scores, on both sides.
    for change in (0, -2, 2):
        near = at_the_cut(made, rows.free, partial(trial.decided, change=change * trial.error(made)), PAIRS, draw)
        if near:
            cut += sum(len(next(iter(part.values()))) for part in near)
            differing += trial.compare(joined(near))
    return Verified(ROWS, cut, len(next(iter(rows.columns.values()))), differing)


@dataclass(frozen=True)
class _Trial:
    tuned: Any
    rows: ExampleRows
    session: Any

    def decided(self, some: MadeRows, change: float) -> NDArray[np.int64]:
        """The decisions of Python by scores that are changed by so much."""
        scores = self.tuned._scores(self.rows.made(some))
        return as_one_number(self._decide(scores + change * _sizes(scores)))

    def error(self, some: MadeRows) -> float:
        """The largest error that the scores of some rows have by rounding."""
        return self._error(run_session(self.session, self._feeds(some))[0], self.tuned._scores(self.rows.made(some)))

    def _error(self, found: NDArray[Any], expected: NDArray[np.float64]) -> float:
        largest = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1))
        return ERRORS[0] if largest < ERRORS[0] else ERRORS[1]

    def _feeds(self, some: MadeRows) -> dict[str, NDArray[Any]]:
        feeds = self.rows.feeds(some)
        if self.tuned.operating_point_.thresholds.by_group:
            feeds[GROUP.name] = self._groups(len(next(iter(feeds.values())))).reshape(-1, 1)
        return feeds

    def compare(self, some: MadeRows) -> int:
        """The number of scores that differ; a decision that differs is refused."""
        feeds, expected = self._feeds(some), _answered(self.tuned._scores, self.rows.made(some))
        try:
            found = run_session(self.session, feeds)
        except Exception as cause:
            # onnxruntime has errors of many classes.
            if expected is None:
                return 0
            raise CannotExport(
                f"the exported model fails on rows that Python decides, so it is not written: {cause}"[:400]
            ) from cause

        def row(place: int) -> dict[str, Any]:
            return {name: values[place].tolist() for name, values in feeds.items()}

        if expected is None:
            raise CannotExport(
                f"Python refuses rows such as {row(0)}, which the exported model decides; it is not written"
            )
        clear = np.flatnonzero(~self._at_rounding(expected, self._error(found[0], expected)))
        if not len(clear):
            return 0
        wanted = expected[clear], self._decide(expected)[clear]
        found = found[0][clear], found[1][clear]
        return refuse_differences(found, wanted, lambda place: row(int(clear[place])))

    def _decide(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        point = self.tuned.operating_point_
        decided: NDArray[np.int64] = np.asarray(
            point.predict(scores, self._groups(len(scores)) if point.thresholds.by_group else None)
        )
        return decided

    def _groups(self, rows: int) -> NDArray[Any]:
        return np.resize(np.array(tuple(self.tuned.operating_point_.thresholds.by_group), dtype=object), rows)

    def _at_rounding(self, scores: NDArray[np.float64], error: float) -> NDArray[np.bool_]:
        """Rows nearer to a threshold than the error of their scores: nobody can say on which side of it they are."""
        wanted, odd = self._decide(scores), np.zeros(len(scores), dtype=bool)
        for change in (error, -error):
            odd |= (self._decide(scores + change * _sizes(scores)) != wanted).reshape(len(scores), -1).any(1)
        return odd


def _mixed(rows: ExampleRows, draw: np.random.Generator) -> MadeRows:
    """Rows whose columns are drawn one by one from the example."""
    size = len(next(iter(rows.columns.values())))
    return {name: values[draw.integers(0, size, ROWS)].astype(object) for name, values in rows.columns.items()}


def _odd_rows(rows: ExampleRows, made: MadeRows, draw: np.random.Generator) -> list[MadeRows]:
    """The rows with numbers one step of a float64 aside, halfway between two, huge or tiny, and with odd values."""
    numbers_of = {name: made[name].astype(np.float64) for name in rows.free}
    with np.errstate(all="ignore"):
        changed: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
            "aside": lambda x: np.nextafter(x, np.where(draw.random(ROWS) < 0.5, -np.inf, np.inf)),
            "between": lambda x: (x + draw.permutation(x)) / 2,
            "in float32": lambda x: x.astype(np.float32).astype(np.float64),
            "large or small": lambda x: np.where(
                draw.random(ROWS) < 0.2, x * 10.0 ** draw.integers(-12, 12, ROWS), x
            ),
        }  # fmt: skip
        found = [made, *(made | {name: f(x) for name, x in numbers_of.items()} for f in changed.values())]
    # Each alone, since one odd value makes Python refuse all rows.
    for value in _ODD.values():
        found += [made | {name: _sprinkled(numbers_of[name], value, draw)} for name in rows.free[:MOST_ASKED]]
    words = [name for name in made if name not in rows.free]
    return found + [made | {name: _sprinkled(made[name], word, draw)} for name in words for word in (UNSEEN, "", "É ")]


def _sprinkled(values: NDArray[Any], value: Any, draw: np.random.Generator) -> NDArray[Any]:
    return np.where(draw.random(len(values)) < 0.1, np.array(value, dtype=values.dtype), values)


def _sizes(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sizes that errors are relative to; the signs of classes alternate, since a shift of all changes nothing."""
    turns = np.where(np.arange(scores.shape[-1]) % 2, -1, 1) if scores.ndim == 2 else np.ones(1)
    sizes: NDArray[np.float64] = turns * np.maximum(np.abs(scores), 1)
    return sizes


def _answered(scores: Scores, rows: Any) -> NDArray[np.float64] | None:
    """The scores, or None if Python refuses the rows."""
    try:
        return scores(rows)
    except Exception:
        # Models refuse rows by errors of many classes.
        return None


def _column(column: Any) -> NDArray[Any]:
    if holds_numbers(column):
        return numbers(column)
    return np.array(["" if value is None else str(value) for value in column], dtype=object)


def _is_words(values: NDArray[Any]) -> bool:
    return values.dtype == object
