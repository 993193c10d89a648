"""Exact tests for and against a bound on a mean over lists, whatever the distribution of the values.

Lists are the independent units. Whether a list has a hit is 0 or 1, so the number of hits is binomial. Any other value
lies between 0 and 1, and its mean is tested by betting (Waudby-Smith and Ramdas, 2024): a gambler who pays the bound
m for each value x, and stakes a part of the capital that depends on earlier values only, cannot expect to gain while
the mean is m or less. The capital is then 1 / p times as large at any time with probability p at most, so one over the
largest capital is a p-value. The lists are gone through in an order that is drawn at random, always the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.measure.constraint import Constraint, Relation
from setpoint.measure.in_first import InFirst, hit
from setpoint.on_use import torch
from setpoint.problem.binomial import at_least, at_most

Numbers = NDArray[np.float64]
BINOMIAL, BETTING = "exact binomial test over lists", "betting on the mean over lists"
#: The largest part of the capital that can be lost at once, and the level at which the bets have the most power.
_MOST, _LEVEL = 0.9, 0.05
#: More lists than two to this power are not counted.
_LIMIT = 24


def p_of_lists(constraint: Constraint, counts: Any, *, broken: bool) -> float:
    """The probability of lists this good if the bound were broken, or of lists this bad if it were kept.

    Counts are `(D, Q, 6)`. An equality cannot be shown to hold: 1.
    """
    assert isinstance(constraint.quantity, InFirst)
    values = constraint.quantity.of_each(torch.as_tensor(np.asarray(counts, dtype=np.float64))).numpy()
    if constraint.relation == "==":
        both = [p_beyond(constraint, values, relation) for relation in (">=", "<=")]
        return 1.0 if broken else min(1.0, 2 * min(both))
    other: Relation = "<=" if constraint.relation == ">=" else ">="
    return p_beyond(constraint, values, constraint.relation if broken else other)


def p_beyond(constraint: Constraint, values: Numbers, relation: Relation) -> float:
    """The p-value of the values of lists against the hypothesis that their mean is not `relation` the bound."""
    if is_hit(constraint):
        # Where ties make a hit a matter of chance, the list is counted as speaking against the claim.
        test, counted = (at_least, np.floor) if relation == ">=" else (at_most, np.ceil)
        return float(test(counted(values).sum(), len(values), constraint.bound))
    if relation == ">=":
        return p_above(values, constraint.bound)
    return p_above(1 - values, 1 - constraint.bound)


def is_hit(constraint: Constraint) -> bool:
    """Whether a bound is on the share of lists with a hit."""
    return isinstance(constraint.quantity, InFirst) and bool(constraint.quantity.rate == hit)


def p_above(values: Numbers, bound: float) -> float:
    """The p-value of values in [0, 1] against the hypothesis that their mean is `bound` or less.

    Example:
        >>> import numpy as np
        >>> from setpoint.problem.evidence_of_lists import p_above
        >>> p_above(np.full(100, 0.4), 0.3) < 0.05, p_above(np.full(100, 0.2), 0.3)
        (True, 1.0)
    """
    size = len(values)
    if bound <= 0 or not size:
        return 0.0 if size else 1.0
    x = values[np.random.default_rng((0x5E7, size)).permutation(size)]
    seen = np.arange(1, size + 1)
    means = (0.5 + np.cumsum(x)) / (seen + 1)
    # The variance of the values before each one, as far as it is known then.
    spread = (0.25 + np.concatenate([[0.0], np.cumsum((x - means) ** 2)[:-1]])) / seen
    stakes = np.minimum(np.sqrt(2 * math.log(1 / _LEVEL) / (size * spread)), _MOST / bound)
    capital = np.cumsum(np.log1p(stakes * (x - bound)))
    return float(np.exp(-max(capital.max(), 0.0)))


def lists_needed(constraint: Constraint, confidence: float, value: float | None = None) -> int | None:
    """The fewest lists that certify a bound if each list has this value, the best one by default; None if too many."""
    best = value if value is not None else 1.0 if constraint.relation == ">=" else 0.0

    def passes(lists: int) -> bool:
        return p_beyond(constraint, np.full(lists, best), constraint.relation) <= 1 - confidence

    high = next((2**power for power in range(_LIMIT) if passes(2**power)), None)
    return None if high is None else bisect_left(range(high), True, lo=high // 2 + 1, key=passes) if high > 1 else 1
