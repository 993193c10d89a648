"""Watching a promise over time: the counts of every look, and evidence that holds over any number of looks."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.errors import BadFile, BadProblem, BadSetting, BadWeights
from setpoint.files import write_whole
from setpoint.measure.band import BAND
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT
from setpoint.measure.rate import Metric
from setpoint.measure.sample import Sample
from setpoint.measure.worth import WORTH
from setpoint.on_use import torch
from setpoint.plain import brief, listed, number, read_json, reason, share, text
from setpoint.problem.chain import Entry, check_links, linked
from setpoint.problem.clusters import (
    ClusterCounts,
    Keys,
    keys_of_clusters,
    read_keys,
    read_profiles,
    stored_keys,
)
from setpoint.problem.evidence import is_testable
from setpoint.problem.label_plan import LabelPlan, plan_labels
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem
from setpoint.problem.read_decision import read_decision
from setpoint.problem.read_sample import read_sample
from setpoint.problem.thresholds import Thresholds
from setpoint.problem.watched_bound import Followed, WatchedBound, follow
from setpoint.problem.weighted import count_by_weight, refuse_with_clusters

FORMAT = 1
#: The kinds of entries that change the evidence; others are kept beside them.
LOOK, CALIBRATED = "look", "calibrated"
#: The kinds of questions that can be watched.
_KINDS = (CUT, BAND, CLASSES, WORTH)
#: Rows that are counted at a time.
_CHUNK = 2**22
#: Batches of fewer rows may well be equal by chance.
_FEWEST = 20


class Watch:
    """The evidence for and against the bounds of an operating point, over any number of looks.

    A promise that is kept at every look is ever called broken with probability `level` at most, however often one looks
    and whenever one stops. Several bounds share the level equally. `point.watch()` makes a watch. Only counts are kept,
    so a watch of 10^8 rows takes no more memory than one of ten.

    Args:
        problem: The problem of the point.
        thresholds: The thresholds of the point.
        stored: The point as plain data.
        level: The probability of ever calling a promise broken that is kept.
        to_watch: Whether looks are to be taken. If not, the watch is a record of points, of any kind.

    Raises:
        BadProblem: If no bound of the point can be watched, and looks are to be taken.
        BadSetting: If the level does not lie between 0 and 1.

    Example:
        >>> import setpoint as sp, torch
        >>> scores = torch.linspace(0, 1, 1000)
        >>> point = sp.calibrate("minimize fnr where fpr <= 5%", scores, scores > 0.5)
        >>> watch = point.watch(level=0.05)
        >>> for month in range(6):
        ...     watch = watch.update(scores + month / 100, scores > 0.5)
        >>> watch.broken, watch.rates["fpr <= 5%"]
        (True, 0.1)
    """

    def __init__(
        self,
        problem: Problem,
        thresholds: Thresholds,
        stored: Mapping[str, Any],
        level: float,
        *,
        to_watch: bool = True,
    ) -> None:
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise BadSetting(f"level must lie between 0 and 1, such as 0.05, got {level!r}")
        self.problem, self.thresholds, self.level = problem, thresholds, float(level)
        #: The point as plain data, and the one before any restart.
        self.stored = self.first = dict(stored)
        self.entries: list[Entry] = []
        if to_watch:
            self.refuse_unwatched()
        self._followed = self._begin()
        #: The keys of the clusters that were counted since the last restart.
        self._keys: Keys = np.zeros(0, dtype=np.uint64)
        #: Whether the looks since the last restart count clusters of rows; None before the first.
        self._by_clusters: bool | None = None

    def _begin(self) -> list[Followed]:
        """Evidence without a look, of every bound, in every group if each group has bounds of its own."""
        if self._not_watched:
            return []
        return follow(self.problem, list(self.thresholds.by_group), self.level)

    @property
    def _not_watched(self) -> str:
        """A sentence on why the point cannot be watched; empty if it can."""
        if self.problem.kind not in _KINDS or self.problem.over is not None:
            return f"'{self.problem}' cannot be watched yet; watch a point with bounds on rates of rows"
        if not any(is_testable(bound) for bound in self.problem.constraints):
            return f"'{self.problem}' has no bound that can be watched; bound a rate such as fpr <= 1%"
        return ""

    def refuse_unwatched(self) -> None:
        """Refuse to take looks at a point that cannot be watched.

        Raises:
            BadProblem: If no bound of the point can be watched.
        """
        self.problem.refuse_rows()
        if self._not_watched:
            raise BadProblem(self._not_watched)

    def update(
        self, scores: Any, labels: Any, *, weights: Any = None, groups: Any = None, clusters: Any = None,
        name: str = "", again: bool = False,
    ) -> Watch:  # fmt: skip
        """Take one more look: count a batch of labelled rows, of any size.

        Args:
            scores: One score per row, or K scores per row.
            labels: 0 or 1 per row; for K classes the number or the name of the class.
            weights: The values of the columns that the ask names, if it does; or `sp.PopulationWeights` of rows that
                were labelled by a plan or stand for another population.
            groups: The group of each row, where each group has its own threshold.
            clusters: The cluster of each row, such as the patient, where rows of one cluster depend on each other. Each
                cluster is counted once: rows of clusters that an earlier look has counted are left out.
            name: A name of the batch, such as "July".
            again: Count a batch although the same scores and labels were counted before.

        Returns:
            This watch.

        Raises:
            BadSetting: If the batch was counted before, or some looks have clusters and others have none.
            BadWeights: If rows have other weights, or weights where they cannot be watched.
        """
        found, shares, by_cluster = hashlib.sha256(), None, None
        refuse_with_clusters(self.problem, clusters, weights)
        if isinstance(weights, PopulationWeights):
            total, shares = self.count_weighted(scores, labels, weights, found)
        elif weights is not None and not self.problem.columns:
            raise BadWeights(
                "a watch counts rows, so it takes no weights; leave them out, or pass sp.PopulationWeights(weights, "
                "most=...) if they make up for how rows were drawn"
            )
        else:
            total = sum(self.count(*part, found) for part in _chunks(scores, labels, weights, groups))
            if clusters is not None:
                found.update(keys_of_clusters(clusters, len(scores)).tobytes())
                seed = int(found.hexdigest()[:16], 16)
                by_cluster = self.count_clusters(scores, labels, clusters, weights, groups, seed)
        known, rows = self.place_of(found.hexdigest()), len(scores)
        if known and rows >= _FEWEST and not again:
            raise BadSetting(
                f"these {rows} rows were counted at look {known} already; leave them out, or pass again=True if they "
                "are other rows with the same scores and labels"
            )
        if by_cluster is not None:
            return self.look_at_clusters(by_cluster, batch=found.hexdigest(), name=name)
        more = {} if shares is None else {"shares": shares, "flagged_share": weights.flagged_share}
        return self.look(total, batch=found.hexdigest(), name=name, **more)

    def count_clusters(
        self, scores: Any, labels: Any, clusters: Any, weights: Any = None, groups: Any = None, seed: Any = 0
    ) -> ClusterCounts:
        """The true counts of labelled rows by cluster, as `look_at_clusters` takes them.

        The seed draws one row per cluster, for gaps between groups.
        """
        return ClusterCounts.of(self.thresholds, self._sample(scores, labels, weights, groups), clusters, seed)

    def look_at_clusters(self, found: ClusterCounts, *, batch: str = "", name: str = "", **more: Any) -> Watch:
        """Take one more look at clusters of rows that are counted already; those of earlier looks are left out.

        Args:
            found: The counts by cluster, as `count_clusters` gives them.
            batch: A fingerprint of the rows, by which the batch is known when it comes again.
            name: A name of the batch.
            **more: Further plain data to keep with the entry.

        Returns:
            This watch.
        """
        new = found.without(self._keys)
        by_cluster = {"clusters": new.profiles().stored(), "keys": stored_keys(new.keys)}
        left_out = len(found.keys) - len(new.keys)
        more |= {"left_out": left_out} if left_out else {}
        return self.look(new.drawn.sum(0), batch=batch, name=name, **by_cluster, **more)

    def count_weighted(self, scores: Any, labels: Any, weights: PopulationWeights, found: Any = None) -> Any:
        """The true counts of the rows of each weight as `look` takes them, and the weights as shares of the largest."""
        return count_by_weight(self.problem, self.thresholds, read_sample(self.problem, scores, labels), weights, found)

    def count(self, scores: Any, labels: Any, weights: Any = None, groups: Any = None, found: Any = None) -> Any:
        """The true counts of labelled rows as `look` takes them; adds the rows to a hash, if one is given."""
        sample = self._sample(scores, labels, weights, groups)
        if found is not None:
            for values in (sample.scores, sample.labels, sample.groups):
                if values is not None:
                    found.update(values.detach().cpu().numpy().tobytes())
        counts = self.thresholds.count(replace(sample, n_groups=len(self.thresholds.by_group) or None))[0].double()
        if sample.values is not None:
            # The sums of values are no counts of rows.
            counts = counts * torch.tensor([1.0] + [0.0] * (len(counts) - 1), dtype=counts.dtype).unsqueeze(-1)
        return np.rint(counts.numpy())

    def _sample(self, scores: Any, labels: Any, weights: Any, groups: Any) -> Sample:
        names = self.names if self.of_classes else ()
        return read_sample(self.problem, scores, labels, weights, self.thresholds.places(groups), names)

    @property
    def of_classes(self) -> bool:
        """Whether rows are decided among several classes."""
        return self.problem.kind == CLASSES

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes, or of the groups that have thresholds of their own."""
        return tuple(getattr(self.thresholds, "names", ())) or tuple(self.thresholds.by_group)

    def look(self, counts: Any, *, batch: str = "", name: str = "", **more: Any) -> Watch:
        """Take one more look at rows that are counted already.

        Args:
            counts: The true counts, as `count` gives them.
            batch: A fingerprint of the rows, by which the batch is known when it comes again.
            name: A name of the batch.
            **more: Further plain data to keep with the entry.

        Returns:
            This watch.
        """
        plain = np.asarray(counts).astype(np.int64).tolist()
        return self.add({"kind": LOOK, "name": name, "batch": batch, "counts": plain, **more})

    def plan(self, scores: Any, labels: Any, share: float) -> LabelPlan:
        """Plan which rows to label: those that tell most about the bounds, each with a known chance.

        Args:
            scores: The scores of rows whose labels are known, such as the calibration rows.
            labels: Their labels. If these have changed since, the plan saves less, and what it shows stays valid.
            share: The part of the new rows to label.

        Returns:
            The plan; `plan.draw(scores, seed)` gives the rows to label and the weights that `update` takes with them.

        Raises:
            BadWeights: If the point has no single threshold, or a bound is no plain rate.
            BadSetting: If the share does not lie between 0 and 1.
        """
        return plan_labels(self.problem, self.thresholds, read_sample(self.problem, scores, labels), share)

    def restart(self, stored: Mapping[str, Any]) -> Watch:
        """Begin anew with another point, after a recertification; the entries so far are kept.

        Args:
            stored: The new point as plain data, from `point.to_dict()`.

        Returns:
            This watch.
        """
        self.of(stored, self.level).refuse_unwatched()
        return self.add({"kind": CALIBRATED, "point": dict(stored)})

    def add(self, content: Mapping[str, Any]) -> Watch:
        """Add an entry of any kind to the record."""
        self._take(linked(self.hash, content))
        return self

    def _take(self, entry: Entry) -> None:
        if entry["kind"] == LOOK:
            self.refuse_unwatched()
            counts = np.asarray(entry["counts"], dtype=np.float64)
            shares = np.array(listed(entry["shares"], _above_0)) if "shares" in entry else None
            clusters = read_profiles(entry["clusters"], counts.shape) if "clusters" in entry else None
            if self._by_clusters not in (None, clusters is not None):
                known = "clusters of rows; pass clusters=" if self._by_clusters else "rows; leave out clusters="
                raise BadSetting(f"this watch counts {known} in every look, or begin another watch")
            self._by_clusters = clusters is not None
            for followed in self._followed:
                followed.look(counts, shares, _above_0(entry.get("flagged_share", 1.0)), clusters)
            self._keys = np.union1d(self._keys, read_keys(entry.get("keys", "")))
        elif entry["kind"] == CALIBRATED:
            self.stored = dict(entry["point"])
            self.problem, self.thresholds = read_decision(self.stored)
            self._followed, self._keys = self._begin(), read_keys(entry.get("keys", ""))
            self._by_clusters = None
        self.entries.append(entry)

    @property
    def by_clusters(self) -> bool:
        """Whether the looks since the last restart count clusters of rows."""
        return bool(self._by_clusters)

    @property
    def hash(self) -> str:
        """The hash of the last entry, which stands for the whole record."""
        return str(self.entries[-1]["hash"]) if self.entries else _beginning(self.first, self.level)

    @property
    def looks(self) -> list[Entry]:
        """The looks since the last restart."""
        kinds = [entry["kind"] for entry in self.entries]
        since = len(kinds) - kinds[::-1].index(CALIBRATED) if CALIBRATED in kinds else 0
        return [entry for entry in self.entries[since:] if entry["kind"] == LOOK]

    def place_of(self, batch: str) -> int | None:
        """The number of the entry that has this fingerprint, from 1 up; None if there is none."""
        places = (place for place, entry in enumerate(self.entries) if entry.get("batch") == batch)
        return next((place + 1 for place in places), None)

    @property
    def bounds(self) -> tuple[WatchedBound, ...]:
        """Every bound with its rate, its interval and the evidence."""
        return tuple(followed.state for followed in self._followed)

    @property
    def broken(self) -> bool:
        """Whether a bound was ever called broken since the last restart."""
        return any(bound.broken for bound in self.bounds)

    @property
    def holds(self) -> bool:
        """Whether all bounds are shown to hold, each at the level, and none is called broken."""
        return bool(self.bounds) and not self.broken and all(bound.holds for bound in self.bounds)

    @property
    def evidence(self) -> dict[str, tuple[float, float]]:
        """The e-values against and for each bound that can be tested."""
        return {b.place: (b.against, b.in_favour) for b in self.bounds if b.against is not None}

    @property
    def interval(self) -> dict[str, tuple[float, float]]:
        """The interval of each bounded rate, on average over all rows since the last restart."""
        return {bound.place: (bound.low, bound.high) for bound in self.bounds if bound.against is not None}

    @property
    def rates(self) -> dict[str, float]:
        """The rate that each bound is about, over all rows since the last restart."""
        return {bound.place: bound.rate for bound in self.bounds}

    def __str__(self) -> str:
        said = "broken" if self.broken else "shown to hold" if self.holds else "open"
        return f"{self.problem.promise}: {said} after {len(self.looks)} looks; " + "; ".join(map(str, self.bounds))

    def merge(self, other: Watch) -> Watch:
        """Add the looks of a watch of the same point that this one does not have.

        Two watches may share their first entries, as two copies of one file do. Batches that both counted are counted
        once.

        Args:
            other: A watch of the same point at the same level.

        Returns:
            This watch.

        Raises:
            BadSetting: If the other watch is of another point or level, or only one of them was restarted.
        """
        if (self.first, self.level) != (other.first, other.level):
            raise BadSetting("two watches are merged if they are of one point and one level; these are not")
        own = {entry["hash"] for entry in self.entries}
        rest = [entry for entry in other.entries if entry["hash"] not in own]
        rest = [entry for entry in rest if not entry.get("batch") or self.place_of(entry["batch"]) is None]
        if any(entry["kind"] == CALIBRATED for entry in rest) or self.stored != other.stored:
            raise BadSetting("one of the two watches was restarted after a recertification, so they do not add up")
        shared = sum(int(np.isin(read_keys(entry.get("keys", "")), self._keys).sum()) for entry in rest)
        if shared:
            raise BadSetting(f"both watches have counted {shared} clusters, so they do not add up")
        for entry in rest:
            self.add({name: value for name, value in entry.items() if name != "hash"})
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON, one entry per line; a reader never sees half a file."""
        head = {"format": FORMAT, "level": self.level, "point": self.first}
        lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in self.entries)
        write_whole(path, f'{json.dumps(head, allow_nan=False)[:-1]}, "entries": [\n{lines}\n]}}\n'.encode())

    @classmethod
    def of(cls, stored: Mapping[str, Any], level: float, metrics: Iterable[Metric] = ()) -> Watch:
        """A watch without looks, of a point that is stored as plain data."""
        problem, thresholds = read_decision(stored, metrics)
        return cls(problem, thresholds, stored, level, to_watch=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str], metrics: Iterable[Metric] = ()) -> Watch:
        """Read what `save` wrote.

        Args:
            path: The file.
            metrics: Metrics of your own that the ask names.

        Returns:
            The watch, with all its looks.

        Raises:
            BadFile: If the file is missing or damaged, or an entry was changed later.
        """
        data = _read(path)
        with _damaged(path):
            watch = cls.of(data["point"], share(data["level"]), metrics)
            for entry in data["entries"]:
                watch._take(entry)
        return watch


def points_of(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first and the newest point in the file of a watch, as plain data."""
    data = _read(path)
    newest = [entry["point"] for entry in data["entries"] if entry["kind"] == CALIBRATED]
    return data["point"], [data["point"], *newest][-1]


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of the file of a watch, after a check of all hashes."""
    with _damaged(path):
        data = read_json(path)
        if not isinstance(data, dict) or data.get("format") != FORMAT or isinstance(data["format"], bool):
            raise BadFile(f"{path} is no watch of format {FORMAT}; upgrade setpoint, or give the file of a watch")
        check_links(_beginning(data["point"], share(data["level"])), listed(data["entries"], _entry))
    return data


@contextmanager
def _damaged(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what reading damaged content raises into a sentence that names the file."""
    try:
        yield
    except OSError as cause:
        raise BadFile(f"no watch at {path}: {cause.strerror or cause}") from cause
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as cause:
        if isinstance(cause, BadFile) and str(path) in str(cause):
            raise
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause


def _beginning(point: Mapping[str, Any], level: float) -> str:
    return str(linked("", {"format": FORMAT, "level": level, "point": point})["hash"])


def _chunks(scores: Any, labels: Any, weights: Any, groups: Any) -> list[tuple[Any, Any, Any, Any]]:
    """The rows in chunks, so that no copy of all of them is made; rows that differ in number are left as they are."""
    rows = len(scores) if hasattr(scores, "__len__") and getattr(scores, "ndim", None) != 0 else 0
    if rows <= _CHUNK or len(labels) != rows:
        return [(scores, labels, weights, groups)]
    parts = [slice(first, first + _CHUNK) for first in range(0, rows, _CHUNK)]

    def of(values: Any, part: slice) -> Any:
        if isinstance(values, Mapping):
            return {name: own[part] for name, own in values.items()}
        return None if values is None else values[part]

    return [(of(scores, part), of(labels, part), of(weights, part), of(groups, part)) for part in parts]


def _above_0(value: Any) -> float:
    return number(value, math.ulp(0.0), 1.0)


def _entry(value: Any) -> Entry:
    if not isinstance(value, dict):
        raise TypeError(f"expected an entry, found {brief(value)}")
    text(value["kind"])
    return value
