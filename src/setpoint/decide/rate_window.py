"""Windows of a rate: groups whose rates on n samples lie in one window are alike on new data, wherever their cuts lie.

Where k of n samples count at a threshold, the true rate there lies between the k-th and the (k+1)-th smallest of n
uniform numbers, whatever the distribution and its ties, and whoever chose the threshold. So two groups differ by more
than the bound somewhere in a window only if the order statistic at the upper end of one exceeds that at the lower end
of the other by more than the bound. This probability is known beforehand from the sizes of the groups alone; no sample
is spent on a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import scipy
from numpy.typing import NDArray

#: The cells of the integral over one of two order statistics; each cell is taken at its worse end.
_CELLS = 1000


def p_window_breaks(low: float, high: float, sizes: Sequence[int], bound: float) -> float:
    """A bound on the probability that groups of these sizes, with rates in the window, truly differ by more than that.

    Example:
        >>> from setpoint.decide.rate_window import p_window_breaks
        >>> p_window_breaks(0.8, 0.82, [300, 300], 0.1) < 0.05 < p_window_breaks(0.8, 0.86, [300, 300], 0.1)
        True
    """
    ends = [(math.ceil(low * n - 1e-9), math.floor(high * n + 1e-9) + 1, n) for n in sizes]
    return min(1.0, sum(_p_apart(a[1], a[2], b[0], b[2], bound) for a, b in permutations(ends, 2)))


def widest_window(centre: float, sizes: Sequence[int], bound: float, level: float) -> tuple[float, float] | None:
    """The widest window around a rate, or around the nearest rate that has one; None where the samples are too few.

    A window that is narrower than a tenth of the bound, or than a sample, leaves nothing to choose, so it is moved
    towards the nearer end.
    """
    end, least = float(centre > 0.5), max(bound / 10, 1 / max(1, min(sizes)))
    if p_window_breaks(end, end, sizes, bound) > level:
        return None

    def around(middle: float, width: float) -> tuple[float, float]:
        return max(0.0, middle - width / 2), min(1.0, middle + width / 2)

    def passes(middle: float, width: float) -> bool:
        return p_window_breaks(*around(middle, width), sizes, bound) <= level

    middle = centre
    if not passes(centre, least):
        middle = end + (centre - end) * _last(lambda share: passes(end + share * (centre - end), least), 1.0)
    return around(middle, _last(lambda width: passes(middle, width), bound))


def _last(passes: Callable[[float], bool], most: float) -> float:
    """The largest number up to `most` that passes, within a thousandth, where smaller ones pass; 0 if none does."""
    low, high = 0.0, most
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _p_apart(upper: int, n: int, lower: int, m: int, bound: float) -> float:
    """P(U - V > bound) or a little more, for the `upper`-th of n uniform numbers and the `lower`-th of m others."""
    if lower <= 0:
        return float(_above(upper, n, bound))
    if upper > n:
        # U is 1, so the cells are not needed; they would give a thousandth at the least.
        return float(scipy.special.betainc(lower, m + 1 - lower, max(0.0, 1 - bound)))
    edges = np.append(scipy.special.betaincinv(lower, m + 1 - lower, np.arange(_CELLS) / _CELLS), 1.0)
    # U exceeds V by more the smaller V is: each cell of V counts with its lower edge.
    return float(_above(upper, n, edges[:-1] + bound).mean())


def _above(upper: int, n: int, value: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """P(U > value) for the `upper`-th smallest of n uniform numbers; the one beyond the last is 1."""
    if upper > n:
        return np.where(np.asarray(value) < 1, 1.0, 0.0)
    return np.asarray(scipy.special.betaincc(upper, n + 1 - upper, np.minimum(value, 1.0)))
