"""Exact tests for and against a bound from true counts, whatever the distribution of the scores.

At a threshold that was fixed beforehand, the number of samples on the wrong side is binomial. So it is for a share of
the flagged samples (precision), given how many are flagged.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from setpoint.measure.classes import ClassQuantity, Micro, OfClass
from setpoint.measure.constraint import Constraint, Quantity
from setpoint.measure.in_first import InFirst
from setpoint.measure.rate import Gap, Rate, rate_within
from setpoint.measure.worth import Weighted, plain_of
from setpoint.problem.binomial import at_least, at_most
from setpoint.problem.evidence_of_lists import p_of_lists

Numbers = NDArray[np.float64]
#: The probability spent on narrowing down the common rate at which two groups are compared.
_BOOS = 1e-3
_GRID = 33
#: The wholes of rates of all classes together in which every row counts once: by its class, or by its decision.
_EACH_ROW_ONCE = ((1, 0, 1, 0), (1, 1, 0, 0))


def is_testable(constraint: Constraint) -> bool:
    """Whether an exact test is known: the bound is on a share of counts, or holds down or closes the gap of one."""
    quantity = constraint.quantity
    if isinstance(quantity, InFirst):
        return True
    closed = constraint.relation == "==" and constraint.bound == 0
    if isinstance(quantity, Gap) and constraint.relation != "<=" and not closed:
        return False
    rate = plain_of(quantity)
    rate = rate.rate if isinstance(rate, Gap | OfClass | Micro) else rate
    if not isinstance(rate, Rate) or not rate.is_share or not any(rate.part):
        return False
    if isinstance(quantity, Micro) and rate.whole not in _EACH_ROW_ONCE:
        return False
    unit = max(rate.whole)
    return all(weight in (0, unit) for weight in (*rate.part, *rate.whole))


def p_if_broken(constraint: Constraint, counts: Any) -> Numbers:
    """The probability of counts this good if the bound were broken: a small one is evidence *for* the bound.

    Counts `(..., 4)`, `(G, 4)` for a gap, `(..., K, 4)` for K classes, or `(D, Q, 6)` for Q lists. Equalities cannot
    be shown to hold: 1. A gap is that of all groups, so nothing speaks for it while one of them has no samples: 1.
    """
    if isinstance(constraint.quantity, InFirst):
        return np.asarray(p_of_lists(constraint, counts, broken=True))
    if constraint.relation == "==":
        return np.ones(np.shape(counts)[: -2 if isinstance(constraint.quantity, ClassQuantity) else -1])
    part, whole = _trials(constraint.quantity, counts)
    if isinstance(constraint.quantity, Gap):
        return np.asarray(p_if_gap_exceeds(part, whole, constraint.bound))
    tail = at_most if constraint.relation == "<=" else at_least
    return tail(part, whole, constraint.bound)


def p_if_gap_exceeds(part: Numbers, whole: Numbers, bound: float) -> float:
    """The probability of shares this close, `part` of `whole` in each group, if the gap were above the bound.

    1 when a group has no samples: its share may be anything.
    """
    if not whole.all():
        return 1.0
    return max([_not_less(*pair, bound) for pair in _pairs(part, whole)], default=1.0)


def p_if_kept(constraint: Constraint, counts: Any) -> Numbers:
    """The probability of counts this bad if the bound were kept: a small one is evidence *against* the bound.

    A group without samples is no evidence against a gap; `check_bound` names such groups.
    """
    if isinstance(constraint.quantity, InFirst):
        return np.asarray(p_of_lists(constraint, counts, broken=False))
    part, whole = _trials(constraint.quantity, counts)
    if isinstance(constraint.quantity, Gap):
        # The mirror image: those who fell on the other side of the threshold, and the groups' order turned round.
        each = [_not_less(*pair, -constraint.bound) for pair in _pairs(whole - part, whole)]
        return np.asarray(min(1.0, len(each) * min(each)) if each else 1.0)
    low, high = at_most(part, whole, constraint.bound), at_least(part, whole, constraint.bound)
    if constraint.relation == "==":
        both: Numbers = np.clip(2 * np.minimum(low, high), 0.0, 1.0)
        return both
    return high if constraint.relation == "<=" else low


def trials(constraint: Constraint, counts: Any) -> Numbers:
    """The number of samples that the bound is a share of; of lists, their number."""
    if isinstance(constraint.quantity, InFirst):
        return np.asarray(float(np.shape(counts)[-2]))
    return _trials(constraint.quantity, counts)[1]


def of_trials(constraint: Constraint, counts: Any) -> tuple[Numbers, Numbers]:
    """How many samples count towards the rate of the bound, and of how many; of each group for a gap."""
    return _trials(constraint.quantity, counts)


def interval(part: Any, whole: Any, confidence: float) -> tuple[Numbers, Numbers]:
    """The exact two-sided interval of a share (Clopper and Pearson), 0 ... 1 where there is nothing to count."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    # Not binomtest(...).proportion_ci: scipy.stats is slow to import, and binomtest takes a single pair of counts.
    tail = (1 - confidence) / 2
    some, short = part > 0, part < whole
    low = scipy.special.betaincinv(np.where(some, part, 1.0), whole - part + 1, tail)
    high = scipy.special.betaincinv(part + 1, np.where(short, whole - part, 1.0), 1 - tail)
    return np.where(some, low, 0.0), np.where(short, high, 1.0)


def _trials(quantity: Quantity, counts: Any) -> tuple[Numbers, Numbers]:
    values = np.asarray(counts, dtype=np.float64)
    if isinstance(quantity, Weighted):
        quantity, values = quantity.rate, values[..., 0, :]
    rate = rate_within(quantity)
    if isinstance(quantity, OfClass):
        values = values[..., quantity.k, :]
    elif isinstance(quantity, Micro):
        values = values.sum(-2)
    unit = max(rate.whole)
    return np.rint(values @ np.array(rate.part) / unit), np.rint(values @ np.array(rate.whole) / unit)


def _pairs(part: Numbers, whole: Numbers) -> list[tuple[float, float, float, float]]:
    """All ordered pairs of groups that have samples."""
    present = [group for group in range(len(part)) if whole[group] > 0]
    return [(part[a], whole[a], part[b], whole[b]) for a, b in permutations(present, 2)]


def _not_less(part_a: float, whole_a: float, part_b: float, whole_b: float, bound: float) -> float:
    """The p-value of "rate a exceeds rate b by the bound or more", from the observed difference.

    The unconditional exact test: the largest probability of so small a difference over all pairs of rates that the
    hypothesis allows and the data do not rule out at one in a thousand, which is added (Berger and Boos).
    """
    difference = part_a / whole_a - part_b / whole_b
    (low_a, high_a), (low_b, high_b) = (
        interval(part, whole, 1 - _BOOS / 2) for part, whole in ((part_a, whole_a), (part_b, whole_b))
    )
    first, last = max(low_b, low_a - bound), min(high_b, high_a - bound)
    if first <= last:
        rates_b = np.linspace(first, last, _GRID)
        rates_a = np.clip(rates_b + bound, 0.0, 1.0)
    elif low_a - bound > high_b:
        rates_a, rates_b = np.array([low_a]), np.array([high_b])
    else:
        return _BOOS
    return min(1.0, float(_share_below(difference, whole_a, rates_a, whole_b, rates_b).max()) + _BOOS)


def _share_below(difference: float, whole_a: float, rates_a: Numbers, whole_b: float, rates_b: Numbers) -> Numbers:
    """P(share of a - share of b <= difference), for every pair of rates."""
    spread = 8 * np.sqrt(whole_b * np.maximum(rates_b * (1 - rates_b), 1 / whole_b)) + 8
    first = max(0, int((whole_b * rates_b - spread).min()))
    last = min(int(whole_b), int((whole_b * rates_b + spread).max()) + 1)
    part_b = np.arange(first, last + 1, dtype=np.float64)
    chance_b = _chance(part_b, whole_b, rates_b[:, None])
    part_a = np.floor(whole_a * (difference + part_b / whole_b) + 1e-9)
    below_a = np.where(part_a < 0, 0.0, at_most(np.maximum(part_a, 0.0), whole_a, rates_a[:, None]))
    below: Numbers = (chance_b * below_a).sum(-1)
    return below


def _chance(part: Numbers, whole: float, share: Numbers) -> Numbers:
    """P(Binomial(whole, share) = part)."""
    ways = scipy.special.gammaln(whole + 1) - scipy.special.gammaln(part + 1) - scipy.special.gammaln(whole - part + 1)
    chance: Numbers = np.exp(ways + scipy.special.xlogy(part, share) + scipy.special.xlog1py(whole - part, -share))
    return chance
