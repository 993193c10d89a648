"""What the processes do, all in one go."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from distributed.cases import train
from distributed.fits import fitted


def everything(rank: int, size: int, steps: int, cases: Sequence[str], fits: Sequence[str]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    return {
        "trained": {name: train(name, size, rank, steps) for name in cases},
        "fitted": {name: fitted(name, rank, size) for name in fits},
    }
