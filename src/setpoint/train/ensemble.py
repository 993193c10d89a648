"""Ensembles: copies of one model trained from different seeds, their logits averaged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.parts import Data
from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.train.history import History
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.splits import Seeds
from setpoint.train.start import InPlace
from setpoint.train.work import Work


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
                    "copies of it would all start alike; add that method, or build "
                    "sp.methods.Ensemble from models of your own"
                )
    return fresh


@dataclass(frozen=True)
class Ensembled:
    """Train copies of a model, each from a seed of its own (and on rows of its own), and average their logits.

    `made_of` says how many members there are and which rows each of them gets. The history has the rows of all members,
    each with its `member`; the best row, and what was settled on, are those of the member that is best on its held-out
    rows. The given model is left as it was.
    """

    make_method: Callable[[Callable[[], nn.Module]], Method]
    model: nn.Module
    made_of: Seeds
    seed: int = 0

    @property
    def expected_rows(self) -> int:
        """Those of all members."""
        return self.made_of.members * expected_rows(self.make_method(lambda: self.model))

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why this cannot be trained, if so, as for one member."""
        return self.make_method(lambda: self.model).refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the members one after the other."""
        work.once("begun", lambda: True)
        runs: list[Trained] = []
        history: History = []
        starts: list[int] = []
        for member in range(self.made_of.members):
            drawn = self.seed + member
            fresh = seeded_copy(self.model, drawn)
            train, held_out = self.made_of.deal(data.train, data.held_out, drawn)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(drawn)
                method = self.make_method(InPlace(fresh))
                run = method.train(problem, replace(data, train=train, held_out=held_out), work.part(f"seed-{drawn}"))
            starts.append(len(history))
            history += [{**row, "member": member} for row in run.history]
            runs.append(run)
        best = max(range(len(runs)), key=lambda place: _merit(problem, runs[place]))
        return Trained(
            Ensemble(run.model for run in runs).eval(), history, starts[best] + runs[best].best, runs[best].settled,
            runs[best].trials, all(run.again for run in runs),
        )  # fmt: skip


def _merit(problem: Problem, run: Trained) -> tuple[bool, float]:
    row = run.history[run.best]
    return bool(row["feasible"]), row["held_out"] if problem.maximize else -row["held_out"]
