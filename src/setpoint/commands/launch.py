"""`torchrun ... setpoint fit`: the processes that it started, joined for as long as the command runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import timedelta

import torch.distributed as dist

from setpoint.processes import ALONE, Processes

#: While the first process trains what needs all rows in one place, the others wait.
PATIENCE = timedelta(days=7)


@contextlib.contextmanager
def launched() -> Iterator[Processes]:
    """All processes of a `torchrun`; without one, this process alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield ALONE
        return
    dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield Processes.of()
    finally:
        dist.destroy_process_group()


def was_restarted() -> bool:
    """Whether `torchrun` has started the processes again after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
