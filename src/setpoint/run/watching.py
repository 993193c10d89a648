"""The watch of a run on disk: batches with labels, batches without, and labels that come late.

    watch/state.json         the record: counts, bins and recertifications, each entry with a hash of the one before it
    watch/waiting-N.parquet  the scored rows that wait for their labels, after entry N
    watch/life.html          the page of the run's life, written by `setpoint report`

The record is the only file that counts. It is replaced in one move, after the file of waiting rows is there, so that a
command that was killed has done all of its work or none. Given again, it does the same work, or finds it done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.data.exchange import on_each
from setpoint.data.frame import Frame
from setpoint.data.keyed import Keyed, keys_of
from setpoint.data.seen import Notes
from setpoint.decide.drift import SCORES, Reference, read_reference
from setpoint.errors import BadFile, BadSetting, BadTable
from setpoint.files import make_directory
from setpoint.problem.clusters import ClusterCounts
from setpoint.problem.label_plan import LabelPlan
from setpoint.problem.point import OperatingPoint
from setpoint.problem.thresholds import Thresholds
from setpoint.problem.watch import CALIBRATED, Watch
from setpoint.run.artefact import SavedRun, load_scores
from setpoint.run.labelled_rows import labelled_rows
from setpoint.run.weighted_rows import PLANNED, read_weights
from setpoint.serve.stored import RECORD

#: The kind of an entry that counts rows without labels, and of one that says with what rows are compared.
SCORED, REFERENCE = "scored", "reference"
#: Wider tables are compared by their scores alone.
MOST_FEATURES = 100
LEVEL = 0.05


@dataclass(frozen=True)
class Batch:
    """A table to look at.

    Attributes:
        frames: The table, whole or in chunks.
        fingerprint: A hash of its rows.
        name: Its name in the record.
        ignore_extra: Whether to allow columns that training never had.
        key: The column by which labels are found later; None if there is none.
        weight: The column of weights; None if rows have none.
        most: The largest weight that can occur; None for the weights of a plan.
    """

    frames: Iterable[Frame]
    fingerprint: str
    name: str
    ignore_extra: bool = False
    key: str | None = None
    weight: str | None = None
    most: float | None = None


@dataclass(frozen=True)
class Planned:
    """The rows to label, their weights, and how many rows and drawn rows each stratum has."""

    plan: LabelPlan
    frame: Frame
    weights: NDArray[np.float64]
    rows: list[int]
    drawn: list[int]


class WatchedRun:
    """The watch of a saved run, which a process that holds the lock of the run reads, adds to and writes.

    Args:
        path: The directory of the run.
        saved: The run.
        level: The level of a new watch; None for 0.05, or for that of the watch that is there.
        to_watch: Whether looks are to be taken. If not, the record keeps the points of runs of any kind.

    Raises:
        BadProblem: If no bound of the run can be watched, and looks are to be taken.
    """

    def __init__(self, path: Path, saved: SavedRun, level: float | None = None, *, to_watch: bool = True) -> None:
        self.path, self.saved, self.record = path, saved, path / RECORD
        if self.record.is_file():
            self.watch = Watch.load(self.record)
            if to_watch:
                self.watch.refuse_unwatched()
                if saved.cluster is not None and self.watch.looks and not self.watch.by_clusters:
                    raise self._without_clusters("looks")
            if level is not None and level != self.watch.level:
                raise BadSetting(
                    f"the watch of {path} was begun at level {self.watch.level:g}, which cannot change; leave out "
                    "--level, or begin anew after setpoint calibrate in a copy of the run"
                )
        else:
            point, first_level = saved.point, LEVEL if level is None else level
            self.watch = Watch(point.problem, point.thresholds, point.to_dict(), first_level, to_watch=to_watch)
            if self.watch.bounds:
                kept = load_scores(path)
                shipped = kept.scores[next(iter(saved.about["results"]))]["calibration"]
                self.refer(shipped, kept.labels["calibration"], kept.groups.get("calibration"))
        self.place = self.record.parent
        #: Notes on the batch.
        self.told: list[str] = []

    def refer(self, scores: Tensor, labels: Tensor, places: Tensor | None = None) -> None:
        """Make these labelled rows the reference of new scores."""
        found: dict[str, Any] = {"kind": REFERENCE}
        if self.saved.cluster is None:
            found["references"] = {SCORES: Reference.of(_one(scores), _draws(self.watch.hash)).stored()}
        if self.watch.thresholds.single is not None:
            values = [np.zeros(len(labels))] * len(self.watch.problem.columns)
            named = dict(zip(self.watch.problem.columns, values)) or None
            counts = self.watch.count(scores, labels, named).reshape(-1, 4)[0]
            found["counts"] = counts.astype(int).tolist()
        self.watch.add(found)

    def known(self, batch: Batch) -> int | None:
        """The number of the entry that has counted this batch, if any."""
        return self.watch.place_of(batch.fingerprint)

    def look(self, batch: Batch, notes: Notes, *, labelled: bool) -> None:
        """Count a batch, with its labels or without; rows without labels wait for them if they have a key."""
        if labelled:
            frames, told = labelled_rows(self.saved, batch.frames)
            batch, self.told = replace(batch, frames=frames), [*self.told, *told]
        if batch.weight is not None:
            self._weighted(batch, notes)
            return
        watch = self.watch
        # Drift is not tested by clusters; records of earlier versions may hold references even so.
        entries = self.current if self.saved.cluster is None else []
        references = {n: read_reference(r) for e in entries for n, r in e.get("references", {}).items()}
        bins = {name: np.zeros(len(reference.ranks), dtype=int) for name, reference in references.items()}
        first: dict[str, Any] = {}
        count = None if not labelled else watch.count if self.saved.cluster is None else watch.count_clusters
        look = partial(_look_at_chunk, self.saved, watch.thresholds, count, replace(batch, frames=()), references)
        waiting = self._waiting() if batch.key is not None and not labelled else []
        rows, flagged, counts = 0, 0, None
        for seen in on_each(batch.frames, look):
            notes.merge(seen.notes)
            rows, flagged, first = rows + seen.rows, flagged + seen.flagged, first or seen.references
            for name, own in seen.bins.items():
                bins[name] += own
            if seen.counts is not None:
                counts = seen.counts if counts is None else _added(counts, seen.counts)
            waiting += [seen.keyed] if seen.keyed is not None else []
        more: dict[str, Any] = {"rows": rows, "flagged": flagged, "bins": {k: v.tolist() for k, v in bins.items()}}
        more |= {"references": first} if first else {}
        if labelled:
            self._count(counts, batch, **more)
        else:
            more |= {"waiting": self._keep(Keyed.joined(waiting))} if batch.key is not None else {}
            watch.add({"kind": SCORED, "name": batch.name, "batch": batch.fingerprint, **more})

    def _count(self, counts: Any, batch: Batch, **more: Any) -> None:
        look = self.watch.look if self.saved.cluster is None else self.watch.look_at_clusters
        look(counts, batch=batch.fingerprint, name=batch.name, **more)

    def _refuse_clusters(self) -> None:
        if self.saved.cluster is not None:
            raise BadSetting(
                f"the run was fitted with --cluster {self.saved.cluster}, and rows with weights are not tested by "
                "clusters; label all rows of some clusters, and leave out --plan and --weight"
            )

    def _weighted(self, batch: Batch, notes: Notes) -> None:
        """Count labelled rows with weights; they were not drawn at random, so they say nothing about drift."""
        self._refuse_clusters()
        (frame,) = batch.frames
        rest, weights = read_weights(frame, batch.weight, batch.most, self.current)
        assert weights is not None
        scores = self.saved.scores(rest, ignore_extra=batch.ignore_extra, notes=notes)
        counts, shares = self.watch.count_weighted(scores, self.saved.schema.labels(rest), weights)
        more = {"shares": shares, "flagged_share": weights.flagged_share}
        self.watch.look(counts, batch=batch.fingerprint, name=batch.name, **more)

    def plan(self, batch: Batch, labels: int, notes: Notes) -> Planned:
        """Draw about this many rows of a batch to label, and keep the plan in the record.

        The same batch and number give the same rows, since the fingerprint of the batch is the seed.
        """
        self._refuse_clusters()
        (frame,) = batch.frames
        scores = np.asarray(self.saved.scores(frame, ignore_extra=batch.ignore_extra, notes=notes), dtype=np.float64)
        if not 0 < labels <= len(scores):
            raise BadSetting(f"--plan is the number of rows to label, from 1 to the {len(scores)} of the table")
        kept = load_scores(self.path)
        known = kept.scores[next(iter(self.saved.about["results"]))]["calibration"]
        plan = self.watch.plan(known, kept.labels["calibration"], labels / len(scores))
        rows, weights = plan.draw(scores, int(batch.fingerprint[:16], 16))
        strata = plan.strata(scores)
        sizes, drawn = (np.bincount(own, minlength=len(plan.chances)).tolist() for own in (strata, strata[rows]))
        mark = f"{batch.fingerprint}-{labels}"
        if self.watch.place_of(mark) is None:
            stored = {"threshold": plan.threshold, "edges": list(plan.edges), "chances": list(plan.chances)}
            self.watch.add(
                {"kind": PLANNED, "name": batch.name, "batch": mark, "rows": len(scores), "drawn": len(rows), **stored}
            )
        return Planned(plan, frame[rows], np.asarray(weights.weights), sizes, drawn)

    def late(self, batch: Batch) -> tuple[int, int]:
        """Count the waiting rows whose labels have come: how many there are, and how many labels have no such row."""
        waiting = Keyed.joined(self._waiting())
        if batch.key is None or not waiting.keys:
            raise BadTable("no scored rows wait for labels; give the scored rows first, with --scores and --key")
        frames, told = labelled_rows(self.saved, batch.frames)
        (frame,) = frames
        self.told += told
        here, there = waiting.find(keys_of(frame, batch.key))
        if not len(here):
            raise BadTable(f"none of the {frame.height} labels has the {batch.key!r} of a row that waits for its label")
        matched = waiting.take(here)
        groups = None if matched.groups is None else np.array(matched.groups)
        labels = self.saved.schema.labels(frame)[there]
        counts = (
            self.watch.count(matched.scores, labels, None, groups)
            if matched.clusters is None
            else self.watch.count_clusters(
                matched.scores, labels, matched.clusters, None, groups, _draws(batch.fingerprint)
            )
        )
        left = self._keep(waiting.take(np.setdiff1d(np.arange(len(waiting.keys)), here)))
        self._count(counts, batch, late=len(here), waiting=left)
        return len(here), frame.height - len(here)

    def restart(self, point: OperatingPoint, scores: Tensor, labels: Tensor, more: dict[str, Any]) -> None:
        """Begin anew with a point that was set on these rows; rows that wait for labels are forgotten."""
        self.watch.add({"kind": CALIBRATED, "point": point.to_dict(), **more})
        if self.watch.bounds:
            self.refer(scores, labels)

    @property
    def current(self) -> list[dict[str, Any]]:
        """The entries since the last recertification."""
        kinds = [entry["kind"] for entry in self.watch.entries]
        since = len(kinds) - kinds[::-1].index(CALIBRATED) if CALIBRATED in kinds else 0
        return self.watch.entries[since:]

    def write(self) -> None:
        """Replace the record, then remove the files of waiting rows that it no longer names."""
        self.watch.save(self.record)
        named = self._file()
        for path in self.place.glob("waiting-*.parquet"):
            if path.name != named:
                with contextlib.suppress(OSError):
                    path.unlink()

    @property
    def rows_waiting(self) -> int:
        """The number of scored rows that wait for their labels."""
        return next((int(entry["waiting"]["rows"]) for entry in reversed(self.current) if entry.get("waiting")), 0)

    def _file(self) -> str | None:
        return next((entry["waiting"]["file"] for entry in reversed(self.current) if entry.get("waiting")), None)

    def _keep(self, waiting: Keyed) -> dict[str, Any]:
        file = f"waiting-{len(self.watch.entries) + 1}.parquet"
        make_directory(self.place)
        waiting.write(self.place / file)
        return {"file": file, "rows": len(waiting.keys)}

    def _waiting(self) -> list[Keyed]:
        name = self._file()
        if name is None:
            return []
        if Path(name).name != name:
            raise BadFile(f"{self.record} names {name!r}, which is no file of the watch")
        waiting = Keyed.read(self.place / name)
        if self.saved.cluster is not None and waiting.clusters is None and waiting.keys:
            raise self._without_clusters("waiting rows")
        return [waiting] if waiting.keys else []

    def _without_clusters(self, what: str) -> BadFile:
        return BadFile(
            f"{self.record} holds {what} without the {self.saved.cluster!r} of each row, by which the run was fitted "
            "with --cluster; run setpoint calibrate on fresh labelled rows to begin anew"
        )


@dataclass(frozen=True)
class _Seen:
    """What one chunk of a batch adds to a look at it."""

    rows: int
    flagged: int
    bins: dict[str, Any]
    references: dict[str, Any]
    counts: Any
    keyed: Keyed | None
    notes: Notes


def _look_at_chunk(
    saved: SavedRun,
    thresholds: Thresholds,
    count: Any,
    batch: Batch,
    references: dict[str, Reference],
    first: int,
    frame: Frame,
) -> _Seen:
    """Score and count the rows of a batch, or of a chunk of it that starts with row `first`."""
    schema, problem, draw = saved.schema, saved.point.problem, _draws(batch.fingerprint, first)
    used, notes = {column.name for column in schema.columns}, schema.notes()
    # The column of keys need not be one that training had.
    bare = frame.drop(batch.key, strict=False) if batch.key and batch.key not in used else frame
    x = schema.encode(bare, ignore_extra=batch.ignore_extra, notes=notes)
    scores = torch.from_numpy(saved.served.model.score(x.numpy()))
    groups = None if problem.group is None else schema.groups(frame, problem.group)
    flagged = int((thresholds.decide(scores.double(), groups) == 1).sum())
    # Rows whose labels never come are counted without clusters.
    clusters = saved.clusters(frame) if count is not None or batch.key is not None else None
    features = _features(x, schema.features) if saved.cluster is None else {}
    made: dict[str, Any] = {}
    if len(references) == 1 and first == 0:
        made = {name: Reference.of(values, draw).stored() for name, values in features.items()}
    bins = {
        name: reference.count(_one(scores) if name == SCORES else features[name], draw)
        for name, reference in references.items()
    }
    counts, keyed = None, None
    if count is not None:
        given = schema.values(frame, problem.columns), groups
        own = (*given,) if clusters is None else (clusters, *given, _draws(batch.fingerprint, first))
        counts = count(scores, schema.labels(frame), *own)
    elif batch.key is not None:
        names, units = (None if each is None else each.tolist() for each in (groups, clusters))
        keyed = Keyed(keys_of(frame, batch.key), scores.double().numpy(), names, units)
    return _Seen(len(scores), flagged, bins, made, counts, keyed, notes)


def _added(one: Any, other: Any) -> Any:
    """The counts of two chunks together."""
    return one.merge(other) if isinstance(one, ClusterCounts) else one + other


def _draws(text: str, first: int = 0) -> np.random.Generator:
    """Random numbers that follow from a hash, so that the same rows are counted in the same way."""
    seed = int(text[:16], 16)
    return np.random.default_rng([seed, first] if first else seed)


def _one(scores: Any) -> Any:
    """One number per row: the score, or the largest of the scores of its classes."""
    return scores if scores.ndim == 1 else scores.max(1).values


def _features(x: Tensor, names: list[str]) -> dict[str, Any]:
    """The values of each feature; none of tables that are too wide."""
    if len(names) > MOST_FEATURES or x.dim() != 2:
        return {}
    return {f"feature {name}": own.double().numpy() for name, own in zip(names, x.unbind(1))}
