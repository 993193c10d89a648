"""The threshold of a saved run set anew on fresh labelled rows; the model and old points are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.decide.settle import Confidence, Settled, settle
from setpoint.decide.settle_tally import settle_tally
from setpoint.errors import BadSetting
from setpoint.problem.clusters import keys_of_clusters, stored_keys
from setpoint.problem.point import OperatingPoint
from setpoint.problem.population import PopulationWeights
from setpoint.problem.watch import CALIBRATED
from setpoint.run.artefact import SavedRun, load_run
from setpoint.run.tallies import first_look, judged_counts, second_look
from setpoint.run.watching import Batch, WatchedRun
from setpoint.run.weighted_rows import read_weights, refuse_weighted_columns


@dataclass(frozen=True)
class Fresh:
    """The new point and the old one, judged on fresh rows.

    Attributes:
        old: The point before.
        settled: The new point.
        here: The old point on the fresh rows.
        rows: The number of fresh rows.
        scores: Their scores, or some of them if the table was read in chunks.
        labels: The labels of these scores.
        notes: Values that training never saw.
        told: Sentences on rows that were seen before.
        keys: The clusters of the rows, as the record of the run keeps them.
    """

    old: OperatingPoint
    settled: Settled
    here: OperatingPoint
    rows: int
    scores: Tensor
    labels: Tensor
    notes: Notes
    told: tuple[str, ...] = ()
    keys: str = ""


def recalibrate(run: Path, batch: Batch, sure: Confidence, *, in_chunks: bool) -> Fresh:
    """Set the threshold of a run anew and write it to its record; the caller holds the lock of the run.

    Args:
        run: The directory of the run.
        batch: The fresh rows, with their column of weights if there is one.
        sure: The confidence of the certificate.
        in_chunks: Whether the table is counted chunk by chunk.
    """
    saved = load_run(run)
    watched, old, told = WatchedRun(run, saved), saved.point, []
    last = next((entry for entry in reversed(watched.watch.entries) if entry["kind"] == CALIBRATED), None)
    again = last is not None and last["batch"] == batch.fingerprint
    if last is not None and again:
        told.append(f"the threshold is that of {batch.name} already; it is not set again")
        old = OperatingPoint.from_dict(last["before"])
    elif known := watched.known(batch):
        told.append(f"{batch.name} was watched before, as entry {known}: rows that raised an alarm are no fair sample")
    if in_chunks:
        fresh = _in_chunks(saved, old, batch.frames, sure, batch.ignore_extra)
    else:
        (frame,) = batch.frames
        frame, weights = read_weights(frame, batch.weight, batch.most, watched.current)
        refuse_weighted_columns(weights, old.problem.columns)
        fresh = _whole(saved, old, frame, weights, sure, batch.ignore_extra)
    if not again:
        more = {"name": batch.name, "batch": batch.fingerprint, "rows": fresh.rows, "before": old.to_dict()}
        more |= {"keys": fresh.keys} if fresh.keys else {}
        watched.restart(fresh.settled.point, fresh.scores, fresh.labels, more)
        watched.write()
    return replace(fresh, told=tuple(told))


def _as_drawn(scores: Tensor, labels: Tensor, weights: PopulationWeights | None) -> tuple[Tensor, Tensor]:
    """Rows with which new ones are compared: all of them, or a random part in which each stands for one."""
    if weights is None:
        return scores, labels
    heavy = torch.as_tensor(weights.weights, dtype=torch.float64)
    kept = (
        torch.rand(len(heavy), generator=torch.Generator().manual_seed(0), dtype=torch.float64) * weights.most < heavy
    )
    return scores[kept], labels[kept]


def _whole(
    saved: SavedRun,
    old: OperatingPoint,
    frame: Frame,
    weights: PopulationWeights | None,
    sure: Confidence,
    ignore_extra: bool,
) -> Fresh:
    problem, notes, clusters = old.problem, saved.schema.notes(), saved.clusters(frame)
    scores = saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
    labels = saved.schema.labels(frame)
    groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
    values = saved.schema.values(frame, problem.columns) if weights is None else weights
    settled = settle(
        problem, scores, labels, sure, weights=values, groups=groups, classes=old.classes or None, clusters=clusters
    )
    here = old.judge(scores, labels, weights=values if weights is None else weights.weights, groups=groups)
    keys = "" if clusters is None else stored_keys(np.unique(keys_of_clusters(clusters, len(labels))))
    return Fresh(old, settled, here, len(labels), *_as_drawn(scores, labels, weights), notes, keys=keys)


def _in_chunks(
    saved: SavedRun, old: OperatingPoint, frames: Iterable[Frame], sure: Confidence, ignore_extra: bool
) -> Fresh:
    """The same without estimates, from tallies of all scores, in two passes over the table."""
    if saved.cluster is not None:
        raise BadSetting(
            f"the run was fitted with --cluster {saved.cluster}, and a threshold is certified over clusters in memory; "
            "leave out --stream and --workers"
        )
    look = first_look(saved, frames, ignore_extra=ignore_extra)
    again = partial(second_look, saved, frames, ignore_extra=ignore_extra)
    settled = settle_tally(old.problem, look.tally, again, sure)
    here = judged_counts(old, look.counts)
    return Fresh(old, settled, here, look.rows, torch.cat(look.scores), torch.cat(look.labels), look.notes)
