"""`torchrun ... setpoint fit`: the processes that it started, joined for as long as the command runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from setpoint.processes import ALONE, Processes

#: While the first process trains what needs all rows in one place, the others wait.
PATIENCE = timedelta(days=7)


@contextlib.contextmanager
def launched() -> Iterator[Processes]:
    """All processes of a `torchrun`; without one, this process alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield ALONE
        return
    store, rank, size = next(rendezvous("env://"))
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:
        # On one machine the store outlives a restart, and with it the addresses of processes that are no more.
        store = PrefixStore(f"start-{restarts()}", store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        yield Processes.of()
    finally:
        dist.destroy_process_group()


def restarts() -> int:
    """How often `torchrun` has started the processes again, after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
