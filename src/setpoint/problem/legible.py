"""Thresholds as text that a person may copy: as few digits as decide every row in the same way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The numbers of digits that may be shown; the 17th spells every float64.
DIGITS = range(4, 17)


def spelled(value: float, digits: int = 0) -> str:
    """A number with so many significant digits; with 0, as few as read back as the very number.

    Args:
        value: The number.
        digits: The number of significant digits, or 0.

    Returns:
        The text.

    Example:
        >>> from setpoint.problem.legible import spelled
        >>> spelled(0.35), spelled(0.9999999787), spelled(0.9999999787, 4)
        ('0.35', '0.9999999787', '1')
    """
    texts = (f"{value:.{n}g}" for n in ([digits] if digits else DIGITS))
    return next((text for text in texts if digits or float(text) == value), repr(float(value)))


def digits_between(value: float, scores: NDArray[np.float64]) -> int:
    """How many digits a threshold needs so that its text lies between the same two neighbouring scores.

    Args:
        value: The threshold; scores strictly above it pass.
        scores: The scores that are decided.

    Returns:
        A number of digits for `spelled`: 0 where no fewer than all will do.

    Example:
        >>> import numpy as np
        >>> from setpoint.problem.legible import digits_between
        >>> digits_between(0.123456, np.array([0.1, 0.2])), digits_between(0.123456, np.array([0.12345, 0.12346]))
        (4, 6)
    """
    above = scores > value
    highest, lowest = scores.min(where=above, initial=np.inf), scores.max(where=~above, initial=-np.inf)
    return next((n for n in DIGITS if lowest <= float(f"{value:.{n}g}") < highest), 0)
