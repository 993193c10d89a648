"""Evidence on a rate that stays valid however often, and whenever, one looks.

An e-value is a capital that starts at 1 and, while a hypothesis is true, does not grow on average: each step is a fair
or losing bet. By Ville's inequality the capital of a true hypothesis ever reaches 1 / level with probability `level` at
most, over any number of looks and with any rule for stopping. That is the whole argument; no correction for the number
of looks is needed.

*One rate against a bound* (`RateEvidence`). Row i is on the wrong side with probability p_i, given all rows before it.
A bet on a rate q above the bound p0 multiplies the capital by q/p0 if it is and by (1-q)/(1-p0) if not. On average that
is p_i q/p0 + (1-p_i)(1-q)/(1-p0): linear in p_i, 1 at p_i = p0, and rising because q > p0. So the capital does not grow
on average whenever p_i <= p0, for *every* rate at or under the bound, also one that changes from row to row. A mixture
of such bets over q is again such a bet. Mixed over a Beta prior that is cut off at p0, the capital has a closed form by
the incomplete beta function. Bets below the bound (q < p0) show in the same way that the bound holds.

*A rate that changes.* A fifth of the capital bets from the first look on. The rest starts anew at later looks, with a
share of 1/sqrt(k-1) - 1/sqrt(k) for start k, so that good months do not hide a bad one. Shares add up to 1, so the sum
is an e-value too. (Shares of a half and of 1/(k(k-1)) were a tenth slower to notice a rate that doubles in month 7, and
a tenth faster for one that is too high from the first month on.)

*The average rate so far* (`average_interval`, `gap_evidence`). A bet of size t multiplies the capital by
e^(tx) / (1 - p_i + p_i e^t), which is 1 on average. The logarithm of the denominator is concave in p_i, so n times its
value at the average rate is at least the sum over rows: the bet computed from the average rate alone is no larger than
the fair one. The interval holds for the average over all rows so far, whatever the rate did in between.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations

import numpy as np
import scipy
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
#: The share of the capital that bets from the first look on.
_FIRST = 0.2
#: Rates that later starts bet on: equally likely ones of the prior.
_RATES = 12
#: A new start waits until this share of all rows has come since the last: monthly looks start each month for years, and
#: a look per row starts a few hundred times in all.
_SHARE = 1 / 32
#: Bounds above 0 count as this at least: a smaller one has no finite inverse.
_LEAST = 1e-300
#: Sizes of bets on the average rate, with a weight that falls slowly on either side of the middle.
_SIZES = np.geomspace(1e-4, 8, 48)
#: Places between which the rate of a group is looked for.
_PLACES = 400
_TINY = 1e-280
#: Terms of a continued fraction; so far from the mean a few dozen are enough.
_STEPS = 10_000


@cache
def _weights() -> Numbers:
    """The logarithms of the weights of the sizes; `scipy.special` is slow to load, so not before they are needed."""
    weights = -np.log1p(np.log10(_SIZES / 0.25) ** 2)
    found: Numbers = weights - scipy.special.logsumexp(weights)
    return found


def log_above(part: Numbers, whole: Numbers, bound: float) -> Numbers:
    """The logarithm of the evidence that a rate is above a bound, from all rows so far, each counted once."""
    if bound >= 1:
        return np.zeros(np.shape(part))
    if bound <= 0:
        return np.where(part > 0, np.inf, 0.0)
    first, second = _prior(bound)
    rest = whole - part
    now = scipy.special.betaln(first + part, second + rest) + _log_tail(first + part, second + rest, bound)
    before = scipy.special.betaln(first, second) + _log_tail(np.array(first), np.array(second), bound)
    return np.asarray(now - before - part * math.log(bound) - rest * math.log1p(-bound))


def _prior(bound: float) -> tuple[float, float]:
    """A Beta prior with its mean at the bound and as wide: above the bound it expects a few times the bound."""
    return (1.0, (1 - bound) / bound) if bound <= 0.5 else (bound / (1 - bound), 1.0)


def _log_tail(first: Numbers, second: Numbers, share: float) -> Numbers:
    """log P(Beta(first, second) > share), also where the probability is too small for a float."""
    tail = np.asarray(scipy.special.betaincc(first, second, share), dtype=np.float64)
    far = tail < _TINY
    answer = np.log(np.where(far, 1.0, tail))
    if not far.any():
        return answer
    # At the other places some numbers stand in for which the continued fraction ends soon.
    first, second = np.where(far, first, 1.0), np.where(far, second, 1e5)
    return np.asarray(np.where(far, _log_far_tail(second, first, 1 - share), answer))


def _log_far_tail(first: Numbers, second: Numbers, share: float) -> Numbers:
    """log P(Beta(first, second) < share) far below the mean, by a continued fraction."""
    lead = first * math.log(share) + second * math.log1p(-share) - np.log(first) - scipy.special.betaln(first, second)
    total, above, below = np.ones_like(first), np.ones_like(first), np.zeros_like(first)
    for step in range(_STEPS):
        half = step // 2
        if step == 0:
            term = np.ones_like(first)
        elif step % 2 == 0:
            term = half * (second - half) * share / ((first + 2 * half - 1) * (first + 2 * half))
        else:
            term = -(first + half) * (first + second + half) * share / ((first + 2 * half) * (first + 2 * half + 1))
        below = 1 / (1 + term * below)
        above = 1 + term / above
        total = total * above * below
        if (np.abs(above * below - 1) < 1e-12).all():
            break
    return np.asarray(lead + np.log(total - 1))


class RateEvidence:
    """The evidence that one rate is above a bound, look by look, for any number of streams side by side.

    Args:
        bound: The bound, a share.
        streams: The number of streams.
    """

    def __init__(self, bound: float, streams: int = 1) -> None:
        # Evidence against a larger bound is evidence against a smaller one.
        bound = max(bound, _LEAST) if bound > 0 else bound
        self.bound, inner = bound, 0 < bound < 1
        first, second = _prior(bound) if inner else (1.0, 1.0)
        low = scipy.special.betainc(first, second, bound)
        quantiles = low + (1 - low) * (np.arange(_RATES) + 0.5) / _RATES
        rates = np.clip(scipy.special.betaincinv(first, second, quantiles), bound, 1 - 1e-12) if inner else None
        self.gain = None if rates is None else np.log(rates / bound)
        self.loss = None if rates is None else np.log1p(-rates) - math.log1p(-bound)
        self.part, self.whole = np.zeros(streams), np.zeros(streams)
        self.since, self.starts = np.zeros(streams), np.zeros(streams)
        self.later = np.full((streams, _RATES), -np.inf)
        self.last = self.peak = np.zeros(streams)

    def look(self, part: Numbers, whole: Numbers) -> Numbers:
        """Take the counts of a look, `(streams,)` each; the logarithm of the evidence after it."""
        part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
        begins = (whole > 0) & (self.since >= _SHARE * self.whole)
        self.starts += begins
        self.since = np.where(begins, 0.0, self.since) + whole
        if self.gain is not None and self.loss is not None:
            # The first start is that of the other share of the capital.
            again = begins & (self.starts > 1)
            share = np.maximum(self.starts - 1, 1) ** -0.5 - np.maximum(self.starts, 2) ** -0.5
            new = np.where(again, np.log(share), -np.inf)
            grown = part[:, None] * self.gain + (whole - part)[:, None] * self.loss
            self.later = np.logaddexp(self.later, new[:, None] - math.log(_RATES)) + grown
        self.part, self.whole = self.part + part, self.whole + whole
        self.last = self.now
        self.peak = np.maximum(self.peak, self.last)
        return self.last

    @property
    def now(self) -> Numbers:
        """The logarithm of the evidence after the last look."""
        return self.together(log_above(self.part, self.whole, self.bound))

    def together(self, first: Numbers) -> Numbers:
        """The evidence of all bets, from that of the bets since the first look."""
        kept = -np.log(np.maximum(self.starts, 1)) / 2
        later = np.logaddexp(scipy.special.logsumexp(self.later, axis=1), kept)
        return np.asarray(np.logaddexp(first + math.log(_FIRST), later + math.log1p(-_FIRST)))


def _log_average(part: float, whole: float, rates: Numbers, side: int) -> Numbers:
    """The logarithm of the evidence that the average rate is above (side 1) or below (side -1) each of `rates`."""
    sizes = side * _SIZES
    cost = np.log1p(np.asarray(rates)[..., None] * np.expm1(sizes))
    each = _weights() + sizes * part - whole * cost
    most = each.max(-1)
    # Not logsumexp: its checks take ten times as long as these few numbers, and an interval asks a hundred times.
    return np.asarray(most + np.log(np.exp(each - most[..., None]).sum(-1)))


def average_interval(part: float, whole: float, level: float) -> tuple[float, float]:
    """An interval of the average rate so far that holds at all looks together with probability 1 - `level`."""
    if whole <= 0:
        return 0.0, 1.0
    enough, here = math.log(2 / level), part / whole

    def end(side: int, far: float) -> float:
        if float(_log_average(part, whole, np.array(far), side)) < enough:
            return far
        near = here
        for _ in range(50):
            middle = (near + far) / 2
            beyond = float(_log_average(part, whole, np.array(middle), side)) >= enough
            near, far = (near, middle) if beyond else (middle, far)
        return far

    return end(1, 0.0), end(-1, 1.0)


def gap_evidence(part: Numbers, whole: Numbers, bound: float) -> tuple[float, float]:
    """The logarithms of the evidence that the largest gap between groups is above a bound, and that it is not.

    The rates of two groups, a and b, are unknown. The product of the evidence that a is above x and that b is below t
    is an e-value at the true pair (x, t), so its smallest value over all pairs that the hypothesis allows is one, too.
    The average over ordered pairs of groups speaks against the bound; all pairs must speak for it.
    """
    pairs = list(permutations(range(len(part)), 2))
    if not pairs:
        return 0.0, 0.0
    broken = [_least(part, whole, pair, bound, 1) for pair in pairs]
    holds = [_least(part, whole, pair, bound, -1) for pair in pairs]
    return float(scipy.special.logsumexp(broken) - math.log(len(pairs))), min(holds)


def _least(part: Numbers, whole: Numbers, pair: tuple[int, int], bound: float, side: int) -> float:
    """The least evidence over all rates t of group b that a is beyond t + bound (side 1), or within it (side -1)."""
    a, b = pair
    here = part / np.maximum(whole, 1)
    spread = 6 * np.sqrt((here * (1 - here) + 1 / np.maximum(whole, 1)) / np.maximum(whole, 1))
    ends = np.concatenate([here[[a]] - bound - spread[[a, b]].sum(), here[[a]] - bound + spread[[a, b]].sum(),
                           here[[b]] - spread[[a, b]].sum(), here[[b]] + spread[[a, b]].sum()])  # fmt: skip
    high = 1 - bound
    near = np.linspace(max(0.0, ends.min()), max(min(high, ends.max()), 0.0), _PLACES)
    places = np.unique(np.clip(np.concatenate([[0.0], near, np.linspace(0, high, 50)]), 0, high))
    of_a = _log_average(part[a], whole[a], np.minimum(places + bound, 1), side)
    of_b = _log_average(part[b], whole[b], places, -side)
    # Between two places each factor is at least its smaller end: the least value is never overstated.
    if len(places) == 1:
        return float(of_a[0] + of_b[0])
    between = of_a[1:] + of_b[:-1] if side > 0 else of_a[:-1] + of_b[1:]
    return float(between.min())
