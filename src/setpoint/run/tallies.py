"""The scores of a saved run on a table that need not fit into memory, counted chunk by chunk: two looks, exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.data.exchange import on_each
from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.data.sketch import Hashes, row_hashes
from setpoint.decide.tally import ScoreTally, sample_of
from setpoint.errors import BadSetting
from setpoint.measure.count import count
from setpoint.measure.in_first import LISTS
from setpoint.problem.check import Check, check_clusters, check_counts
from setpoint.problem.clusters import ClusterCounts
from setpoint.problem.point import OperatingPoint
from setpoint.problem.read_sample import read_sample
from setpoint.run.artefact import SavedRun

#: Scores of each chunk that are kept, as a sample.
SAMPLED = 1024
Windows = NDArray[np.bool_]


@dataclass
class Look:
    """What a first look at labelled rows gives; `merge` joins the looks at two chunks.

    Attributes:
        tally: All scores.
        counts: The true and false positives and negatives (tp, fp, fn, tn) at the threshold of the run.
        notes: Values that training never saw.
        hashes: Hashes of the rows, if the run has a sketch to compare them with.
        scores: Some scores of each chunk.
        labels: Their labels.
        clusters: The counts of the rows of each cluster, if the run has clusters.
    """

    tally: ScoreTally
    counts: Tensor
    notes: Notes
    hashes: list[Hashes]
    scores: list[Tensor]
    labels: list[Tensor]
    clusters: ClusterCounts | None = None

    def merge(self, other: Look) -> None:
        """Take the rows of another look into account."""
        self.tally.merge(other.tally)
        self.counts += other.counts
        self.notes.merge(other.notes)
        for name in ("hashes", "scores", "labels"):
            getattr(self, name).extend(getattr(other, name))
        if self.clusters is not None and other.clusters is not None:
            self.clusters = self.clusters.merge(other.clusters)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())


def first_look(saved: SavedRun, frames: Iterable[Frame], *, ignore_extra: bool) -> Look:
    """Count all scores of a table, and those beyond the threshold of the run.

    Raises:
        BadSetting: If the run has several thresholds, or its ask counts more than rows.
    """
    problem, threshold = saved.point.problem, saved.point.thresholds.single
    if threshold is None or problem.columns:
        what = "counts the values of columns" if problem.columns else "has several thresholds"
        what = "is about lists" if problem.kind == LISTS else what
        raise BadSetting(f"'{problem}' {what}, which --stream does not judge; leave it out")
    looks = on_each(frames, partial(_first, saved, threshold, ignore_extra))
    found = next(looks)
    for look in looks:
        found.merge(look)
    return found


def _first(saved: SavedRun, threshold: float, ignore_extra: bool, first: int, frame: Frame) -> Look:
    notes, schema = saved.schema.notes(), saved.schema
    hashes = []
    if saved.about["sketch"]:
        hashes.append(row_hashes(schema.encode(frame, ignore_extra=True), schema.labels(frame)))
    scores, labels = saved.scores(frame, ignore_extra=ignore_extra, notes=notes), schema.labels(frame)
    counts = count(scores.double(), labels, threshold) + torch.zeros(4, dtype=torch.float64)
    every, names = max(-(-len(labels) // SAMPLED), 1), saved.clusters(frame)
    kept = [scores[::every]], [labels[::every]]
    sample = read_sample(saved.point.problem, scores, labels)
    clusters = None if names is None else ClusterCounts.of(saved.point.thresholds, sample, names, first)
    return Look(ScoreTally().update(scores, labels), counts, notes, hashes, *kept, clusters)


def second_look(
    saved: SavedRun, frames: Iterable[Frame], windows: Sequence[Windows], *, ignore_extra: bool
) -> list[ScoreTally]:
    """Tallies of the same scores, of which those in each set of windows are kept one by one."""
    looks = on_each(frames, partial(_second, saved, windows, ignore_extra))
    found = next(looks)
    for look in looks:
        for tally, own in zip(found, look):
            tally.merge(own)
    return found


def _second(
    saved: SavedRun, windows: Sequence[Windows], ignore_extra: bool, first: int, frame: Frame
) -> list[ScoreTally]:
    scores, labels = saved.scores(frame, ignore_extra=ignore_extra), saved.schema.labels(frame)
    return [ScoreTally(own.copy()).update(scores, labels) for own in windows]


@dataclass(frozen=True)
class JudgedRun:
    """A saved run judged on labelled rows.

    Attributes:
        here: The point of the run, with its rates on these rows.
        check: The exact test of every bound.
        best: The best cut on these rows.
        rows: The number of rows.
        positives: The number of positive rows.
        notes: Values that training never saw.
        hashes: Hashes of the rows, if the run has a sketch to compare them with.
    """

    here: OperatingPoint
    check: Check
    best: OperatingPoint
    rows: int
    positives: int
    notes: Notes
    hashes: list[Hashes]


def judged_in_chunks(
    saved: SavedRun, frames: Iterable[Frame], level: float, *, ignore_extra: bool = False
) -> JudgedRun:
    """Judge a run on a table that need not fit into memory: exact, in two passes."""
    point, problem = saved.point, saved.point.problem
    look = first_look(saved, frames, ignore_extra=ignore_extra)
    (closer,) = second_look(saved, frames, [look.tally.around(problem).windows], ignore_extra=ignore_extra)
    positives = int(look.counts[0] + look.counts[2])
    check = (
        check_counts(problem, look.counts, level=level)
        if look.clusters is None
        else check_clusters(problem, look.counts, look.clusters, level=level)
    )
    here = judged_counts(point, look.counts)
    return JudgedRun(here, check, closer.calibrate(problem), look.rows, positives, look.notes, look.hashes)


def judged_counts(point: OperatingPoint, counts: Tensor) -> OperatingPoint:
    """A point judged by the counts of rows at its threshold."""
    here = OperatingPoint.at(point.problem, point.thresholds, sample_of(counts), point.certificate)
    return replace(here, feasible=point.problem.holds(counts[None]))
