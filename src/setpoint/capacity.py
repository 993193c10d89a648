"""How much memory there is, and one sentence, before the work starts, when that is not enough."""

from __future__ import annotations

import math
import os
from pathlib import Path

from setpoint.errors import NotEnoughMemory

_GROUP = Path("/sys/fs/cgroup")
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def available_memory() -> int | None:
    """Bytes that can still be had: what the machine has left, or a container's limit if that is less."""
    known = [size for size in (_machine(), _container()) if size is not None]
    return min(known, default=None)


def refuse_beyond_memory(what: str, needed: float, remedy: str) -> None:
    """An error with both numbers if `what` needs more than there is."""
    lacking = beyond_memory(what, needed)
    if lacking is not None:
        raise NotEnoughMemory(f"{lacking}; {remedy}")


def beyond_memory(what: str, needed: float) -> str | None:
    """A sentence with both numbers if `what` needs more than there is."""
    available = available_memory()
    if available is None or needed <= available:
        return None
    return f"{what} needs about {amount(needed)}, but {amount(available)} are free"


def amount(size: float) -> str:
    """`1.5 GB`."""
    power = min(max(int(math.log10(max(size, 1))) // 3, 0), len(_UNITS) - 1)
    return f"{size / 1000**power:.3g} {_UNITS[power]}"


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _container() -> int | None:
    """What a control group has left, of version 2 or of version 1; None where there is no limit."""
    for limit, used, detail, cache in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
    ):
        try:
            most, taken = (int((_GROUP / name).read_text()) for name in (limit, used))
            # Files that are cached count as used, but make room when asked to.
            lines = [line.split() for line in (_GROUP / detail).read_text().splitlines()]
            return max(most - taken + sum(int(size) for name, size in lines if name == cache), 0)
        except (OSError, ValueError):
            continue
    return None
