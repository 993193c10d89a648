"""An exported model is tried before it is written: every decision must be that of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.frame import Frame, as_frame
from setpoint.errors import CannotExport, missing
from setpoint.export.feeds import feeds_of
from setpoint.export.made_rows import MadeRows, at_the_cut, columns_of, joined, made_rows
from setpoint.export.of_run import Exported
from setpoint.measure.in_first import LISTS
from setpoint.run.artefact import SavedRun

try:
    import onnxruntime
except ImportError as cause:
    raise missing("onnxruntime", "export", cause) from None

#: Rows that are made, and pairs of rows at the cut.
ROWS, PAIRS = 2000, 100
#: The largest difference between scores, in float32 and relative to the largest of them.
_NEAR = 1e-5


@dataclass(frozen=True)
class Verified:
    """How many rows an exported model was tried on.

    Attributes:
        rows: Rows made from the schema.
        at_cut: Rows at the threshold, half of them on either side.
        given: Rows that were given.
        differing_scores: Rows whose score differs by rounding; no decision differs.

    Example:
        >>> from setpoint.export.verify import Verified
        >>> print(Verified(rows=2000, at_cut=60, given=0, differing_scores=0))
        2,000 rows made from the schema, 60 rows at the threshold: all decisions equal, scores too
    """

    rows: int
    at_cut: int
    given: int
    differing_scores: int

    def __str__(self) -> str:
        counts = {
            "rows made from the schema": self.rows, "rows at the threshold": self.at_cut, "given rows": self.given,
        }  # fmt: skip
        tried = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        scores = f"{self.differing_scores:,} scores differ by rounding" if self.differing_scores else "scores too"
        return f"{tried}: all decisions equal, {scores}"


def session_of(content: bytes) -> Any:
    """A session of onnxruntime on the CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_session(session: Any, feeds: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores and decisions."""
    score, decision = session.run(["score", "decision"], dict(feeds))
    return score, decision


def verify(saved: SavedRun, exported: Exported, data: Any = None, seed: int = 0) -> Verified:
    """Compare an exported model with Python, on made rows and on the rows of `data`.

    Raises:
        CannotExport: If a decision differs; the message shows the row.
    """
    draw = np.random.default_rng(seed)
    session = session_of(exported.content)
    rows = made_rows(saved, exported.given, ROWS, draw)

    def decided(some: MadeRows) -> NDArray[np.int64]:
        return as_one_number(saved.predict(columns_of(some)).numpy())

    # A row of a list is decided among the others of its list, so one number alone moves no row across a cut.
    in_lists = saved.point.problem.kind == LISTS
    free = [] if in_lists else [name for name in rows if name != saved.point.problem.group]
    cut = at_the_cut(rows, free, decided, PAIRS, draw)
    at_cut = sum(len(next(iter(part.values()))) for part in cut)
    frames = [as_frame(columns_of(joined([rows, *cut])))]
    if data is not None:
        frames.append(as_frame(data))
    differing = sum(_compare(saved, exported, session, frame) for frame in frames)
    return Verified(ROWS, at_cut, 0 if data is None else frames[-1].height, differing)


def as_one_number(decisions: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number per row that tells rows apart whose decisions differ; a row may have several, of bounds or labels."""
    several = decisions.reshape(len(decisions), -1)
    summed: NDArray[np.int64] = several @ (2 * np.arange(several.shape[1]) ** 2 + 1)
    return summed


def _compare(saved: SavedRun, exported: Exported, session: Any, frame: Frame) -> int:
    """The number of scores that differ; a decision that differs is refused."""
    names = [each.column for each in exported.given]
    rows = frame.select(names)
    score, decision = run_session(session, feeds_of(rows, exported.given, saved.schema.readings))
    found = saved.scores(rows, ignore_extra=True)
    group = saved.point.problem.group
    groups = None if group is None else saved.schema.groups(rows, group)
    wanted = saved.point.predict(found, groups, lists=saved.lists(rows)).numpy()
    expected = found.numpy()
    return refuse_differences((score, decision), (expected, wanted), lambda place: rows.row(place, named=True))


def refuse_differences(
    found: tuple[NDArray[Any], NDArray[Any]],
    wanted: tuple[NDArray[Any], NDArray[Any]],
    row: Callable[[int], Mapping[str, Any]],
) -> int:
    """The number of rows whose scores differ; a decision that differs, or a score that is far off, is refused.

    Args:
        found: Scores and decisions of the exported model.
        wanted: Scores and decisions of Python.
        row: The values of a row by its number, for the message.
    """
    (score, decision), (expected, right) = found, wanted
    odd = (decision != right).reshape(len(right), -1).any(1)
    # Scores that are no numbers are as far off as can be.
    far = ~(np.abs(score.astype(np.float64) - expected) <= _NEAR * np.maximum(np.abs(expected), 1))
    wrong = odd | far.reshape(len(right), -1).any(1)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise CannotExport(
            f"the exported model decides {int(odd.sum())} of {len(right)} rows differently and scores "
            f"{int(wrong.sum())} otherwise, so it is not written; such as {row(place)}: score {score[place]} and "
            f"decision {decision[place]}, in Python {expected[place]} and {right[place]}"
        )
    return int((score != expected).reshape(len(right), -1).any(1).sum())
