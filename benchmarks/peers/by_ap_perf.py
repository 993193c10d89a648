"""ap-perf: recall where specificity is bounded, or the F-score (`f`), as a metric of its own; batches of 32, 30 s."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import torch
from ap_perf import MetricLayer, PerformanceMetric

from benchmarks.peers.exchange import Task

BATCH, MOST_SECONDS = 32, 30


class SensitivityGivenSpecificity(PerformanceMetric):
    """Recall where the true negative rate is at least `least`."""

    def __init__(self, least: float) -> None:
        self.least = least

    def define(self, C):
        return C.tp / C.ap

    def constraint(self, C):
        return C.tn / C.an >= self.least


class FScore(PerformanceMetric):
    def define(self, C):
        return 2 * C.tp / (C.ap + C.pp)


def metric_of(task: Task) -> PerformanceMetric:
    """What is asked, with the cases that are no fraction named."""
    metric = FScore() if "f" in sys.argv[3:] else SensitivityGivenSpecificity(1 - task.bound)
    metric.initialize()
    metric.enforce_special_case_positive()
    if isinstance(metric, SensitivityGivenSpecificity):
        metric.set_cs_special_case_negative([True])
    return metric


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    x, labels = torch.tensor(task.x, dtype=torch.float32), torch.tensor(task.labels, dtype=torch.float32)
    layer = MetricLayer(metric_of(task))
    theta = torch.tensor(task.start, dtype=torch.float32, requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=0.01)
    draw = torch.Generator().manual_seed(0)
    step, began = 0, time.perf_counter()
    task.add("start", task.start[:-1], task.start[-1])
    while step < task.steps and time.perf_counter() - began < MOST_SECONDS:
        rows = torch.randint(len(x), (BATCH,), generator=draw)
        loss = -layer(x[rows] @ theta[:-1] + theta[-1], labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % task.look_every == 0:
            weights = theta.detach().double().numpy().copy()
            task.add(f"step {step}", weights[:-1], weights[-1])
    task.answer(version("ap-perf"), f"{step} steps of {BATCH} in {MOST_SECONDS} s")


if __name__ == "__main__":
    main()
