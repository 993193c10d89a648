"""Several processes for one piece of work: all are started anew, and meet at a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing


def _one(rank: int, work: Callable[..., Any], size: int, place: Path, given: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=size, timeout=timedelta(seconds=120)
    )
    try:
        torch.save(work(rank, size, *given), place / f"answer-{rank}.pt")
    finally:
        dist.destroy_process_group()


def launch(work: Callable[..., Any], size: int, place: Path, *given: Any) -> list[Any]:
    """`work(rank, size, *given)` in `size` processes: what each of them answered."""
    place.mkdir(parents=True, exist_ok=True)
    multiprocessing.spawn(_one, (work, size, place, given), nprocs=size)
    return [torch.load(place / f"answer-{rank}.pt", weights_only=False) for rank in range(size)]
