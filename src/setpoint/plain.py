"""Readers of plain data from a file: each returns a value of the expected type and range, or raises a TypeError."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")
#: Larger numbers overflow in sums and differences.
LARGEST = 1e300
#: Whole numbers that a float holds exactly.
MOST = 2**53
#: Bytes of a JSON file, entries of a list or dict, and letters of a text in it.
MOST_BYTES, MOST_ENTRIES, MOST_LETTERS = 64 * 2**20, 1_000_000, 10_000


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: it is no JSON, holds NaN or infinities, or is too large or too deeply nested to be ours.
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it holds more than {MOST_BYTES // 2**20} MB")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number that JSON knows")


def brief(value: Any) -> str:
    """A value in a few letters, whatever it holds."""
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def reason(cause: Exception) -> str:
    """Why something could not be read, in one line."""
    said = f"there is no {cause}" if isinstance(cause, KeyError) else str(cause).partition("\n")[0]
    return said[:200] or type(cause).__name__


def number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> float:
    """A finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        between = "" if (low, high) == (-LARGEST, LARGEST) else f" from {low:g} to {high:g}"
        raise TypeError(f"expected a number{between}, found {brief(value)}")
    return float(value)


def share(value: Any) -> float:
    """A number between 0 and 1, neither of them included."""
    return number(value, math.ulp(0.0), math.nextafter(1.0, 0.0))


def whole_number(value: Any, low: int = 0, high: int = MOST) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise TypeError(f"expected a whole number from {low} to {high}, found {brief(value)}")
    return value


def truth(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {brief(value)}")
    return value


def text(value: Any, most: int = MOST_LETTERS) -> str:
    """A text of at most `most` letters."""
    if not isinstance(value, str) or len(value) > most:
        raise TypeError(f"expected a text of at most {most} letters, found {brief(value)}")
    return value


def listed(value: Any, each: Callable[[Any], Value], most: int = MOST_ENTRIES) -> list[Value]:
    """A list of at most `most` entries, each read by `each`."""
    if not isinstance(value, list) or len(value) > most:
        raise TypeError(f"expected a list of at most {most}, found {brief(value)}")
    return [each(part) for part in value]


def named(value: Any, each: Callable[[Any], Value], most: int = MOST_ENTRIES) -> dict[str, Value]:
    """A dict of at most `most` entries by name, each read by `each`."""
    if not isinstance(value, dict) or len(value) > most:
        raise TypeError(f"expected a dict of at most {most}, found {brief(value)}")
    return {text(name): each(part) for name, part in value.items()}
