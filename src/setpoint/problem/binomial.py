"""Tails of the binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def at_most(part: Any, whole: Any, share: Any) -> Numbers:
    """P(Binomial(whole, share) <= part); 1 where there is nothing to count."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return _beta_tail(whole - part, part + 1, 1 - share)


def at_least(part: Any, whole: Any, share: Any) -> Numbers:
    """P(Binomial(whole, share) >= part); 1 where there is nothing to count."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return _beta_tail(part, whole - part + 1, share)


def _beta_tail(first: Numbers, second: Numbers, share: Any) -> Numbers:
    """The regularised incomplete beta function; 1 where `first` is 0 or less."""
    inside = first > 0
    return np.where(inside, scipy.special.betainc(np.where(inside, first, 1.0), second, share), 1.0)
