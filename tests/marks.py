"""Which cases of a test `make test` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

#: The number of cases on which `make test-all` tries a law; `make test` takes a tenth.
ALL_CASES = 150

slow = pytest.mark.slow


def quick_first(values: Iterable[Any], quick: int = 1) -> list[Any]:
    """Cases for `parametrize`: the first `quick` ones run in `make test`, the others in `make test-all` only."""
    return [value if place < quick else pytest.param(value, marks=slow) for place, value in enumerate(values)]


def cases(number: int, **others: Any) -> settings:
    """Settings of a law that is tried on another number of cases; `make test` takes the same share of them."""
    return settings(max_examples=max(5, number * settings().max_examples // ALL_CASES), **others)
