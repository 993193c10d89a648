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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.data.frame import Frame
from setpoint.data.keyed import Keyed, keys_of
from setpoint.data.seen import Notes
from setpoint.decide.drift import SCORES, Reference, read_reference
from setpoint.errors import BadFile, BadSetting, BadTable
from setpoint.files import make_directory
from setpoint.problem.point import OperatingPoint
from setpoint.problem.watch import CALIBRATED, Watch
from setpoint.run.artefact import SavedRun, load_scores
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
    """

    frames: Iterable[Frame]
    fingerprint: str
    name: str
    ignore_extra: bool = False
    key: str | None = None


class WatchedRun:
    """The watch of a saved run, which a process that holds the lock of the run reads, adds to and writes.

    Args:
        path: The directory of the run.
        saved: The run.
        level: The level of a new watch; None for 0.05, or for that of the watch that is there.
    """

    def __init__(self, path: Path, saved: SavedRun, level: float | None = None) -> None:
        self.path, self.saved, self.record = path, saved, path / RECORD
        if self.record.is_file():
            self.watch = Watch.load(self.record)
            if level is not None and level != self.watch.level:
                raise BadSetting(
                    f"the watch of {path} was begun at level {self.watch.level:g}, which cannot change; leave out "
                    "--level, or begin anew after setpoint calibrate in a copy of the run"
                )
        else:
            self.watch = saved.point.watch(LEVEL if level is None else level)
            kept = load_scores(path)
            shipped = kept.scores[next(iter(saved.about["results"]))]["calibration"]
            self.refer(shipped, kept.labels["calibration"], kept.groups.get("calibration"))
        self.place = self.record.parent

    def refer(self, scores: Tensor, labels: Tensor, places: Tensor | None = None) -> None:
        """Make these labelled rows the reference of new scores."""
        draw = _draws(self.watch.hash)
        found = {"kind": REFERENCE, "references": {SCORES: Reference.of(_one(scores), draw).stored()}}
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
        watch, schema = self.watch, self.saved.schema
        problem, draw = watch.problem, _draws(batch.fingerprint)
        used = {column.name for column in schema.columns}
        references = {n: read_reference(r) for e in self.current for n, r in e.get("references", {}).items()}
        bins = {name: np.zeros(len(reference.ranks), dtype=int) for name, reference in references.items()}
        first: dict[str, Any] = {}
        waiting = self._waiting() if batch.key is not None and not labelled else []
        rows, flagged, counts = 0, 0, None
        for frame in batch.frames:
            # The column of keys need not be one that training had.
            bare = frame.drop(batch.key, strict=False) if batch.key and batch.key not in used else frame
            x = schema.encode(bare, ignore_extra=batch.ignore_extra, notes=notes)
            scores = torch.from_numpy(self.saved.served.model.score(x.numpy()))
            groups = None if problem.group is None else schema.groups(frame, problem.group)
            rows, flagged = rows + len(scores), flagged + int((self._decided(scores, groups) == 1).sum())
            features = _features(x, schema.features)
            if len(references) == 1 and not first:
                first = {name: Reference.of(values, draw).stored() for name, values in features.items()}
            for name, reference in references.items():
                bins[name] += reference.count(_one(scores) if name == SCORES else features[name], draw)
            if labelled:
                own = watch.count(scores, schema.labels(frame), schema.values(frame, problem.columns), groups)
                counts = own if counts is None else counts + own
            elif batch.key is not None:
                names = None if groups is None else groups.tolist()
                waiting.append(Keyed(keys_of(frame, batch.key), scores.double().numpy(), names))
        more: dict[str, Any] = {"rows": rows, "flagged": flagged, "bins": {k: v.tolist() for k, v in bins.items()}}
        more |= {"references": first} if first else {}
        if labelled:
            watch.look(counts, batch=batch.fingerprint, name=batch.name, **more)
        else:
            more |= {"waiting": self._keep(Keyed.joined(waiting))} if batch.key is not None else {}
            watch.add({"kind": SCORED, "name": batch.name, "batch": batch.fingerprint, **more})

    def late(self, batch: Batch) -> tuple[int, int]:
        """Count the waiting rows whose labels have come: how many there are, and how many labels have no such row."""
        waiting = Keyed.joined(self._waiting())
        if batch.key is None or not waiting.keys:
            raise BadTable("no scored rows wait for labels; give the scored rows first, with --scores and --key")
        (frame,) = batch.frames
        here, there = waiting.find(keys_of(frame, batch.key))
        if not len(here):
            raise BadTable(f"none of the {frame.height} labels has the {batch.key!r} of a row that waits for its label")
        matched = waiting.take(here)
        groups = None if matched.groups is None else np.array(matched.groups)
        counts = self.watch.count(matched.scores, self.saved.schema.labels(frame)[there], None, groups)
        left = self._keep(waiting.take(np.setdiff1d(np.arange(len(waiting.keys)), here)))
        self.watch.look(counts, batch=batch.fingerprint, name=batch.name, late=len(here), waiting=left)
        return len(here), frame.height - len(here)

    def restart(self, point: OperatingPoint, scores: Tensor, labels: Tensor, more: dict[str, Any]) -> None:
        """Begin anew with a point that was set on these rows; rows that wait for labels are forgotten."""
        self.watch.add({"kind": CALIBRATED, "point": point.to_dict(), **more})
        self.refer(scores, labels)

    @property
    def current(self) -> list[dict[str, Any]]:
        """The entries since the last recertification."""
        kinds = [entry["kind"] for entry in self.watch.entries]
        since = len(kinds) - kinds[::-1].index(CALIBRATED) if CALIBRATED in kinds else 0
        return self.watch.entries[since:]

    def _decided(self, scores: Tensor, groups: Any) -> Tensor:
        return self.watch.thresholds.decide(scores.double(), groups)

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
        return [Keyed.read(self.place / name)]


def _draws(text: str) -> np.random.Generator:
    """Random numbers that follow from a hash, so that the same batch is counted in the same way."""
    return np.random.default_rng(int(text[:16], 16))


def _one(scores: Any) -> Any:
    """One number per row: the score, or the largest of the scores of its classes."""
    return scores if scores.ndim == 1 else scores.max(1).values


def _features(x: Tensor, names: list[str]) -> dict[str, Any]:
    """The values of each feature; none of tables that are too wide."""
    if len(names) > MOST_FEATURES or x.dim() != 2:
        return {}
    return {f"feature {name}": own.double().numpy() for name, own in zip(names, x.unbind(1))}
