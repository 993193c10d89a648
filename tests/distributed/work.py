"""What the processes do, all in one go."""

from __future__ import annotations

from typing import Any

from distributed.cases import CASES, train


def everything(rank: int, size: int, steps: int) -> dict[str, Any]:
    return {"trained": {name: train(name, size, rank, steps) for name in CASES}}
