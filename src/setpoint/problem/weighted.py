"""Evidence on a rate from rows that stand for different numbers of rows, valid at any number of looks.

Labels that were drawn by a plan, or that come from a population which differs by a known ratio, have weights. Let v be
the weight of a row as a share of the largest weight that can occur. A rate is at or under its bound b if x - b z has a
mean of 0 or less in the population, where z says whether the row counts at all (for recall: whether it is positive) and
x whether it is on the wrong side. A row that is drawn with probability proportional to 1 / v, and counted v times, has
that mean on average, up to a factor. So a bet of size s multiplies the capital by 1 + s v (1 - b) for a row on the
wrong side and by 1 - s v b for a row on the right side, and the capital does not grow on average while the bound is
kept. For v = 1 these are the bets of `problem/anytime.py`. Bets of several sizes are mixed, and new ones start at later
looks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from setpoint.errors import BadSetting, BadWeights
from setpoint.measure.constraint import CUT, Constraint
from setpoint.measure.in_first import LISTS
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.evidence import of_trials
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Thresholds

Numbers = NDArray[np.float64]
#: Sizes of bets, as shares of the largest possible one: from a fifth of the bound to nearly all.
_SIZES, _LARGEST = 24, 0.9
#: As in `problem/anytime.py`: a new start waits until this share of all rows has come since the last.
_SHARE = 1 / 32
_HALVINGS = 60


def bets(bound: float) -> tuple[float, Numbers]:
    """A bound between 0 and 1, and the sizes of the bets against it."""
    bound = min(max(bound, 1e-12), 1 - 1e-12)
    return bound, np.geomspace(min(0.2 * bound, 0.1), _LARGEST, _SIZES)


def mixed(growth: Numbers) -> float:
    """The logarithm of the evidence of one look, from what the capital of each size of bet grows by."""
    return float(scipy.special.logsumexp(growth) - math.log(_SIZES))


def _growth(shares: Numbers, part: Numbers, whole: Numbers, bound: float) -> Numbers:
    """The logarithm by which the capital of each size of bet grows, from the counts of rows of each share."""
    bound, sizes = bets(bound)
    each = sizes[:, None]
    # A share above 1 is that of rows that cannot lose, so that none is counted there.
    won, lost = np.log1p(each * shares * (1 - bound) / bound), np.log1p(-np.minimum(each * shares, _LARGEST))
    return np.asarray((part * won + (whole - part) * lost).sum(-1))


def log_weighted(shares: Numbers, part: Numbers, whole: Numbers, bound: float) -> float:
    """The logarithm of the evidence of one look that a rate is above a bound."""
    return mixed(_growth(shares, part, whole, bound))


class WeightedEvidence:
    """The evidence that one rate is above a bound, from looks at weighted rows or at clusters of rows.

    Args:
        bound: The bound, a share.
    """

    def __init__(self, bound: float) -> None:
        self.bound, self.starts = bound, 0
        self.rows = self.since = 0.0
        self.capital = np.full(_SIZES, -np.inf)
        self.now = 0.0

    def look(self, shares: Numbers, part: Numbers, whole: Numbers) -> None:
        """Take the counts of the rows of each share."""
        self.grow(float(whole.sum()), _growth(shares, part, whole, self.bound))

    def grow(self, rows: float, growth: Numbers) -> None:
        """Take a look by the number of its rows or clusters, and by what the capital of each size of bet grows by."""
        if rows and self.since >= _SHARE * self.rows:
            self.starts, self.since = self.starts + 1, 0.0
            begun = math.log(self.starts**-0.5 - (self.starts + 1) ** -0.5) - math.log(_SIZES)
            self.capital = np.logaddexp(self.capital, begun)
        self.rows, self.since = self.rows + rows, self.since + rows
        self.capital = self.capital + growth
        kept = -math.log(self.starts + 1) / 2
        self.now = float(np.logaddexp(scipy.special.logsumexp(self.capital), kept))


def weighted_interval(
    shares: Numbers, largest: tuple[Numbers, Numbers], part: Numbers, whole: Numbers, level: float
) -> tuple[float, float]:
    """An interval of a rate that is the same at all looks, which holds at all of them with probability 1 - `level`.

    `largest` are the largest shares of rows that lose a bet on higher rates, and on lower ones, at the look of each.
    """
    if not whole.sum():
        return 0.0, 1.0
    here = float((shares * part).sum() / max((shares * whole).sum(), 1e-300))
    return betting_interval(
        lambda rate: _growth(shares / largest[0], part, whole, rate),
        lambda rate: _growth(shares / largest[1], whole - part, whole, rate),
        here, level,
    )  # fmt: skip


def betting_interval(
    above: Callable[[float], Numbers], below: Callable[[float], Numbers], here: float, level: float
) -> tuple[float, float]:
    """The rates that bets do not speak against at a level, half of it on each side, around the rate `here`.

    `above` gives what the capital of each size of bet grows by that bets on rates above a rate. `below` gives the same
    for the opposite rate.
    """
    enough = math.log(2 / level)

    def end(growth: Callable[[float], Numbers], estimate: float) -> float:
        """The largest rate that the rows speak against from below."""
        low, high = 0.0, estimate
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            against = middle > 0 and mixed(growth(middle)) >= enough
            low, high = (middle, high) if against else (low, middle)
        return low

    return end(above, here), 1 - end(below, 1 - here)


def losing(constraint: Constraint, flagged_share: float) -> tuple[float, float]:
    """The largest share of a row that loses a bet on a higher rate, and on a lower one.

    A bet on a higher rate is lost by rows that count and are on the right side; for recall these are flagged.
    """
    part, whole = (np.array(value) for value in zip(*(of_trials(constraint, cell) for cell in np.eye(4))))
    of_cell = np.array([flagged_share, flagged_share, 1.0, 1.0])
    higher, lower = ((of_cell * (own > 0)).max() for own in (whole - part, part))
    return float(higher), float(lower)


def refuse_weights(problem: Problem, thresholds: Thresholds) -> None:
    """Refuse points whose bounds are not tested with weights."""
    plain = all(isinstance(constraint.quantity, Rate) for constraint in problem.constraints)
    if thresholds.single is None or problem.kind != CUT or problem.over is not None or not plain:
        raise BadWeights(
            f"weights are tested for one threshold and bounds on plain rates, which '{problem}' does not have; label "
            "rows at random and leave the weights out"
        )


def refuse_with_clusters(problem: Problem, clusters: Any, weights: Any) -> None:
    """Refuse clusters beside lists, which are clusters themselves, and beside weights of rows."""
    if clusters is None:
        return
    if problem.kind == LISTS:
        raise BadSetting("lists are tested whole, so they stand beside no clusters; leave out clusters")
    if isinstance(weights, PopulationWeights):
        raise BadWeights("weights of rows are not tested beside clusters; leave out the weights or the clusters")


def count_by_weight(
    problem: Problem, thresholds: Thresholds, sample: Sample, weights: PopulationWeights, found: Any = None
) -> tuple[Numbers, list[float]]:
    """The true counts of the rows of each weight, `(S, 4)`, and the weights as shares of the largest one.

    Adds the rows to a hash, if one is given.
    """
    refuse_weights(problem, thresholds)
    scores, labels = sample.scores.detach().cpu().numpy(), sample.labels.cpu().numpy()
    own = hashlib.sha256()
    for values in (scores, labels, np.asarray(weights.weights, dtype=np.float64)):
        own.update(np.ascontiguousarray(values).tobytes())
    if found is not None:
        found.update(own.digest())
    each = weights.shares(len(labels), int(own.hexdigest()[:16], 16))
    kinds, place = np.unique(each, return_inverse=True)
    passed = scores > thresholds.single
    if (each[passed] > weights.flagged_share).any():
        raise BadWeights(f"a flagged row has a weight above most_flagged={weights.most_flagged:g}; give the largest")
    cell = 2 * ~passed + (labels == 0)
    counts = np.bincount(4 * place + cell, minlength=4 * len(kinds)).reshape(-1, 4)
    return counts[kinds > 0].astype(np.float64), kinds[kinds > 0].tolist()
