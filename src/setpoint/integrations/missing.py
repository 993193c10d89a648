"""What to say when an optional package is not there."""

from __future__ import annotations

from setpoint.errors import MissingPackage


def missing(package: str, extra: str, cause: ImportError) -> ImportError:
    """The one sentence that names the package and how to get it; an import that failed otherwise speaks for itself."""
    if not isinstance(cause, ModuleNotFoundError) or str(cause.name).split(".")[0] != package:
        return cause
    return MissingPackage(f"this needs the package {package}; install it with: pip install 'setpoint[{extra}]'")
