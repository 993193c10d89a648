"""How sure a share is that was counted: k of n."""

from __future__ import annotations

from scipy.stats import beta


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share, of k among n: all values that such a count does not contradict."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.ppf(1 - tail, k + 1, n - k)) if k < n else 1.0
    return low, high
