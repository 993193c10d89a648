"""Checks of a promise: an exact test of each bound on later data."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadSetting
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import Constraint, percent
from setpoint.measure.labels import LABELS, OfLabel
from setpoint.measure.rate import Gap
from setpoint.on_use import torch
from setpoint.problem.clusters import ClusterCounts, Seen, grown
from setpoint.problem.evidence import is_testable, of_trials, p_if_kept, trials
from setpoint.problem.problem import Problem
from setpoint.problem.weighted import log_weighted, losing, mixed

if TYPE_CHECKING:
    from torch import Tensor

#: The units that a test counts, in words.
SAMPLES, OF_CLUSTERS, ONE_OF_EACH = "samples", "clusters", "rows, one of each cluster"


@dataclass(frozen=True)
class BoundCheck:
    """The exact test of one bound on later data.

    Attributes:
        bound: The bound in words, such as `fpr <= 1%`.
        rate: The true rate on the later data.
        samples: The number of samples that the rate is a share of; for a gap, one number per group.
        p_value: The probability of a rate this bad if the bound were kept; None where no exact test is known.
        group: The group that the bound was tested in, if each group has its own test.
        unseen: The groups without a sample to judge the bound by; nothing is known about them.
        units: The independent units that `samples` counts, in words: samples, or clusters of rows.

    Example:
        >>> import setpoint as sp
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        >>> later = point.check([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
        >>> later.bounds[0].bound, later.bounds[0].rate
        ('fpr <= 50%', 0.5)
    """

    bound: str
    rate: float
    samples: tuple[int, ...]
    p_value: float | None
    group: str | None = None
    unseen: tuple[str, ...] = ()
    units: str = SAMPLES

    def __str__(self) -> str:
        where = f" in {self.group}" if self.group else ""
        of = " and ".join(map(str, self.samples)) + (f" {self.units}" if self.units != SAMPLES else "")
        test = "no exact test" if self.p_value is None else f"p = {self.p_value:.3g}"
        return f"{self.bound}{where}: {percent(round(self.rate, 6))} of {of} ({test})"


@dataclass(frozen=True)
class Check:
    """The tests of all bounds on later data, and whether they speak against the promise.

    A promise that is kept is called broken with probability `level` at most *per look*, so among many looks some will
    be false alarms. A broken promise may go unnoticed in a small batch.

    Attributes:
        bounds: The test of each bound.
        level: The probability of a false alarm per look.
        p_value: The p-value of all bounds together: the smallest one times their number.
        holds: Whether the data are consistent with the promise.

    Example:
        >>> import setpoint as sp
        >>> scores, labels = [0.1, 0.4, 0.2, 0.9, 0.7, 0.8], [0, 0, 0, 1, 1, 1]
        >>> point = sp.calibrate("minimize fnr where fpr <= 10%", scores, labels)
        >>> check = point.check([0.95] * 5 + [0.9], [0] * 5 + [1])
        >>> check.holds, f"{check.p_value:.0e}"
        (False, '1e-05')
    """

    bounds: tuple[BoundCheck, ...]
    level: float

    @property
    def p_value(self) -> float:
        known = [row.p_value for row in self.bounds if row.p_value is not None]
        return min(1.0, len(known) * min(known)) if known else 1.0

    @property
    def by_clusters(self) -> bool:
        """Whether the tests count clusters of rows."""
        return any(row.units != SAMPLES for row in self.bounds)

    @property
    def holds(self) -> bool:
        """Whether the data are consistent with the promise."""
        return self.p_value > self.level

    def __str__(self) -> str:
        if not any(row.p_value is not None for row in self.bounds):
            return "nothing was promised that could be tested"
        rows = "; ".join(map(str, self.bounds))
        unseen = dict.fromkeys(name for row in self.bounds for name in row.unseen)
        if self.holds:
            names = " and ".join(map(repr, unseen))
            but = f", but group {names} has no samples to judge it by" if unseen else ""
            return f"no evidence that the promise is broken (p = {self.p_value:.3g}){but}: {rows}"
        return f"the promise is broken (p = {self.p_value:.3g}, level {self.level:g} per look): {rows}"


def check_bound(
    constraint: Constraint,
    counts: NDArray[np.float64],
    rate: float,
    group: str | None = None,
    names: Collection[str] = (),
) -> BoundCheck:
    """Test one bound on true counts `(4,)`, those of a `group` if given; or a gap on those of all `names`, `(G, 4)`."""
    if not is_testable(constraint):
        own = constraint.quantity.k if isinstance(constraint.quantity, OfLabel) else 0
        kinds = (CLASSES, LABELS)
        each = counts.sum(-1) if constraint.quantity.kind not in kinds else counts[..., own : own + 1, :].sum(-1)
        return BoundCheck(str(constraint), rate, (int(each.sum()),), None, group)
    samples = tuple(int(n) for n in np.atleast_1d(trials(constraint, counts)))
    unseen = tuple(name for name, size in zip(names if group is None else [group], samples) if size == 0)
    return BoundCheck(str(constraint), rate, samples, float(p_if_kept(constraint, counts)), group, unseen)


def check_counts(problem: Problem, each: Tensor, groups: Collection[str] = (), *, level: float = 0.05) -> Check:
    """All bounds against true counts at the threshold, `(4,)`, or in each of the groups by name, `(G, 4)`."""
    _refuse_level(level)
    rows = []
    for constraint in problem.constraints:
        compared = isinstance(constraint.quantity, Gap)
        if not groups or compared or problem.group is not None:
            seen = each if not groups or compared else each.sum(0)
            value, names = float(constraint.quantity(seen)), groups if compared else ()
            rows.append(check_bound(constraint, seen.numpy(), value, names=names))
        else:
            rates = constraint.quantity(each).tolist()
            rows += [check_bound(constraint, own.numpy(), r, n) for n, own, r in zip(groups, each, rates)]
    return Check(tuple(rows), level)


def check_weighted(
    problem: Problem, counts: NDArray[np.float64], shares: list[float], flagged_share: float, level: float
) -> Check:
    """All bounds against true counts of the rows of each weight, `(S, 4)`, as shares of the largest weight."""
    _refuse_level(level)
    heavy, rows = np.array(shares), []
    for constraint in problem.constraints:
        rate = float(constraint.quantity(torch.from_numpy(heavy @ counts)))
        if not is_testable(constraint):
            rows.append(BoundCheck(str(constraint), rate, (int(counts.sum()),), None))
            continue
        part, whole = of_trials(constraint, counts)
        higher, lower = losing(constraint, flagged_share)
        above = log_weighted(heavy / higher, part, whole, constraint.bound)
        below = log_weighted(heavy / lower, whole - part, whole, 1 - constraint.bound)
        rows.append(BoundCheck(str(constraint), rate, (int(whole.sum()),), _p_of(constraint, above, below)))
    return Check(tuple(rows), level)


def check_clusters(
    problem: Problem, each: Tensor, clusters: ClusterCounts, groups: Collection[str] = (), *, level: float = 0.05
) -> Check:
    """All bounds against the counts of clusters of rows; bounds without a test by clusters get no p-value.

    A rate is tested by bets on all clusters, and a gap between groups by the exact test of one random row of each.

    Args:
        problem: The problem.
        each: The true counts of all rows at the threshold, `(4,)`, or in each of the groups, `(G, 4)`.
        clusters: The same counts by cluster.
        groups: The names of the groups, if each has its own threshold.
        level: The level of the test.
    """
    _refuse_level(level)
    rows, apart = [], list(groups) if groups and problem.group is None else [None]
    for constraint in problem.constraints:
        for place, name in enumerate(apart):
            seen: Seen = partial(_of_group, place) if name else partial(problem.seen_by, constraint)
            if not is_testable(constraint):
                own = seen(each.numpy())
                rows.append(check_bound(constraint, own, float(constraint.quantity(torch.from_numpy(own))), name))
            elif isinstance(constraint.quantity, Gap):
                drawn = clusters.drawn.sum(0)
                value = float(constraint.quantity(torch.from_numpy(drawn)))
                rows.append(replace(check_bound(constraint, drawn, value, names=groups), units=ONE_OF_EACH))
            else:
                rows.append(_check_by_clusters(constraint, clusters, seen, name))
    return Check(tuple(rows), level)


def _of_group(place: int, counts: Any) -> Any:
    return counts[..., place, :]


def _check_by_clusters(constraint: Constraint, clusters: ClusterCounts, seen: Seen, group: str | None) -> BoundCheck:
    profiles = clusters.profiles()
    part, whole = profiles.shares(constraint, seen)
    times, bound = profiles.times, constraint.bound
    above = mixed(grown(part, whole, times, bound))
    below = mixed(grown(whole - part, whole, times, 1 - bound))
    rate = float(constraint.quantity(torch.from_numpy(seen(profiles.standing))))
    size = int(times[whole > 0].sum())
    unseen = (group,) if group is not None and not size else ()
    return BoundCheck(str(constraint), rate, (size,), _p_of(constraint, above, below), group, unseen, units=OF_CLUSTERS)


def _p_of(constraint: Constraint, above: float, below: float) -> float:
    """The p-value that the evidence on both sides of a bound gives: 1 / evidence against the bound."""
    both = float(np.logaddexp(above, below)) - math.log(2)
    evidence = {"<=": above, ">=": below, "==": both}[constraint.relation]
    return min(1.0, math.exp(-max(evidence, 0.0)))


def _refuse_level(level: float) -> None:
    if isinstance(level, bool) or not 0 < level < 1:
        raise BadSetting(f"level must lie between 0 and 1, such as 0.05, got {level!r}")
