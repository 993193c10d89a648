"""Methods: ways to train. Each takes an ask and data to a model that gives scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from torch import nn

from setpoint.data.parts import Data
from setpoint.problem.problem import Problem
from setpoint.train.history import History, record, score
from setpoint.train.trial import Trial, judge
from setpoint.train.work import Work


class Method(Protocol):
    """A way to train a model. Methods wrap one another: `Refit(ByEpochs(...))`."""

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why this method cannot train on such data for such a problem, in one sentence, before any work."""

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train on `data.train`; whatever has to be chosen is chosen by `data.held_out`."""


@dataclass(frozen=True)
class Trained:
    """What a method gives back.

    `history` has one row per epoch or candidate, and the model is that of row `best`. `settled` is the same method with
    every choice made (the number of epochs, the strength), to be trained again on other rows. `trials` are the
    candidates that the method chose from, from simple to bold. With `again` the model was trained on the held-out rows
    too, once they had chosen.
    """

    model: nn.Module
    history: History
    best: int
    settled: Method
    trials: tuple[Trial, ...] = ()
    again: bool = False


def is_method(value: Any) -> TypeGuard[Method]:
    """Whether something is a method by itself, not a solver, a recipe or a name."""
    return hasattr(value, "refuses") and hasattr(value, "train") and not isinstance(value, nn.Module | type)


def expected_rows(method: Method) -> int:
    """About how many rows of history a method will tell of, for whoever shows progress; 1 if it does not say."""
    return int(getattr(method, "expected_rows", 1))


def trained_once(method: Method, model: nn.Module, problem: Problem, data: Data, work: Work) -> Trained:
    """The result of a method that makes one model and chooses nothing: its history is one row.

    Args:
        method: The method, which is settled as it is.
        model: What it has trained.
        problem: What was asked.
        data: What it was trained on.
        work: The work; it is told of the row.

    Returns:
        The model, with its exact metric on training and held-out rows.
    """
    seen, held_out = (score(model, loader, work.processes) for loader in (data.train, data.held_out))
    row = record(problem, 0, type(method).__name__, seen, judge(problem, seen), judge(problem, held_out))
    work.tell(row)
    return Trained(model, [row], 0, method)
