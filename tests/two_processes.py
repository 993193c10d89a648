"""Two processes with a part of the data each: the test itself is the first, and starts the second."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from setpoint.integrations.lightning import gathered
from setpoint.integrations.torchmetrics import OperatingPointMetric
from setpoint.measure.sample import Sample

ASK = "minimize fnr where fpr <= 5%"
BY_GROUP = "minimize error where recall.gap(site) <= 10%"


def made_data(size: int = 600, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Scores, labels, weights and groups; logits far outside 0 ... 1, so that any squashing would tie them."""
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    scores = 1000 + 40 * torch.randn(size, generator=draw) + 60 * labels
    return scores, labels, torch.rand(size, generator=draw) + 0.5, torch.randint(0, 3, (size,), generator=draw)


def answers_of(rank: int, place: Path) -> dict[str, Any]:
    """What one process is told; the second has less data, and at last none."""
    dist.init_process_group(
        "gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2, timeout=timedelta(seconds=180)
    )
    try:
        scores, labels, weights, groups = made_data()
        mine = slice(0, 400) if rank == 0 else slice(400, 600)
        metric, by_group = OperatingPointMetric(ASK), OperatingPointMetric(BY_GROUP)
        for rows in torch.arange(600)[mine].split(90):
            metric.update(scores[rows], labels[rows])
            by_group.update(scores[rows].double(), labels[rows], weights[rows], groups[rows])
        answers = {"value": float(metric.compute()), "point": metric.point(), "by_group": by_group.point()}
        answers["own"] = len(torch.cat(metric.scores))
        by_group.reset()
        if rank == 0:
            by_group.update(scores.double(), labels, None, groups)
        answers["one_idle"] = by_group.point()
        joined = gathered(Sample(scores[mine], labels[mine], weights[mine]))
        answers["gathered"] = [joined.scores.tolist(), joined.labels.tolist(), joined.weights.tolist()]
        return answers
    finally:
        dist.destroy_process_group()


def second(place: Path, told: Any) -> None:
    torch.set_num_threads(1)
    told.put(answers_of(1, place))
