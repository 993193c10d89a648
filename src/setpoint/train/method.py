"""Methods: ways to train. Each takes an ask and data to a model that gives scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import nn

from setpoint.data.parts import Data
from setpoint.problem.problem import Problem
from setpoint.train.history import History
from setpoint.train.trial import Trial
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
    candidates that the method chose from, from simple to bold.
    """

    model: nn.Module
    history: History
    best: int
    settled: Method
    trials: tuple[Trial, ...] = ()
