"""The evidence on each bound of a problem, look by look."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from setpoint.measure.constraint import Constraint, percent
from setpoint.measure.rate import Gap
from setpoint.on_use import torch
from setpoint.problem.anytime import RateEvidence, average_interval, gap_evidence
from setpoint.problem.clusters import Profiles, grown
from setpoint.problem.evidence import is_testable, of_trials
from setpoint.problem.problem import Problem
from setpoint.problem.weighted import WeightedEvidence, betting_interval, losing, weighted_interval

Counts = NDArray[np.float64]
#: The logarithm of the largest e-value that is shown as a number.
_MOST = math.log(1e300)


@dataclass(frozen=True)
class WatchedBound:
    """One bound of a watch, after its last look.

    Attributes:
        bound: The bound in words, such as `fpr <= 1%`.
        rate: The rate over all rows.
        samples: The number of rows, or of clusters of rows, that the rate is a share of; one per group for a gap.
        low: The lower end of the interval of the average rate.
        high: The upper end. The interval holds at all looks together with probability 1 - level.
        against: The e-value against the bound; None where the bound cannot be tested.
        in_favour: The e-value for the bound; 1 for equalities, which cannot be shown to hold.
        most: The largest e-value against the bound at any look.
        broken: Whether the bound was ever called broken: `most` reached the number of bounds divided by the level.
        holds: Whether `in_favour` ever reached 1 / level, and the bound is not called broken.
        group: The group that the bound is watched in, if each group has a watch of its own.

    Example:
        >>> import setpoint as sp
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        >>> bound = point.watch().update([0.1, 0.7, 0.9], [0, 0, 1]).bounds[0]
        >>> bound.bound, bound.rate, bound.samples, bound.broken
        ('fpr <= 50%', 0.5, (2,), False)
    """

    bound: str
    rate: float
    samples: tuple[int, ...]
    low: float
    high: float
    against: float | None
    in_favour: float
    most: float
    broken: bool
    holds: bool
    group: str | None = None

    @property
    def place(self) -> str:
        """The bound, and its group if it has one."""
        return f"{self.bound} in {self.group}" if self.group else self.bound

    def __str__(self) -> str:
        of = " and ".join(map(str, self.samples))
        known = "cannot be tested" if self.against is None else f"e = {self.against:.3g} against it"
        between = f"{percent(round(self.low, 6))} ... {percent(round(self.high, 6))}"
        return f"{self.place}: {percent(round(self.rate, 6))} of {of} ({between}; {known})"


class Followed:
    """The evidence on one bound, which takes the counts of each look.

    Args:
        constraint: The bound.
        level: The probability with which the bound may ever be called broken while it holds.
        whole_level: The level of the whole watch, which a bound needs to be shown to hold.
        seen: Takes the counts that the bound is about from those of a look.
        group: The name of the group whose counts are followed; None for all groups together.
    """

    def __init__(
        self, constraint: Constraint, level: float, whole_level: float, seen: Callable[[Counts], Counts],
        group: str | None,
    ) -> None:  # fmt: skip
        self.constraint, self.level, self.whole_level = constraint, level, whole_level
        self.seen, self.group = seen, group
        self.tested = is_testable(constraint)
        self.total: Counts | None = None
        bound = constraint.bound
        self.above, self.below = RateEvidence(bound), RateEvidence(1 - bound)
        self.above_weighted, self.below_weighted = WeightedEvidence(bound), WeightedEvidence(1 - bound)
        #: The rows of each weight, as a share of the largest one, and the largest share of flagged rows.
        self.by_share: dict[tuple[float, float], Counts] = {}
        #: The shares of the rows of clusters, on the wrong side and of all that count, and how many clusters have them.
        self.by_cluster: list[tuple[Counts, Counts, Counts]] = []
        self.now, self.peak = (0.0, 0.0), (0.0, 0.0)

    def look(
        self,
        counts: Counts,
        shares: Counts | None = None,
        flagged_share: float = 1.0,
        clusters: Profiles | None = None,
    ) -> None:
        """Take the counts of one look: `(4,)`, or those of each group or class, `(G, 4)`.

        Rows with weights are counted for each share of the largest weight, `(S, 4)`; flagged rows may have none above
        `flagged_share`. Beside clusters, the counts are those of one random row of each, which decide on gaps alone.
        """
        if clusters is not None and not isinstance(self.constraint.quantity, Gap):
            self._look_at(clusters)
            return
        if shares is None:
            counts = self.seen(counts)
        for share, own in zip([1.0] if shares is None else shares.tolist(), [counts] if shares is None else counts):
            self.by_share[share, flagged_share] = self.by_share.get((share, flagged_share), 0) + own
        standing = counts if shares is None else _as_many(counts, shares)
        self.total = standing if self.total is None else self.total + standing
        if not self.tested:
            return
        relation = self.constraint.relation
        if isinstance(self.constraint.quantity, Gap):
            broken, holds = gap_evidence(*of_trials(self.constraint, self.total), self.constraint.bound)
            self.now = (broken, holds if relation == "<=" else 0.0)
        else:
            part, whole = of_trials(self.constraint, counts)
            if shares is None:
                self.above.look(part[None], whole[None]), self.below.look((whole - part)[None], whole[None])
            else:
                higher, lower = losing(self.constraint, flagged_share)
                self.above_weighted.look(shares / higher, part, whole)
                self.below_weighted.look(shares / lower, whole - part, whole)
            self._weigh()
        self.peak = (max(self.peak[0], self.now[0]), max(self.peak[1], self.now[1]))

    def _look_at(self, clusters: Profiles) -> None:
        """Take a look at clusters of rows, each of which is one bet."""
        standing = self.seen(clusters.standing)
        self.total = standing if self.total is None else self.total + standing
        if not self.tested:
            return
        part, whole = clusters.shares(self.constraint, self.seen)
        bound, size = self.constraint.bound, float(clusters.times[whole > 0].sum())
        self.by_cluster.append((part, whole, clusters.times))
        self.above_weighted.grow(size, grown(part, whole, clusters.times, bound))
        self.below_weighted.grow(size, grown(whole - part, whole, clusters.times, 1 - bound))
        self._weigh()
        self.peak = (max(self.peak[0], self.now[0]), max(self.peak[1], self.now[1]))

    def _weigh(self) -> None:
        """The evidence of all looks: a look changes one of two factors, so that their product is a fair bet too."""
        above, below = (
            float(plain.last[0]) + weighted.now
            for plain, weighted in ((self.above, self.above_weighted), (self.below, self.below_weighted))
        )
        both = (float(np.logaddexp(above, below)) - math.log(2), 0.0)
        self.now = {"<=": (above, below), ">=": (below, above), "==": both}[self.constraint.relation]

    @property
    def state(self) -> WatchedBound:
        """The bound after the last look."""
        quantity, name, group = self.constraint.quantity, str(self.constraint), self.group
        if self.total is None:
            return WatchedBound(name, 0.0, (0,), 0.0, 1.0, 1.0 if self.tested else None, 1.0, 1.0, False, False, group)
        rate = float(quantity(torch.from_numpy(self.total)))
        if not self.tested:
            return WatchedBound(name, rate, (int(self.total.sum()),), 0.0, 1.0, None, 1.0, 1.0, False, False, group)
        clusters = sum(int(times[whole > 0].sum()) for _, whole, times in self.by_cluster)
        rows = sum(self.by_share.values()) if self.by_share else np.zeros_like(self.total)
        part, whole = of_trials(self.constraint, rows)
        (low, high), broken = self._interval(part, whole), self.peak[0] >= -math.log(self.level)
        if self.by_cluster:
            low, high = self._interval_by_clusters()
        samples = tuple(map(int, np.atleast_1d(whole + clusters)))
        return WatchedBound(
            name, rate, samples, low, high, _shown(self.now[0]), _shown(self.now[1]), _shown(self.peak[0]), broken,
            not broken and self.peak[1] >= -math.log(self.whole_level), group,
        )  # fmt: skip

    def _interval(self, part: Counts, whole: Counts) -> tuple[float, float]:
        if not self.by_share or not self.above_weighted.starts:
            return _interval(part, whole, self.whole_level)
        each = [of_trials(self.constraint, counts) for counts in self.by_share.values()]
        parts, wholes = (np.array(values, dtype=np.float64) for values in zip(*each))
        shares, flagged = (np.array(values) for values in zip(*self.by_share))
        higher, lower = (np.array(each) for each in zip(*(losing(self.constraint, f) for f in flagged.tolist())))
        return weighted_interval(shares, (higher, lower), parts, wholes, self.whole_level)

    def _interval_by_clusters(self) -> tuple[float, float]:
        part, whole, times = (np.concatenate(values) for values in zip(*self.by_cluster))
        counted = float(times @ whole)
        if not counted:
            return 0.0, 1.0
        return betting_interval(
            lambda rate: grown(part, whole, times, rate),
            lambda rate: grown(whole - part, whole, times, rate),
            float(times @ part) / counted, self.whole_level,
        )  # fmt: skip


def _as_many(counts: Counts, shares: Counts) -> Counts:
    """The counts of rows as their weights count them, adding up to the number of rows."""
    heavy = shares @ counts
    return np.asarray(heavy * (counts.sum() / heavy.sum() if heavy.sum() else 0.0))


def _interval(part: Counts, whole: Counts, level: float) -> tuple[float, float]:
    """The interval of a rate; of a gap, from the intervals of all groups, which share the level."""
    if not part.ndim:
        return average_interval(float(part), float(whole), level)
    each = [average_interval(float(p), float(w), level / len(part)) for p, w in zip(part, whole)]
    pairs = list(permutations(each, 2))
    low, high = max((a[0] - b[1] for a, b in pairs), default=0.0), max((a[1] - b[0] for a, b in pairs), default=0.0)
    return max(low, 0.0), max(high, 0.0)


def _shown(logarithm: float) -> float:
    return math.exp(min(logarithm, _MOST))


def follow(problem: Problem, groups: Sequence[str], level: float) -> list[Followed]:
    """The evidence on every bound, in every group if groups are not compared; all of them share the level."""
    apart: Sequence[str | None] = groups if groups and problem.group is None else [None]
    each = [(c, place, name) for c in problem.constraints for place, name in enumerate(apart)]
    tested = sum(is_testable(constraint) for constraint, _, _ in each)

    def seen(constraint: Constraint, place: int, name: str | None) -> Callable[[Counts], Counts]:
        return lambda counts: counts[..., place, :] if name else problem.seen_by(constraint, counts)

    return [Followed(c, level / tested, level, seen(c, place, name), name) for c, place, name in each]
