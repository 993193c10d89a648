"""ap-perf's adversarial F-score of each batch; runs in the environment of ap-perf."""

from __future__ import annotations

from typing import Any

from ap_perf import MetricLayer
from torch import Tensor

from benchmarks.peers.by_ap_perf import FScore
from benchmarks.studies.lp_training.study import answer


class ByApPerf:
    def __init__(self) -> None:
        metric = FScore()
        metric.initialize()
        metric.enforce_special_case_positive()
        self.layer = MetricLayer(metric)

    def __call__(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        loss: Tensor = -self.layer(scores, labels)
        return loss


LOSS = ByApPerf

if __name__ == "__main__":
    answer(LOSS)
