"""One run: train by a method, set the operating point, judge it on any part of the data. Every door stands on this."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from setpoint.data.batch import in_order
from setpoint.data.parts import Data
from setpoint.decide.calibrate import evaluate, settle
from setpoint.errors import NotEnoughMemory
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.train.choose import Chosen
from setpoint.train.default import Choice
from setpoint.train.history import History, score
from setpoint.train.method import Method, Trained
from setpoint.train.trial import Trial
from setpoint.train.work import Work


@dataclass(frozen=True)
class Run:
    """The trained model, the point to run it at, its results on every part of the data, and the runs it stands beside.

    Parts are named as in `Data`, and are scored when they are first asked for.

    Attributes:
        problem: What was asked.
        data: What it was trained and judged on.
        trained: What the method gave back.
        point: The operating point, set on the calibration rows.
        refusal: Why the point carries no certificate although one was asked for.
        name: What the way of training was called, such as "default".
        solver: The solver that was named, or chosen where none was.
        instead: Why another method was trained than the first choice, if that refused the data.
        seconds: How long training took, in all processes that worked on it one after the other.
        beside: Runs by other methods on the same rows.
    """

    problem: Problem
    data: Data
    trained: Trained
    point: OperatingPoint
    refusal: str | None = None
    processes: Processes = ALONE
    name: str = ""
    solver: Choice = None
    instead: str = ""
    seconds: float = 0.0
    beside: tuple[Run, ...] = ()
    _samples: dict[str, Sample] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> nn.Module:
        """The trained model."""
        return self.trained.model

    @property
    def history(self) -> History:
        """One row per epoch or candidate."""
        return self.trained.history

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The candidates that the method chose from."""
        return self.trained.trials

    @property
    def method(self) -> str:
        """The name, and for the default and auto the method that they came down to: no two runs share this text."""
        chosen = [trial.name for trial in self.trials if trial.chosen]
        if chosen or self.name != "default":
            return ": ".join([self.name, *chosen])
        weight = getattr(self.solver, "pos_weight", None)
        under = "" if weight is None else f"({weight})"
        return f"{self.name}: {self.history[self.trained.best]['solver']}{under}"

    def sample(self, part: str) -> Sample:
        """Scores, labels, weights and groups of one part, such as "test"."""
        if part not in self._samples:
            loader = self.data.seen if part == "train" and self.data.seen is not None else getattr(self.data, part)
            self._samples[part] = score_part(self.model, loader, self.processes)
        return self._samples[part]

    def groups(self, part: str) -> Any:
        """The group of each row of one part: its name where groups have names."""
        return named_groups(self.data, self.sample(part))

    def judged(self, part: str) -> OperatingPoint:
        """The operating point, with the rates that it has on one part."""
        sample = self.sample(part)
        return self.point.judge(sample.scores, sample.labels, weights=sample.weights, groups=self.groups(part))

    def best(self, part: str) -> OperatingPoint:
        """The best cut of one part itself: it compares models without the luck of a threshold."""
        sample = self.sample(part)
        return evaluate(self.problem, sample.scores, sample.labels, weights=sample.weights, groups=self.groups(part))


def run(
    problem: Problem,
    data: Data,
    method: Method | Chosen,
    *,
    name: str = "",
    confidence: float | None = None,
    work: Work | None = None,
) -> Run:
    """Train by a method and set the operating point on the calibration rows.

    Args:
        problem: What is asked.
        data: The parts to learn from, to choose by, and to set the threshold on; without calibration rows the
            threshold is set on the held-out rows.
        method: How to train, or what `method_for` has chosen.
        name: What the method is called.
        confidence: Certify the bounds of the problem at this level, if the rows allow it.
        work: Who takes part, where the state is kept, who is told of progress.

    Returns:
        The run. Where the rows allow no certificate, its point has none, and `refusal` says why.

    Raises:
        NotEnoughMemory: If the method cannot train on such data.
    """
    work, started = work or Work(), time.perf_counter()
    if isinstance(method, Chosen):
        chosen = method
    else:
        chosen = Chosen(method, None)
        why = method.refuses(problem, data)
        if why is not None:
            raise NotEnoughMemory(why)
    trained = chosen.begin(problem, data, work).train(problem, data, work)
    trained.model.eval()
    part = "held_out" if data.calibration is None else "calibration"
    sample = score_part(trained.model, getattr(data, part), work.processes)
    groups = named_groups(data, sample)
    point, refusal = settle(problem, sample.scores, sample.labels, confidence, weights=sample.weights, groups=groups)
    seconds = work.store.spent_before + time.perf_counter() - started
    work.store.close()
    return Run(
        problem, data, trained, point, refusal, work.processes, name, chosen.solver, chosen.instead,
        seconds,
        _samples={part: sample},
    )  # fmt: skip


def score_part(model: nn.Module, loader: Iterable[Any], processes: Processes) -> Sample:
    """Scores of everything that a loader yields, on all processes; rows in memory in the order in which they lie."""
    return score(model, in_order(loader, whole=True), processes)


def named_groups(data: Data, sample: Sample) -> Any:
    """The group of each row, by name where groups have names."""
    if sample.groups is None or not data.group_names:
        return sample.groups
    return np.array(data.group_names)[sample.groups.cpu().numpy()]
