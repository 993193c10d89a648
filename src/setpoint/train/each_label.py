"""Training for several labels, one model per label: each by its own method, on the rows of which the label is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.batch import resident
from setpoint.data.parts import Data
from setpoint.measure.sample import Sample
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.train.history import History
from setpoint.train.method import Method, Trained, expected_rows, trained_once
from setpoint.train.trial import Trial
from setpoint.train.work import Work

#: The name of the method in a row of history where the labels were trained by different ones.
DIFFERENT = "one method per label"


class LabelModels(nn.Module):
    """One model per label; the scores are one column per label."""

    def __init__(self, models: Iterable[nn.Module]) -> None:
        super().__init__()
        self.labels = nn.ModuleList(models)

    def forward(self, x: Any) -> Tensor:
        """Scores `(n, L)`."""
        return torch.stack([model(x).reshape(len(x)) for model in self.labels], dim=-1)


@dataclass(frozen=True)
class EachLabel:
    """Train one model per label, one after the other, and join them.

    The history has the rows of all labels, each with its `label`, and a last row of all labels together.

    Args:
        methods: The method of each label.
        into: A linear model with one output per label: it gives the parameters to start from, and takes those that were
            trained, if they are linear. None joins the models.
        starts: The models that the methods start from, where `into` is given.
    """

    methods: tuple[Method, ...]
    into: nn.Linear | None = None
    starts: tuple[nn.Linear, ...] = ()

    @property
    def expected_rows(self) -> int:
        """The sum over all labels."""
        return sum(map(expected_rows, self.methods))

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why one of the methods cannot train, or None."""
        each = enumerate(zip(_each(problem).values(), self.methods))
        reasons = (method.refuses(own, data.of_label(place)) for place, (own, method) in each)
        return next(filter(None, reasons), None)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the labels in their order."""
        work.once("begun", lambda: True)
        history: History = []
        found: list[Trained] = []
        for place, (label, own) in enumerate(_each(problem).items()):
            told = len(history)

            def tell(row: dict[str, Any], told: int = told, label: str = label) -> None:
                work.tell({**row, "epoch": told + row["epoch"], "candidate": f"label {label}"})

            if self.into is not None:
                _copy(self.into, self.starts[place], place, back=False)
            one = self.methods[place].train(own, data.of_label(place), work.part(f"label-{place}", tell=tell))
            history += [{**row, "label": label} for row in one.history]
            found.append(one)
        model = self._joined([one.model for one in found])
        names = {str(one.history[one.best]["solver"]) for one in found}
        whole = trained_once(self, model, problem, data, Work(processes=work.processes))
        history.append({**whole.history[0], "solver": names.pop() if len(names) == 1 else DIFFERENT})
        plain = [one.plain for one in found if one.plain is not None]
        labels = _each(problem)
        trials = [replace(t, name=f"{label}: {t.name}") for label, one in zip(labels, found) for t in one.trials]
        return Trained(
            model, history, len(history) - 1, replace(self, methods=tuple(one.settled for one in found)),
            tuple(trials), all(one.again for one in found),
            LabelModels(plain) if len(plain) == len(found) else None,
            held_out=_held_out(data, [one.held_out for one in found]),
        )  # fmt: skip

    def _joined(self, models: Sequence[nn.Module]) -> nn.Module:
        if self.into is None or not all(isinstance(model, nn.Linear) for model in models):
            return LabelModels(models).eval()
        for place, model in enumerate(models):
            assert isinstance(model, nn.Linear)
            _copy(self.into, model, place, back=True)
        return self.into


def chosen_of(trials: Sequence[Trial]) -> list[str]:
    """The candidate that was chosen for every label, or that they differ; nothing where there was no choice."""
    names = {trial.name.split(": ", 1)[-1] for trial in trials if trial.chosen}
    return [names.pop() if len(names) == 1 else DIFFERENT] if names else []


def row_of(model: nn.Linear, place: int) -> nn.Linear:
    """A linear model with one output: that of one label."""
    own = nn.Linear(model.in_features, 1, bias=model.bias is not None).to(model.weight)
    _copy(model, own, place, back=False)
    return own


@torch.no_grad()
def _copy(whole: nn.Linear, own: nn.Linear, place: int, *, back: bool) -> None:
    """Copy one output of a linear model to a model of that output alone, or back."""
    for ours, theirs in ((whole.weight, own.weight), (whole.bias, own.bias)):
        if ours is not None and theirs is not None:
            (ours[place : place + 1] if back else theirs).copy_(theirs if back else ours[place : place + 1])


def _each(problem: Problem) -> dict[str, Problem]:
    assert isinstance(problem, LabelProblem)
    return problem.each


def _held_out(data: Data, samples: Sequence[Sample | None]) -> Sample | None:
    """The held-out rows with the scores of all labels, from those of each label; unknown entries count nowhere."""
    rows = resident(data.held_out)
    if rows is None or any(sample is None for sample in samples):
        return None
    scores = torch.zeros(rows.labels.shape)
    for place, sample in enumerate(samples):
        assert sample is not None
        scores[~rows.labels[:, place].isnan(), place] = sample.scores.to(scores.dtype)
    return rows.sample(scores)
