"""What all processes have seen, as one sample."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from setpoint.measure.sample import Sample
from setpoint.train.history import join


def gathered(sample: Sample) -> Sample:
    """The samples of all processes joined, in the order of their ranks; alone, the sample itself.

    Every process must call this. The tensors should be on the CPU.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return sample
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, (sample.scores, sample.labels, sample.weights, sample.groups))
    return join([Sample(*part) for part in parts])
