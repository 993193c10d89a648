"""One run: train by a method, set the operating point, judge it on any part of the data. Every door stands on this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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
from setpoint.train.default import How, Named, method_for
from setpoint.train.history import score
from setpoint.train.identity import work_identity
from setpoint.train.method import Method, Trained
from setpoint.train.together import share_state
from setpoint.train.work import Work


@dataclass(frozen=True)
class Run:
    """What was trained, the point to run it at, and how it does on every part of the data.

    `refusal` says why the point carries no certificate although one was asked for; `solver` is the one that was named,
    or chosen where none was. Parts are named as in `Data`, and scored when they are first asked for.
    """

    problem: Problem
    data: Data
    trained: Trained
    point: OperatingPoint
    refusal: str | None = None
    processes: Processes = ALONE
    solver: Named | None = None
    _samples: dict[str, Sample] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> nn.Module:
        """The trained model."""
        return self.trained.model

    def sample(self, part: str) -> Sample:
        """Scores, labels, weights and groups of one part, such as "test"."""
        if part not in self._samples:
            self._samples[part] = score_part(self.model, getattr(self.data, part), self.processes)
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
    problem: Problem, data: Data, method: Method, *, confidence: float | None = None, work: Work | None = None
) -> Run:
    """Train by a method and set the operating point on the calibration rows.

    Args:
        problem: What is asked.
        data: The parts to learn from, to choose by, and to set the threshold on; without calibration rows the
            threshold is set on the held-out rows.
        method: How to train.
        confidence: Certify the bounds of the problem at this level, if the rows allow it.
        work: Who takes part, where the state is kept, who is told of progress.

    Returns:
        The run. Where the rows allow no certificate, its point has none, and `refusal` says why.

    Raises:
        NotEnoughMemory: If the method cannot train on such data.
    """
    work = work or Work()
    why = method.refuses(problem, data)
    if why is not None:
        raise NotEnoughMemory(why)
    trained = method.train(problem, data, work)
    trained.model.eval()
    part = "held_out" if data.calibration is None else "calibration"
    sample = score_part(trained.model, getattr(data, part), work.processes)
    groups = named_groups(data, sample)
    point, refusal = settle(problem, sample.scores, sample.labels, confidence, weights=sample.weights, groups=groups)
    return Run(problem, data, trained, point, refusal, work.processes, _samples={part: sample})


def run_solver(
    model: nn.Module,
    problem: Problem,
    data: Data,
    solver: Named | None,
    how: How,
    work: Work,
    *,
    confidence: float | None = None,
) -> Run:
    """As `run`, by the method that a solver, or the default if there is none, comes down to for this model."""
    solver, method = method_for(model, problem, solver, how, calibrated=data.calibration is not None)
    if work.store.is_on:
        work.identity = work_identity(model, solver, problem, data, how, work.processes)
    share_state(model, work.processes, parameters=True)
    found = run(problem, data, method, confidence=confidence, work=work)
    work.store.close()
    return replace(found, solver=solver)


def score_part(model: nn.Module, loader: Iterable[Any], processes: Processes) -> Sample:
    """Scores of everything that a loader yields, on all processes; rows in memory in the order in which they lie."""
    return score(model, in_order(loader, whole=True), processes)


def named_groups(data: Data, sample: Sample) -> Any:
    """The group of each row, by name where groups have names."""
    if sample.groups is None or not data.group_names:
        return sample.groups
    return np.array(data.group_names)[sample.groups.cpu().numpy()]
