"""What to say when an optional package is not there."""

from __future__ import annotations

from setpoint.errors import MissingPackage


def missing(package: str, extra: str) -> MissingPackage:
    """The one sentence that names the package and how to get it."""
    return MissingPackage(f"this needs the package {package}; install it with: pip install 'setpoint[{extra}]'")
