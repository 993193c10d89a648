"""How often chance alone passes the bar of two standard errors."""

from __future__ import annotations

from scipy.stats import t as student


def by_chance(repeats: int) -> float:
    """The share of cells without any effect whose mean of so many repeats is beyond two of its standard errors."""
    return float(2 * student.sf(2, repeats - 1))


def chance_told(*repeats: int) -> str:
    """The same as a sentence for the threats of a page."""
    shares = " and ".join(f"{100 * by_chance(number):.0f} % of them with {number} repeats" for number in repeats)
    return f"By chance alone cells without any effect are beyond two standard errors: {shares} (Student's t)."
