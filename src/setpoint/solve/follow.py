"""Between two corrections the threshold can follow the model: t += <dt/dtheta, the step just taken>."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.processes import ALONE, Processes


class Follower:
    """Listens to an optimizer: remembers the parameters before its step, moves the thresholds after it.

    It costs one more backward pass a threshold, which is what buys a threshold that is right between corrections.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, thresholds: Tensor) -> None:
        self.thresholds = thresholds
        self.parameters: list[Tensor] = [p for group in optimizer.param_groups for p in group["params"]]
        self.slopes: list[list[Tensor | None]] | None = None
        self.processes = ALONE
        self.before: list[Tensor] = []
        optimizer.register_step_pre_hook(self._remember)
        optimizer.register_step_post_hook(self._move)

    def watch(self, implicit: Tensor, processes: Processes) -> None:
        """Take the slopes of the thresholds, given as differentiable functions of the batch's scores `(m,)`."""
        self.processes = processes
        wanted = [p for p in self.parameters if p.requires_grad]
        self.slopes = [list(torch.autograd.grad(one, wanted, retain_graph=True, allow_unused=True)) for one in implicit]

    def _remember(self, *_: Any) -> None:
        if self.slopes is not None:
            self.before = [p.detach().clone() for p in self.parameters if p.requires_grad]

    @torch.no_grad()
    def _move(self, *_: Any) -> None:
        if self.slopes is None:
            return
        moves = [p - q for p, q in zip((p for p in self.parameters if p.requires_grad), self.before)]
        shifts = [
            sum(float((slope * move).sum()) for slope, move in zip(row, moves) if slope is not None)
            for row in self.slopes
        ]
        # Each process knows the slopes of its own part.
        whole = self.processes.sum(torch.tensor(shifts, dtype=torch.float64, device=self.thresholds.device))
        self.thresholds += whole / self.processes.gain
        self.slopes = None
