"""Drift: whether new scores, or new values of a feature, are distributed as those of a reference sample.

Drift is no broken promise: it is noticed before labels come, and a bound may hold in spite of it, or break without it.

The reference is a sample of m values. Values at ranks that divide them into equal parts are the edges of bins. If a new
value comes from the same distribution, all m + 1 ranks are equally likely for it, and the unknown probabilities of the
bins are Dirichlet with the numbers of ranks per bin as parameters: exactly, for any distribution, since only the order
matters. Ties are broken at random, in the reference and in new batches. So the probability of the bins of all new rows
is known (a Polya urn), and the finite size of the reference is part of it. A second urn, which starts with fewer rows
and forgets half of them at each look, bets on another distribution. The ratio of both probabilities is a capital that
is 1 on average while nothing drifts. Bets begin at every look, with a share of 1/(k(k+1)) for look k, and with three
sizes of urns. Their sum ever reaches 1 / level with probability `level` at most, over any number of looks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from setpoint.errors import BadFile
from setpoint.plain import listed, number, whole_number
from setpoint.problem.watch import CALIBRATED

Numbers = NDArray[np.float64]
#: The name of the scores among what may drift; features have names of their own.
SCORES = "scores"
#: Bins of a reference.
BINS = 16
#: Rows that the urns of the bets start with.
_URNS = np.array([1.0, 10.0, 100.0]) * BINS
_FORGET = 0.5


@dataclass(frozen=True)
class Reference:
    """The bins that new values are sorted into.

    Args:
        edges: The values between bins, in ascending order, each with the number that breaks its ties.
        ranks: The number of ranks of a new value that fall into each bin.
    """

    edges: NDArray[np.float64]
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, values: Any, draw: np.random.Generator) -> Reference:
        """The reference that a sample of values gives."""
        values = np.asarray(values, dtype=np.float64)
        ties = draw.random(len(values))
        order = np.lexsort((ties, values))
        places = np.unique(np.rint(np.arange(1, BINS) * (len(values) + 1) / BINS).astype(int))
        places = places[(places > 0) & (places <= len(values))]
        edges = np.stack([values[order], ties[order]], axis=1)[places - 1]
        return cls(edges, np.diff(np.concatenate([[0], places, [len(values) + 1]])))

    def count(self, values: Any, draw: np.random.Generator) -> NDArray[np.int64]:
        """How many of these values fall into each bin."""
        values = np.asarray(values, dtype=np.float64)
        ties = draw.random(len(values))
        below = np.searchsorted(self.edges[:, 0], values, side="left")
        beyond = np.searchsorted(self.edges[:, 0], values, side="right")
        # A value that equals edges passes those whose number is the smaller one.
        tied = np.flatnonzero(beyond > below)
        equal = values[tied, None] == self.edges[:, 0]
        below[tied] += (equal & (ties[tied, None] > self.edges[:, 1])).sum(1)
        return np.bincount(below, minlength=len(self.ranks))

    def stored(self) -> dict[str, Any]:
        """Plain data for JSON, which `read_reference` reads."""
        return {"edges": self.edges.tolist(), "ranks": self.ranks.tolist()}


def read_reference(data: Mapping[str, Any]) -> Reference:
    """The reference that `stored` gave."""
    edges = [listed(pair, number, 2) for pair in listed(data["edges"], list, BINS)]
    ranks = listed(data["ranks"], whole_number, BINS)
    if len(ranks) != len(edges) + 1 or any(len(pair) != 2 for pair in edges):
        raise BadFile("the bins of a reference do not fit its edges")
    return Reference(np.array(edges, dtype=np.float64).reshape(-1, 2), np.array(ranks))


class DriftEvidence:
    """The evidence that new values come from another distribution than a reference, for streams side by side.

    Args:
        ranks: The number of ranks per bin, `(bins,)`, or `(streams, bins)`.
    """

    def __init__(self, ranks: Any) -> None:
        self.known = np.atleast_2d(np.asarray(ranks, dtype=np.float64))
        self.centre = self.known / self.known.sum(-1, keepdims=True)
        self.recent = np.zeros_like(self.known)
        self.capital = np.full((len(self.known), len(_URNS)), -np.inf)
        self.looks = 0
        self.now = np.zeros(len(self.known))
        self.peak = np.zeros(len(self.known))

    def look(self, counts: Any) -> Numbers:
        """Take the counts of a look, `(bins,)` or `(streams, bins)`; the logarithm of the evidence after it."""
        counts = np.atleast_2d(np.asarray(counts, dtype=np.float64))
        self.looks += 1
        bets = [_log_urn(counts, size * self.centre + self.recent) - _log_urn(counts, self.known) for size in _URNS]
        begun = -math.log(self.looks * (self.looks + 1) * len(_URNS))
        self.capital = np.logaddexp(self.capital, begun) + np.stack(bets, axis=1)
        self.known = self.known + counts
        self.recent = _FORGET * (self.recent + counts)
        self.now = np.logaddexp(scipy.special.logsumexp(self.capital, axis=1), -math.log(self.looks + 1))
        self.peak = np.maximum(self.peak, self.now)
        return self.now


def _log_urn(counts: Numbers, start: Numbers) -> Numbers:
    """The log probability that an urn gives these counts, in one given order."""
    drawn = scipy.special.gammaln(start + counts) - scipy.special.gammaln(start)
    whole, rows = start.sum(-1), counts.sum(-1)
    answer: Numbers = drawn.sum(-1) - scipy.special.gammaln(whole + rows) + scipy.special.gammaln(whole)
    return answer


@dataclass(frozen=True)
class Drifted:
    """The evidence of drift of the scores, or of one feature.

    Attributes:
        name: `scores`, or the name of the feature.
        evidence: The e-value after the last look.
        most: The largest e-value at any look.
        level: The share of the level that it has.
        looks: The number of looks.

    Example:
        >>> from setpoint.decide.drift import Drifted
        >>> Drifted("scores", evidence=12.0, most=50.0, level=0.025, looks=3).drifts
        True
    """

    name: str
    evidence: float
    most: float
    level: float
    looks: int

    @property
    def drifts(self) -> bool:
        """Whether drift was found at any look."""
        return self.most >= 1 / self.level


def drift_at_each(entries: Iterable[Mapping[str, Any]], level: float) -> Iterator[list[Drifted]]:
    """The evidence of drift after each entry of a watch.

    The scores have half of the level, all features together the other half.
    """
    found: dict[str, DriftEvidence] = {}
    for entry in entries:
        if entry.get("kind") == CALIBRATED:
            found = {}
        for name, reference in entry.get("references", {}).items():
            found[name] = DriftEvidence(read_reference(reference).ranks)
        for name, counts in entry.get("bins", {}).items():
            found[name].look(counts)
        features = len(found) - 1
        each = {n: level if not features else level / 2 if n == SCORES else level / 2 / features for n in found}
        yield [Drifted(n, _shown(e.now[0]), _shown(e.peak[0]), each[n], e.looks) for n, e in found.items()]


def drift_of(entries: Iterable[Mapping[str, Any]], level: float) -> list[Drifted]:
    """The evidence of drift after the last entry of a watch."""
    last = deque(drift_at_each(entries, level), maxlen=1)
    return last[0] if last else []


def _shown(logarithm: float) -> float:
    return math.exp(min(float(logarithm), 690.0))
