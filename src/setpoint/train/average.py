"""The running average of a model's parameters, which is less noisy than the parameters of any one step."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

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


class RunningAverage(nn.Module):
    """A copy of a model; each step moves its parameters and buffers towards the model by FRESH / (steps + FRESH)."""

    steps: Tensor

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Move towards the model as it is after a step; tensors of whole numbers are copied."""
        self.steps += 1
        weight = FRESH / (int(self.steps) + FRESH)
        pairs = zip(_values(self.model), _values(model), strict=True)
        moved: tuple[list[Tensor], list[Tensor]] = ([], [])
        for own, theirs in pairs:
            if own.is_floating_point():
                moved[0].append(own)
                moved[1].append(theirs)
            else:
                own.copy_(theirs)
        if moved[0]:
            torch._foreach_lerp_(*moved, weight)


def _values(model: nn.Module) -> list[Tensor]:
    return [own.detach() for own in (*model.parameters(), *model.buffers())]
