"""The threshold of a saved run set anew on fresh labelled rows; the model and old points are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.data.sketch import Hashes, row_hashes, share_known
from setpoint.decide.settle import Confidence, Settled, demanded, settle
from setpoint.decide.settle_tally import settle_tally
from setpoint.errors import BadSetting
from setpoint.problem.clusters import keys_of_clusters, stored_keys
from setpoint.problem.point import OperatingPoint
from setpoint.problem.population import PopulationWeights
from setpoint.problem.watch import CALIBRATED
from setpoint.run.artefact import SavedRun, load_run
from setpoint.run.labelled_rows import labelled_rows
from setpoint.run.tallies import first_look, judged_counts, second_look
from setpoint.run.watching import Batch, WatchedRun
from setpoint.run.weighted_rows import read_weights, refuse_weighted_columns

#: Where a run knows so large a share of the rows, they are no fresh ones; by chance it knows fewer.
KNOWN = 0.2


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
        told: Sentences on the rows, and on what was set before.
        keys: The clusters of the rows, as the record of the run keeps them.
        hashes: Hashes of the rows, if the run has a sketch to compare them with.
        is_set: Whether the new point is in use; not if a certificate that was demanded cannot be given.
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
    hashes: Sequence[Hashes] = ()
    is_set: bool = True

    @property
    def point(self) -> OperatingPoint:
        """The point in use."""
        return self.settled.point if self.is_set else self.old


def recalibrate(run: Path, batch: Batch, sure: Confidence, *, in_chunks: bool) -> Fresh:
    """Set the threshold of a run anew and write it to its record; the caller holds the lock of the run.

    The same rows with the same settings change nothing, and with other settings replace the point that they set. The
    run stays as it was if a certificate that was demanded cannot be given, or if the run was trained on the rows; where
    no certificate is wanted it takes such rows, with a note.

    Args:
        run: The directory of the run.
        batch: The fresh rows, with their column of weights if there is one.
        sure: The confidence of the certificate.
        in_chunks: Whether the table is counted chunk by chunk.
    """
    saved = load_run(run)
    watched = WatchedRun(run, saved, to_watch=False)
    settings = {"confidence": sure, "weight": batch.weight, "most_weight": batch.most}
    last = next((entry for entry in reversed(watched.watch.entries) if entry["kind"] == CALIBRATED), None)
    done = last if last is not None and (last["batch"], last.get("settings")) == (batch.fingerprint, settings) else None
    old = saved.point if done is None else OperatingPoint.from_dict(done["before"])
    told = [_seen_before(watched, batch, done is not None)]
    frames, left_out = labelled_rows(saved, batch.frames)
    if in_chunks:
        fresh = _in_chunks(saved, old, frames, sure, batch.ignore_extra)
    else:
        (frame,) = frames
        frame, weights = read_weights(frame, batch.weight, batch.most, watched.current)
        refuse_weighted_columns(weights, old.problem.columns)
        fresh = _whole(saved, old, frame, weights, sure, batch.ignore_extra)
    fresh = replace(fresh, told=(*left_out, *filter(None, told)))
    share = share_known(np.concatenate(fresh.hashes), saved.about["sketch"]) if fresh.hashes else 0.0
    trained_on = (
        f"about {100 * share:.0f}% of the rows of {batch.name} set the parameters or the threshold of the run, so that "
        "it does better on them than on new rows; give rows of their own"
    )
    if sure is None and share >= KNOWN:
        fresh = replace(fresh, told=(*fresh.told, trained_on))
    elif share >= KNOWN and done is None:
        return replace(fresh, settled=Settled(fresh.settled.point, trained_on), is_set=False)
    if done is not None:
        return replace(fresh, settled=Settled(saved.point, done["refusal"]))
    if fresh.settled.refusal is not None and demanded(sure) is not None:
        return replace(fresh, is_set=False)
    more = {"name": batch.name, "batch": batch.fingerprint, "rows": fresh.rows, "before": old.to_dict()}
    more |= {"settings": settings, "refusal": fresh.settled.refusal} | ({"keys": fresh.keys} if fresh.keys else {})
    watched.restart(fresh.settled.point, fresh.scores, fresh.labels, more)
    watched.write()
    return fresh


def _seen_before(watched: WatchedRun, batch: Batch, done: bool) -> str:
    """A sentence on rows that the record of the run knows; empty for new ones."""
    known = [place for place, entry in enumerate(watched.watch.entries, 1) if entry.get("batch") == batch.fingerprint]
    looks = [place for place in known if watched.watch.entries[place - 1]["kind"] != CALIBRATED]
    if done:
        return f"the threshold was set by {batch.name} with these settings already; it is not set again"
    if looks:
        return f"{batch.name} was watched before, as entry {looks[0]}: rows that raised an alarm are no fair sample"
    if known:
        return (
            f"{batch.name} set the threshold before, as entry {known[-1]}; a certificate holds if its settings were "
            "not chosen by what the same rows gave before"
        )
    return ""


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
    problem, notes = old.problem, saved.schema.notes()
    clusters, lists = saved.clusters(frame), saved.lists(frame)
    scores = saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
    labels = saved.schema.labels(frame)
    groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
    values = saved.schema.values(frame, problem.columns) if weights is None else weights
    settled = settle(
        problem, scores, labels, sure,
        weights=values, groups=groups, classes=old.classes or None, lists=lists, clusters=clusters,
    )  # fmt: skip
    plain = values if weights is None else weights.weights
    here = old.judge(scores, labels, weights=plain, groups=groups, lists=lists)
    keys = "" if clusters is None else stored_keys(np.unique(keys_of_clusters(clusters, len(labels))))
    x = saved.schema.encode(frame, ignore_extra=ignore_extra) if saved.about["sketch"] else None
    hashes = () if x is None else (row_hashes(x, labels),)
    return Fresh(old, settled, here, len(labels), *_as_drawn(scores, labels, weights), notes, keys=keys, hashes=hashes)


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
    return Fresh(old, settled, here, look.rows, torch.cat(look.scores), torch.cat(look.labels), look.notes,
                 hashes=look.hashes)  # fmt: skip
