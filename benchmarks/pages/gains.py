"""How a paired difference is written on the page of evidence."""

from __future__ import annotations

ERRORS = {"standard_error": "plain", "corrected_standard_error": "corrected"}


def gain(found: dict[str, float], scale: float = 100) -> str:
    """Mean, plain error and, in brackets, the one corrected for overlapping splits."""
    errors = [scale * found[error] for error in ERRORS]
    return f"{scale * found['mean']:+.2f} ± {errors[0]:.2f} ({errors[1]:.2f})"
