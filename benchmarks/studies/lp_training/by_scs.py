"""The F-score program of each batch solved by SCS under cvxpylayers; runs in the environment of cvxpylayers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.by_cvxpylayers import layer_of
from benchmarks.studies.lp_training.losses import LOOK_EVERY, closed, cosine
from benchmarks.studies.lp_training.study import answer


class ByScs:
    """Margin 0, as published; a batch whose program is not solved teaches nothing."""

    def __init__(self) -> None:
        self.layers: dict[int, Any] = {}
        self.steps, self.cosines = 0, list[float]()

    def __call__(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        positives, size = labels.double().sum(), len(scores)
        if not 0 < float(positives) < size:
            return 0 * scores.sum()
        if size not in self.layers:
            self.layers[size] = layer_of(size)
        squashed, share = torch.tanh(scores.double()), 2 * labels.double() / positives
        try:
            z, _ = self.layers[size](share, 1 / positives, squashed, 1 + squashed, solver_args={"solve_method": "SCS"})
        except Exception:  # a solver may fail in any way
            return 0 * scores.sum()
        loss = 1 - share @ z
        if self.steps % LOOK_EVERY == 0:
            self.cosines.append(cosine(loss, closed("f-score", scores, labels, 0.0), scores))
        self.steps += 1
        return loss.to(scores.dtype)


LOSS = ByScs

if __name__ == "__main__":
    answer(LOSS)
