"""Adam in the arithmetic of `torch.optim.Adam`, number for number, for what the library trains by itself.

The first optimizer of torch loads its compiler, which takes longer than most linear models do, and a step of it takes
as long as the rest of the step of a small model.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

#: The settings of `torch.optim.Adam`.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Descent:
    """One tensor, moved in place by the running means of its gradients and of their squares."""

    def __init__(self, place: Tensor) -> None:
        self.place, self.steps = place, 0
        self.mean, self.square = torch.zeros_like(place), torch.zeros_like(place)

    def step(self, gradient: Tensor, rate: float) -> None:
        """Move `place` by one step; no gradient may be recorded meanwhile."""
        self.steps += 1
        self.mean.lerp_(gradient, 1 - BETA_1)
        self.square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        scale = self.square.sqrt().div_(math.sqrt(1 - BETA_2**self.steps)).add_(EPSILON)
        self.place.addcdiv_(self.mean, scale, value=-rate / (1 - BETA_1**self.steps))


class Adam:
    """Adam over groups of parameters, each with its weight decay, at a rate that falls to 0 along a cosine.

    Args:
        groups: Lists of parameters, and the weight decay of each.
        rate: The first learning rate.
        epochs: The number of epochs after which the rate is 0.
    """

    def __init__(self, groups: list[tuple[list[Tensor], float]], rate: float, epochs: int = 1) -> None:
        self.parameters = [(parameter, decay) for parameters, decay in groups for parameter in parameters]
        self.descents: list[Descent | None] = [None] * len(self.parameters)
        self.rate, self.epoch, self.epochs = rate, 0, epochs
        self.defaults = {"rate": rate, "decays": [decay for _, decay in groups], "epochs": epochs}

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter, _ in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Move every parameter that has a gradient."""
        with torch.no_grad():
            for place, (parameter, decay) in enumerate(self.parameters):
                gradient = parameter.grad
                if gradient is None:
                    continue
                descent = self.descents[place] or Descent(parameter)
                self.descents[place] = descent
                descent.step(gradient.add(parameter, alpha=decay) if decay else gradient, self.rate)

    def end_epoch(self) -> None:
        """Lower the rate, from each epoch to the next as torch's `CosineAnnealingLR` does."""
        self.epoch += 1
        now, before = (1 + math.cos(math.pi * epoch / self.epochs) for epoch in (self.epoch, self.epoch - 1))
        self.rate *= now / before

    def state_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        kept = [None if own is None else [own.steps, own.mean, own.square] for own in self.descents]
        return {"rate": self.rate, "epoch": self.epoch, "descents": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.rate, self.epoch = state["rate"], state["epoch"]
        for place, ((parameter, _), kept) in enumerate(zip(self.parameters, state["descents"], strict=True)):
            if kept is not None:
                descent = Descent(parameter)
                descent.steps = kept[0]
                descent.mean.copy_(kept[1])
                descent.square.copy_(kept[2])
                self.descents[place] = descent
