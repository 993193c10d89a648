"""A saved run that answers: `sp.load_run`. It imports no training code, and no PyTorch if the model needs none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import as_frame
from setpoint.data.label_columns import LabelColumns
from setpoint.data.schema import Schema
from setpoint.data.seen import Notes
from setpoint.errors import BadFile, BadScores, missing
from setpoint.measure.in_first import LISTS
from setpoint.measure.lists import ranks_in_lists
from setpoint.plain import reason
from setpoint.problem.first_of_list import FirstOfList
from setpoint.problem.point import OperatingPoint
from setpoint.problem.read_sample import belonging
from setpoint.problem.thresholds import PerBound
from setpoint.problem.watch import points_of
from setpoint.serve.description import check_description
from setpoint.serve.models import RESTORERS, Model, State
from setpoint.serve.stored import MODEL, RECORD, WATCH, checked_files, read_about

try:
    from safetensors import SafetensorError
    from safetensors.numpy import load
except ImportError as cause:
    raise missing("safetensors", "table", cause) from None


@dataclass(frozen=True)
class Answer:
    """The answer of a run to some rows.

    Attributes:
        scores: One score per row, or one per row and class or label.
        decisions: One decision per row as `setpoint predict` writes it: 0 or 1, "review", or the name of a class; one
            column per label, or per threshold for an ask over a range.
        notes: Sentences on values that training never saw.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     answer = sp.load_run(save_run(folder + "/run", table)).answer([{"x": 0}, {"x": 500}])
        >>> answer.decisions.tolist(), len(answer.notes)
        ([0, 1], 1)
    """

    scores: NDArray[np.float32]
    decisions: NDArray[Any]
    notes: list[str]


@dataclass(frozen=True)
class ServedRun:
    """A run that was read from disk. Several threads may score and decide by one run at the same time.

    Attributes:
        model: Gives the scores: `model.score(features)`.
        point: The operating point.
        schema: How the columns of new data are read and encoded.
        about: The content of setpoint.json.
        state: The parameters of the model by their names.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = sp.load_run(save_run(folder + "/run", table))
        >>> run.predict({"x": [0, 199]}).tolist()
        [0, 1]
    """

    model: Model
    point: OperatingPoint
    schema: Schema
    about: dict[str, Any]
    state: State = field(default_factory=dict, repr=False, compare=False)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """A name by which Dask tells this run from others."""
        return "setpoint run", self.about["files"], self.point.to_dict()

    def scores(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> NDArray[np.float32]:
        """Score every row; `point.predict(scores)` decides.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name in any order, or a list of rows.
            ignore_extra: Whether to allow columns that training never had.
            notes: Collects values that training never saw; `schema.notes()` makes an empty one.

        Returns:
            One score per row, or one per row and class or label.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        row = data if isinstance(data, Mapping) else data[0] if isinstance(data, list) and len(data) == 1 else None
        x = self.schema.encoded_row(row, notes) if isinstance(row, Mapping) else None
        if x is None:
            x = self.schema.encoded(as_frame(data), ignore_extra=ignore_extra, notes=notes)
        scores = self.model.score(x) if len(x) else self._no_scores()
        if not np.isfinite(scores).all():
            odd = int((~np.isfinite(scores)).sum())
            raise BadScores(f"{odd} of {scores.size} scores are not finite; the model has diverged, fit it again")
        return scores

    def _no_scores(self) -> NDArray[np.float32]:
        """The scores of no rows, which not every model can give."""
        width = [len(self.point.classes or self.point.labels)] if self.point.classes or self.point.labels else []
        return np.zeros((0, *width), dtype=np.float32)

    def predict(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> NDArray[np.int64]:
        """Decide every row at the operating point.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name in any order, or a list of rows; with the
                column of the groups, if the ask compares groups, or of the lists, if it is about lists; each list must
                be whole.
            ignore_extra: Whether to allow columns that training never had.
            notes: Collects values that training never saw; `schema.notes()` makes an empty one.

        Returns:
            1 for every row that is flagged and 0 for every other; one column per threshold for an ask over a range. For
            several classes the number of the class, whose name is in `point.classes`; for several labels one column per
            label, whose name is in `point.labels`.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        return self.decide(self.scores(data, ignore_extra=ignore_extra, notes=notes), data)

    def decide(self, scores: NDArray[np.float32], data: Any) -> NDArray[np.int64]:
        """Decide rows by their scores; the data name the group or the list of each row, where the ask has them."""
        group = self.point.problem.group
        groups = None if group is None else self.schema.groups(as_frame(data), group)
        belongs = belonging(self.point.problem, groups, self.lists(data))
        return self.point.thresholds.decided(scores.astype(np.float64), belongs)

    def columns(self, data: Any, scores: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """The columns of a file of answers: a score (or one per class or label), in lists the rank, the decisions."""
        names = answer_columns(self.point)
        found: dict[str, NDArray[Any]] = dict(zip(names["score"], scores.reshape(len(scores), len(names["score"])).T))
        for name in names.get("rank", ()):
            found[name] = ranks_in_lists(scores.astype(np.float64), self.lists(data))
        decisions = self.decide(scores, data).reshape(len(scores), len(names["decision"])).T
        return {**found, **dict(zip(names["decision"], map(self.point.thresholds.written, decisions)))}

    def lists(self, data: Any) -> NDArray[np.str_] | None:
        """The list of every row, as text, if the ask is about lists."""
        if self.point.problem.kind != LISTS:
            return None
        return self.schema.lists(as_frame(data), self.about["settings"]["lists"])

    def answer(self, data: Any, *, ignore_extra: bool = False) -> Answer:
        """Scores, decisions and notes of some rows at once, for a service.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name, or a list of rows.
            ignore_extra: Whether to allow columns that training never had.

        Returns:
            The scores, the decisions as `setpoint predict` writes them, and the notes.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        notes = self.schema.notes()
        scores = self.scores(data, ignore_extra=ignore_extra, notes=notes)
        return Answer(scores, self.point.thresholds.written(self.decide(scores, data)), notes.sentences())


def answer_columns(point: OperatingPoint) -> dict[str, list[str]]:
    """The names of the columns of scores, of ranks where there are any, and of decisions in a file of answers."""
    thresholds = point.thresholds
    scores = [f"score of {name}" for name in point.classes or point.labels] or ["score"]
    several = len(thresholds.plain) if isinstance(thresholds, PerBound) else 1
    decisions = ["decision"] if several == 1 else [f"decision_{place + 1}" for place in range(several)]
    ranks = {"rank": ["rank"]} if isinstance(thresholds, FirstOfList) else {}
    return {"score": scores, **ranks, "decision": [f"decision of {name}" for name in point.labels] or decisions}


def load_run(path: str | os.PathLike[str]) -> ServedRun:
    """Read a run that `setpoint fit` wrote, to score and to decide rows.

    Args:
        path: The directory of the run.

    Returns:
        The model, the operating point and the schema.

    Raises:
        BadFile: If there is no finished run, or a file or entry is damaged or was changed later.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = sp.load_run(save_run(folder + "/run", table))
        >>> run.point == table.chosen.point, run.predict({"x": [0, 199]}).tolist()
        (True, [0, 1])
    """
    path = Path(path)
    try:
        about = read_about(path)
        state = load(checked_files(path, about)[MODEL])
        schema, first = Schema.from_dict(about["schema"]), OperatingPoint.from_dict(about["point"])
        kind, members = check_description(about, first, len(schema.features), RESTORERS)
        point = _newest_point(path, about["point"], first)
        if (point.problem.kind == LISTS) != (about["settings"].get("lists") is not None):
            raise BadFile("its ask and its column of lists do not agree")
        labels = schema.target.columns if isinstance(schema.target, LabelColumns) else ()
        if point.classes != schema.target.classes or point.labels != labels:
            raise BadFile("its operating point and its target have different classes")
        if not all(bool(np.isfinite(part).all()) for part in state.values()):
            raise BadFile(f"{MODEL} holds parameters that are not finite")
        model = RESTORERS[kind](state, members, len(point.classes or point.labels) or 1)
        model.score(np.zeros((1, len(schema.features)), dtype=np.float32))
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as cause:
        if isinstance(cause, BadFile) and str(path) in str(cause):
            raise
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause
    return ServedRun(model, point, schema, about, state)


def _newest_point(path: Path, stored: dict[str, Any], first: OperatingPoint) -> OperatingPoint:
    """The point that `setpoint calibrate` set last; the point of the fit if there is none."""
    if not (path / RECORD).is_file():
        return first
    before, newest = points_of(path / RECORD)
    if before != stored:
        raise BadFile(f"{path / RECORD} is the watch of another run; remove the folder {path / WATCH}")
    return first if newest == stored else OperatingPoint.from_dict(newest)
