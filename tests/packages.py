"""Optional packages in tests: absent ones skip a test on a bare machine, and fail it in CI."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def needs(name: str) -> Any:
    """The package, or the end of this module: skipped outside CI, failed in it."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)
