"""The running average of a model's parameters, which is less noisy than the parameters of any one step."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

Tensors = tuple[Tensor, ...] | list[Tensor]
#: Step n has the weight FRESH / (n + FRESH), so the average is over about the last tenth of the steps.
FRESH = 10


def can_be_averaged(model: nn.Module) -> bool:
    """Whether a model can be copied. Lazy parameters, or a lock or file inside the model, prevent it."""
    if any(nn.parameter.is_lazy(parameter) for parameter in model.parameters()):
        return False
    try:
        copy.deepcopy(model)
    except Exception:
        return False
    return True


class RunningAverage(AveragedModel):
    """A copy of a model; each step moves its parameters and buffers towards the model by FRESH / (steps + FRESH)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, multi_avg_fn=_move, use_buffers=True)
        # torch would take the model of the first step as it is, and forget the start.
        self.n_averaged.fill_(1)


@torch.no_grad()
def _move(average: Tensors, model: Tensors, step: Tensor | int) -> None:
    if average[0].is_floating_point():
        torch._foreach_lerp_(average, model, FRESH / (int(step) + FRESH))
    else:
        torch._foreach_copy_(average, model)
