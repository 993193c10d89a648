"""What all processes were given to judge, on each of them, in the order of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from setpoint.errors import BadGroups, SetpointError
from setpoint.measure.sample import check_sample, name_groups
from setpoint.processes import Processes


def gathered(scores: Any, labels: Any, weights: Any, groups: Any, processes: Processes) -> tuple[Any, Any, Any, Any]:
    """Scores, labels, weights and the names of groups of all processes; of none of them if one was given bad ones."""
    if processes.alone:
        return scores, labels, weights, groups
    own: Any
    try:
        sample = check_sample(scores, labels, weights).double()
        names = None
        if groups is not None:
            codes, known = name_groups(groups)
            names = np.array(known, dtype=object)[codes.numpy()]
        own = (sample.scores.cpu(), sample.labels.cpu(), None if weights is None else sample.weights, names)
    except SetpointError as cause:
        own = cause
    parts = [part for part in processes.all_objects(own) if isinstance(part, SetpointError) or len(part[0])]
    for part in parts:
        if isinstance(part, SetpointError):
            raise part
    if not parts:
        return scores, labels, weights, groups
    some_weights = any(part[2] is not None for part in parts)
    some_groups = any(part[3] is not None for part in parts)
    if some_groups and any(part[3] is None for part in parts):
        raise BadGroups("some processes pass groups and others do not; pass groups= on all of them")
    return (
        torch.cat([part[0] for part in parts]),
        torch.cat([part[1] for part in parts]),
        torch.cat([torch.ones_like(p[0]) if p[2] is None else p[2].cpu() for p in parts]) if some_weights else None,
        np.concatenate([part[3] for part in parts]) if some_groups else None,
    )
