"""Ensembles: copies of one model trained from different seeds, their logits averaged."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from setpoint.decide.order import preference
from setpoint.errors import BadSetting
from setpoint.problem.point import OperatingPoint
from setpoint.train.history import History


class Ensemble(nn.Module):
    """The mean of the logits of its members: one module, one `state_dict`."""

    members: nn.ModuleList

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if len(self.members) == 0:
            raise BadSetting("an ensemble needs at least one model")

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """The mean over members; all are given the same input."""
        return torch.stack([member(*inputs, **named) for member in self.members]).mean(0)


class Fitted(Protocol):
    """What a training run gives back."""

    @property
    def model(self) -> nn.Module: ...

    @property
    def point(self) -> OperatingPoint: ...

    @property
    def history(self) -> History: ...

    @property
    def best_epoch(self) -> int: ...


R = TypeVar("R", bound=Fitted)


def seeded_copy(model: nn.Module, seed: int) -> nn.Module:
    """A copy of the model with every layer drawn anew from `seed`; the state of the random generators is kept.

    Layers are drawn by their own `reset_parameters`. A module that holds parameters without one cannot be.
    """
    fresh = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, layer in fresh.named_modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
            elif any(True for _ in layer.parameters(recurse=False)):
                raise BadSetting(
                    f"layer {name or 'at the top'} ({type(layer).__name__}) has parameters but no reset_parameters, so "
                    "copies of it would all start alike; add that method, or build sp.Ensemble from models of your own"
                )
    return fresh


def fit_ensemble(
    train_one: Callable[[nn.Module, int], R],
    model: nn.Module,
    size: int,
    judge: Callable[[nn.Module], OperatingPoint],
    *,
    seed: int = 0,
) -> R:
    """Train `size` copies of a model from the seeds `seed`, `seed + 1`, ... and average their logits.

    `train_one(copy, seed)` trains a copy, `judge(ensemble)` sets the operating point of all together. The result is
    that of the best member with the ensemble as its model, the new point, and the history of all, a `member` a row;
    `best_epoch` is the best member's, as a place in that history. The given model is left as it was.
    """
    runs: list[R] = []
    history: History = []
    starts: list[int] = []
    for member in range(size):
        fresh = seeded_copy(model, seed + member)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed + member)
            run = train_one(fresh, seed + member)
        starts.append(len(history))
        history += [{**row, "member": member} for row in run.history]
        runs.append(run)
    ensemble = Ensemble(run.model for run in runs).eval()
    best = max(range(size), key=lambda place: preference(runs[place].point))
    changes = {
        "model": ensemble, "point": judge(ensemble), "history": history,
        "best_epoch": starts[best] + runs[best].best_epoch,
    }  # fmt: skip
    return dataclasses.replace(runs[best], **changes)  # type: ignore[type-var]
