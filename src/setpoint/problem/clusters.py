"""Evidence on a rate from rows that come in clusters, such as those of one patient, which depend on each other.

A promise over clusters is about a random row of a random cluster. Let z be the share of the rows of a cluster that
count for a rate (for recall: that are positive) and x the share that is on the wrong side. The rate is at or under its
bound b if x - b z has a mean of 0 or less over clusters. It lies between -b and 1 - b, so a bet of size s <= 1
multiplies the capital by 1 + s (x - b z) / b for each cluster, and the capital does not grow on average while the bound
is kept, however the rows of a cluster depend on each other. All rows take part. Bets of several sizes are mixed, as in
`problem/weighted.py`. Clusters of one row are bets on rows.

A gap between groups is tested on one random row of each cluster.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadFile, ShapeMismatch
from setpoint.measure.constraint import Constraint
from setpoint.measure.sample import Sample, numbered
from setpoint.on_use import torch
from setpoint.plain import listed, number, whole_number
from setpoint.problem.evidence import of_trials
from setpoint.problem.thresholds import Thresholds
from setpoint.problem.weighted import bets

Numbers = NDArray[np.float64]
Keys = NDArray[np.uint64]
#: Takes the counts that a bound is about from all counts; counts of several clusters have one more axis in front.
Seen = Callable[[Numbers], Numbers]
#: The hexadecimal digits of the key of a cluster.
_DIGITS = 16


def keys_of_clusters(clusters: Any, rows: int) -> Keys:
    """The key of the cluster of each row: a hash of its name, which is the same in every table.

    Raises:
        ShapeMismatch: If there is not one cluster per row.
        BadGroups: If a row has no cluster.
    """
    names, codes = numbered(clusters, "clusters", "drop those, or give each row its cluster")
    if codes.shape != (rows,):
        raise ShapeMismatch(f"clusters have shape {codes.shape} for {rows} rows; give one cluster per row")
    return _hashed(names)[codes]


def _hashed(names: list[str]) -> Keys:
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=_DIGITS // 2).digest() for name in names)
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


def stored_keys(keys: Keys) -> str:
    """Keys as text, for JSON."""
    return keys.astype(">u8").tobytes().hex()


def read_keys(stored: Any) -> Keys:
    """The keys that `stored_keys` wrote."""
    if not isinstance(stored, str) or len(stored) % _DIGITS:
        raise BadFile("the keys of its clusters are not hexadecimal numbers")
    return np.frombuffer(bytes.fromhex(stored), dtype=">u8").astype(np.uint64)


@dataclass(frozen=True)
class ClusterCounts:
    """The true counts of the rows of each cluster, and those of one random row of each; `merge` joins two chunks.

    Attributes:
        keys: The key of each cluster, in ascending order.
        sizes: The number of rows of each cluster.
        counts: The counts of the rows of each cluster.
        drawn: The counts of one random row of each cluster.
        chances: The random number by which that row was drawn; the smallest one of the cluster.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.problem.clusters import ClusterCounts
        >>> from setpoint.problem.read_sample import read_sample
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        >>> sample = read_sample(point.problem, [0.1, 0.9, 0.8], [0, 0, 1])
        >>> found = ClusterCounts.of(point.thresholds, sample, ["Ann", "Ann", "Ben"])
        >>> sorted(found.sizes.tolist()), found.counts.sum(0).tolist()
        ([1.0, 2.0], [1.0, 1.0, 0.0, 1.0])
    """

    keys: Keys
    sizes: Numbers
    counts: Numbers
    drawn: Numbers
    chances: Numbers

    @classmethod
    def of(cls, thresholds: Thresholds, sample: Sample, clusters: Any, seed: Any = 0) -> ClusterCounts:
        """Count the rows of each cluster of a sample; the seed draws one row of each."""
        own, each = _kinds_of_rows(thresholds, sample)
        keys, place = np.unique(keys_of_clusters(clusters, len(own)), return_inverse=True)
        pairs, times = np.unique(place * len(each) + own, return_counts=True)
        counts = np.zeros((len(keys), *each.shape[1:]))
        np.add.at(counts, pairs // len(each), _along(times, each[pairs % len(each)]))
        chances = np.random.default_rng(seed).random(len(own))
        first = _first_of_each(place, chances)
        return cls(keys, np.asarray(np.bincount(place), dtype=np.float64), counts, each[own[first]], chances[first])

    def merge(self, other: ClusterCounts) -> ClusterCounts:
        """The counts of both chunks together; a cluster may have rows in both."""
        keys, place = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        names = ("sizes", "counts", "drawn", "chances")
        parts = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in names]
        sizes, counts = (np.zeros((len(keys), *values.shape[1:])) for values in parts[:2])
        np.add.at(sizes, place, parts[0])
        np.add.at(counts, place, parts[1])
        first = _first_of_each(place, parts[3])
        return ClusterCounts(keys, sizes, counts, parts[2][first], parts[3][first])

    def without(self, known: Keys) -> ClusterCounts:
        """The clusters that are not among these."""
        new = ~np.isin(self.keys, known)
        return ClusterCounts(*(values[new] for values in vars(self).values()))

    def profiles(self) -> Profiles:
        """The clusters by their profile: how many rows each has, and how many of them are of each kind."""
        shape = self.counts.shape[1:]
        flat = self.counts.reshape(len(self.sizes), math.prod(shape))
        rows, times = np.unique(np.concatenate([self.sizes[:, None], flat], axis=1), axis=0, return_counts=True)
        return Profiles(times.astype(np.float64), rows[:, 0], rows[:, 1:].reshape(len(rows), *shape))


@dataclass(frozen=True)
class Profiles:
    """How many clusters have the same number of rows of each kind.

    Attributes:
        times: The number of clusters of each profile.
        sizes: The number of rows of such a cluster.
        counts: The true counts of its rows.
    """

    times: Numbers
    sizes: Numbers
    counts: Numbers

    @property
    def standing(self) -> Numbers:
        """The counts of all clusters, each of which counts as one row."""
        return np.asarray(_along(self.times / self.sizes, self.counts).sum(0))

    def shares(self, constraint: Constraint, seen: Seen) -> tuple[Numbers, Numbers]:
        """The shares of the rows of such a cluster that are on the wrong side of a bound, and that count for it."""
        part, whole = of_trials(constraint, seen(self.counts))
        return part / self.sizes, whole / self.sizes

    def stored(self) -> dict[str, Any]:
        """Plain data for JSON, which `read_profiles` reads."""
        each = ("times", self.times), ("sizes", self.sizes), ("counts", self.counts)
        return {name: values.astype(np.int64).tolist() for name, values in each}


def read_profiles(data: Any, shape: tuple[int, ...]) -> Profiles:
    """The profiles that `stored` gave, of counts of this shape."""
    times, sizes = (np.array(listed(data[name], _above_0), dtype=np.float64) for name in ("times", "sizes"))
    counts = np.array(data["counts"], dtype=np.float64).reshape(len(times), *shape)
    if len(times) != len(sizes) or not (counts >= 0).all():
        raise BadFile("the counts of its clusters do not fit their number")
    return Profiles(times, sizes, counts)


def _above_0(value: Any) -> float:
    return number(whole_number(value, 1))


def grown(part: Numbers, whole: Numbers, times: Numbers, bound: float) -> Numbers:
    """The logarithm by which the capital of each size of bet grows, from the shares of the rows of each cluster."""
    bound, sizes = bets(bound)
    return np.asarray((times * np.log1p(sizes[:, None] * (part - bound * whole) / bound)).sum(-1))


def _along(times: Any, counts: Numbers) -> Numbers:
    """Counts times a number for each of the first axis."""
    return np.asarray(counts * np.reshape(times, (-1,) + (1,) * (counts.ndim - 1)))


def _first_of_each(place: NDArray[np.int64], chances: Numbers) -> NDArray[np.int64]:
    """The place of the smallest chance of each cluster."""
    order = np.lexsort((chances, place))
    return np.asarray(order[np.unique(place[order], return_index=True)[1]])


def _kinds_of_rows(thresholds: Thresholds, sample: Sample) -> tuple[NDArray[np.int64], Numbers]:
    """The kind of each row, by its decision, its label and its group, and the true counts of a row of each kind."""
    scores, labels = sample.scores.detach().cpu().double(), sample.labels.cpu().numpy().astype(np.int64)
    groups = np.zeros(len(labels), dtype=np.int64) if sample.groups is None else sample.groups.cpu().numpy()
    if thresholds.by_group:
        lowered, own = thresholds.lowered(scores, sample.groups)
        decided = (lowered > own).numpy().astype(np.int64)
    else:
        decided = thresholds.decided(scores.numpy())
    kinds = (decided * (labels.max(initial=0) + 1) + labels) * (groups.max(initial=0) + 1) + groups
    _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
    each = [_counts_of_row(thresholds, sample, int(row)) for row in first]
    return kind, np.stack(each) if each else np.zeros((1, 4))


def _counts_of_row(thresholds: Thresholds, sample: Sample, row: int) -> Numbers:
    one = replace(sample.take(torch.tensor([row])), n_groups=len(thresholds.by_group) or None)
    counts: Numbers = np.rint(thresholds.count(one)[0].double().numpy())
    if sample.values is not None:
        # The sums of values are no counts of rows.
        counts[1:] = 0
    return counts
