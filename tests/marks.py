"""Which cases of a test `make test` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

slow = pytest.mark.slow


def quick_first(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """Cases for `parametrize`: the first `quick` ones run in `make test`, the others in `make test-all` only."""
    return [value if place < quick else pytest.param(value, marks=slow) for place, value in enumerate(values)]
