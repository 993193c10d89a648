"""Ensembles: copies of one model trained from different seeds, their logits averaged."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.parts import Data
from setpoint.decide.order import preference_of_row
from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.solve.solver import Solver
from setpoint.train.history import History
from setpoint.train.method import Method, Trained, expected_rows, is_method
from setpoint.train.splits import Seeds
from setpoint.train.start import InPlace
from setpoint.train.work import Work


class Ensemble(nn.Module):
    """A model that averages the logits of its members.

    Args:
        members: The models; all are given the same input.

    Raises:
        BadSetting: If there is no member.

    Example:
        >>> import torch, setpoint as sp
        >>> members = [torch.nn.Linear(2, 1) for _ in range(3)]
        >>> x = torch.randn(5, 2)
        >>> torch.allclose(sp.methods.Ensemble(members)(x), sum(member(x) for member in members) / 3)
        True
    """

    members: nn.ModuleList

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if len(self.members) == 0:
            raise BadSetting("an ensemble needs at least one model")

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """The mean over the members."""
        return torch.stack([member(*inputs, **named) for member in self.members]).mean(0)


def seeded_copy(model: nn.Module, seed: int) -> nn.Module:
    """A copy of the model with every layer drawn anew from `seed`; the global random state is left alone.

    Layers are drawn by their own `reset_parameters`. A layer with parameters but without that method is refused.
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


def first_model(method: Method) -> nn.Module | None:
    """The model that a method starts from, through all that wraps it; None where the method makes its own."""
    for value in _parts_of(method).values():
        found = value() if isinstance(value, InPlace) else first_model(value) if is_method(value) else None
        if found is not None:
            return found
    return None


def starting_from(method: Method, model: nn.Module | None) -> Method:
    """The same method for another model, through all that wraps it, with solvers of its own."""
    changed: dict[str, Any] = {}
    for name, value in _parts_of(method).items():
        if isinstance(value, InPlace) and model is not None:
            changed[name] = InPlace(model)
        elif isinstance(value, Solver):
            changed[name] = copy.deepcopy(value)
        elif is_method(value):
            changed[name] = starting_from(value, model)
    return replace(method, **changed) if changed else method  # type: ignore[type-var]


def _parts_of(method: Any) -> dict[str, Any]:
    return {f.name: getattr(method, f.name) for f in fields(method)} if is_dataclass(method) else {}


@dataclass(frozen=True)
class Ensembled:
    """Train by a method several times, each time from another seed (and on other rows), and average the logits.

    The history has the rows of all members, each with its `member`; the best row, and what was settled on, are those of
    the member that is best on its held-out rows. A given model is left as it was.

    Args:
        method: How to train one member.
        made_of: How many members there are, and which rows each of them gets: `Seeds`, `Splits` or `Folds`.
        seed: The seed of the first member.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> one = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Ridge())
        >>> method = sp.methods.Ensembled(one, sp.methods.Splits(3))
        >>> result = sp.fit(None, "minimize fnr where fpr <= 10%", train, held_out, method, calibration=rest)
        >>> [row["member"] for row in result.history]
        [0, 1, 2]
    """

    method: Method
    made_of: Seeds
    seed: int = 0

    @property
    def expected_rows(self) -> int:
        """The sum over all members."""
        return self.made_of.members * expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one member cannot train, or None."""
        return self.method.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the members one after the other."""
        work.once("begun", lambda: True)
        model = first_model(self.method)
        runs: list[Trained] = []
        history: History = []
        starts: list[int] = []
        for member in range(self.made_of.members):
            drawn = self.seed + member
            fresh = None if model is None else seeded_copy(model, drawn)
            train, held_out = self.made_of.deal(data.train, data.held_out, self.seed, member)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(drawn)
                method = starting_from(self.method, fresh)
                run = method.train(problem, replace(data, train=train, held_out=held_out), work.part(f"seed-{drawn}"))
            starts.append(len(history))
            history += [{**row, "member": member} for row in run.history]
            runs.append(run)
        ranks = [preference_of_row(problem, run.history[run.best]) for run in runs]
        best = ranks.index(max(ranks))
        return Trained(
            Ensemble(run.model for run in runs).eval(), history, starts[best] + runs[best].best, runs[best].settled,
            runs[best].trials, all(run.again for run in runs),
        )  # fmt: skip
