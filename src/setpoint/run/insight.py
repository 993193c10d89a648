"""What the scores of a run depend on, and where it errs: looked up on the test rows, from the table that trained it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.data.frame import Frame, with_labels
from setpoint.data.label_columns import LabelColumns
from setpoint.data.reading import apply_readings
from setpoint.data.scan import fingerprint
from setpoint.errors import BadTable
from setpoint.run.artefact import SavedRun, SavedScores
from setpoint.run.divide import divide
from setpoint.run.settings import Settings
from setpoint.run.slices import Slice, worst_slices
from setpoint.train.scoring import score_rows

#: The columns that are shown, the shuffles of each, and the most test rows that are shuffled.
SHOWN, SHUFFLES, MOST_ROWS = 15, 5, 2000
#: Of a table with more columns, the first look is by one shuffle of fewer rows.
MOST_COLUMNS, FIRST_LOOK = 30, 500
#: The rows nearest to the threshold that are shown, and the columns of them.
NEAREST, NEAREST_COLUMNS = 8, 4


@dataclass(frozen=True)
class Driver:
    """A column, and how much recall is lost when its values are shuffled among the test rows, in shares."""

    column: str
    lost: float
    low: float
    high: float


@dataclass(frozen=True)
class Near:
    """A test row near the threshold: its number in the table (from 1), label, decision, score and some values."""

    row: int
    positive: bool
    flagged: bool
    score: float
    values: tuple[str, ...]


@dataclass(frozen=True)
class Insight:
    """The findings of the test rows about a run.

    Attributes:
        drivers: The columns that matter most, the first one most.
        coefficients: Feature and coefficient (per standard deviation), the largest first; empty if not linear.
        columns: The columns whose values `near` shows.
        near: The test rows nearest to the threshold.
        slices: Slices that are worse than the other rows beyond noise.
        tested: The number of slices that were looked at.
    """

    drivers: tuple[Driver, ...]
    coefficients: tuple[tuple[str, float], ...]
    columns: tuple[str, ...]
    near: tuple[Near, ...]
    slices: tuple[Slice, ...]
    tested: int


def insight_of(saved: SavedRun, kept: SavedScores, frame: Frame) -> Insight:
    """Look at the test rows of a run of one threshold.

    Args:
        saved: The run.
        kept: The scores that it stored.
        frame: The table that it was trained on.

    Returns:
        The columns that drive the score, the rows nearest to the threshold, and the slices with most errors.

    Raises:
        BadTable: If the table is not that of the run.
    """
    if fingerprint(frame)["sha256"] != saved.about["data"]["sha256"]:
        raise BadTable("this is not the table that the run was trained on: its fingerprint differs")
    frame, rows = _test_rows(saved, frame)
    test = frame[rows.numpy()]
    x, labels = saved.schema.encode(test, ignore_extra=True), saved.schema.labels(test).bool()
    scores = score_rows(saved.model, x).double()
    stored = kept.scores[saved.about["shipped"]]["test"].double()
    if len(scores) != len(stored) or not torch.allclose(scores, stored, rtol=1e-4, atol=1e-4):
        raise BadTable("the test rows of this table have other scores than those that the run stored")
    threshold = saved.point.thresholds.single
    assert threshold is not None, "a run of one threshold"
    flagged = scores > threshold
    drivers = tuple(_drivers(saved, x, labels, flagged))
    columns = tuple(driver.column for driver in drivers[:NEAREST_COLUMNS])
    order = (scores - threshold).abs().argsort(stable=True)[:NEAREST].tolist()
    near = [
        Near(int(rows[i]) + 1, bool(labels[i]), bool(flagged[i]), float(scores[i]), _values(test, i, columns))
        for i in sorted(order, key=lambda i: -float(scores[i]))
    ]
    columns_used = [test[column.name] for column in saved.schema.columns if column.name in test.columns]
    slices, tested = worst_slices(columns_used, labels.numpy(), flagged.numpy())
    return Insight(drivers, tuple(_coefficients(saved, x)), columns, tuple(near), tuple(slices), tested)


def _test_rows(saved: SavedRun, frame: Frame) -> tuple[Frame, Tensor]:
    """The table as it was split, and the numbers of its test rows."""
    stored, target = saved.about["settings"], saved.schema.target
    assert not isinstance(target, LabelColumns)
    listed = {name: tuple(stored[name]) for name in ("shares", "drop", "columns")}
    settings = Settings(**{**stored, **listed})
    if settings.drop_missing_target:
        frame = with_labels(frame, target.name)
    read = apply_readings(frame, {name: how for name, how in saved.schema.readings.items() if name in frame.columns})
    return frame, divide(read, saved.schema.labels(frame), settings).rows["test"]


def _drivers(saved: SavedRun, x: Tensor, labels: Tensor, flagged: Tensor) -> Iterator[Driver]:
    """The columns whose shuffling loses most recall where as many negatives are flagged as the run flags."""
    spans, start = {}, 0
    for column in saved.schema.columns:
        spans[column.name] = slice(start, start + len(column.features))
        start += len(column.features)
    draw = torch.Generator().manual_seed(0)
    kept = _some(labels, MOST_ROWS, draw)
    x, labels, flagged = x[kept], labels[kept], flagged[kept]
    alarms, names = int((flagged & ~labels).sum()), list(spans)
    if len(names) > MOST_COLUMNS:
        few = _some(labels, FIRST_LOOK, draw)
        rate = round(alarms * int((~labels[few]).sum()) / max(int((~labels).sum()), 1))
        first = {name: _lost(saved, x[few], labels[few], rate, spans[name], 1, draw).mean() for name in names}
        names = sorted(names, key=lambda name: -float(first[name]))[:MOST_COLUMNS]
    found = []
    for name in names:
        lost = _lost(saved, x, labels, alarms, spans[name], SHUFFLES, draw)
        mean, error = float(lost.mean()), float(lost.std()) / max(len(lost), 1) ** 0.5
        found.append(Driver(name, mean, mean - 1.96 * error, mean + 1.96 * error))
    yield from sorted(found, key=lambda driver: -driver.lost)[:SHOWN]


def _some(labels: Tensor, most: int, draw: torch.Generator) -> Tensor:
    """At most so many rows, all positives first: recall is judged on them."""
    order = torch.randperm(len(labels), generator=draw)
    positives, negatives = order[labels[order]], order[~labels[order]]
    rows = torch.cat([positives[: max(most // 2, most - len(negatives))], negatives])[:most]
    return rows.sort().values


def _lost(
    saved: SavedRun, x: Tensor, labels: Tensor, alarms: int, span: slice, times: int, draw: torch.Generator
) -> Tensor:
    """For each positive, whether it is found less the mean share of shuffles in which it is found."""
    before = _found(score_rows(saved.model, x), labels, alarms)
    after = torch.zeros_like(before)
    for _ in range(times):
        shuffled = x.clone()
        shuffled[:, span] = x[torch.randperm(len(x), generator=draw)][:, span]
        after += _found(score_rows(saved.model, shuffled), labels, alarms)
    return before - after / times


def _found(scores: Tensor, labels: Tensor, alarms: int) -> Tensor:
    """1 for each positive above the cut at which so many negatives are flagged."""
    negatives = scores[~labels].sort(descending=True).values
    cut = negatives[alarms] if alarms < len(negatives) else scores.min() - 1
    return (scores[labels] > cut).double()


def _coefficients(saved: SavedRun, x: Tensor) -> list[tuple[str, float]]:
    """The coefficients of a model whose scores are linear in the features, which is tried on the rows."""
    width = x.shape[1]
    if width > 2000:
        return []
    at_zero = score_rows(saved.model, torch.zeros(1, width)).double()
    each = score_rows(saved.model, torch.eye(width)).double() - at_zero
    rows = x[:200].double()
    straight = at_zero + rows @ each
    if not torch.allclose(straight, score_rows(saved.model, x[:200]).double(), rtol=1e-3, atol=1e-3):
        return []
    scaled = each * x.double().std(0)
    order = scaled.abs().argsort(descending=True, stable=True)[:SHOWN].tolist()
    return [(saved.schema.features[place], float(scaled[place])) for place in order]


def _values(test: Frame, row: int, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if test[name][row] is None else str(test[name][row])[:40] for name in columns)
