"""The solver: a drop-in criterion. It checks its input once and leaves the method to its children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from setpoint.measure.sample import Sample, check_sample


class Solver(nn.Module, ABC):
    """`loss = solver(scores, labels)`, with your own loop, optimizer and sampler.

    All state (thresholds, prices, memory) is in buffers; in `eval()` mode none of it changes. A batch that
    lacks a class is ordinary. Scores that are not finite, labels other than 0 and 1, and shapes that do not
    match are refused by name.
    """

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar. `index` numbers the samples for solvers that price each of them."""
        return self.loss(check_sample(scores, labels, weights, groups), index)

    @abstractmethod
    def loss(self, batch: Sample, index: Tensor | None) -> Tensor:
        """The loss of a checked batch."""

    def status(self) -> dict[str, Any]:
        """What is worth logging: thresholds, prices, temperature."""
        return {}
