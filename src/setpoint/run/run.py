"""One run: train by a method, set the operating point, judge it on any part of the data. Every door calls it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import nn

from setpoint.data.batch import in_order
from setpoint.data.in_lists import refuse_odd_lists
from setpoint.data.parts import Data
from setpoint.decide.by_kind import decider
from setpoint.decide.calibrate import evaluate
from setpoint.decide.paired import Difference, difference
from setpoint.decide.settle import Confidence, cost_of_certificate, settle
from setpoint.errors import NotEnoughMemory
from setpoint.measure.labels import LABELS
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import weights_of
from setpoint.processes import ALONE, Processes
from setpoint.shown import html_of
from setpoint.train.choose import Chosen
from setpoint.train.default import Choice
from setpoint.train.each_label import chosen_of
from setpoint.train.history import History, score
from setpoint.train.method import Method, Trained
from setpoint.train.trial import Trial
from setpoint.train.work import Work


@dataclass(frozen=True)
class Run:
    """A trained model, the point to run it at, and its results on every part of the data.

    Parts are named as in `Data` ("train", "held_out", "calibration", "test"), and are scored when first asked for.

    Attributes:
        problem: The problem to solve.
        data: The data to train and to judge on.
        trained: The result of the method.
        point: The operating point, set on the calibration rows.
        refusal: The reason why there is no certificate, where one was wanted.
        bare: The best cut of the calibration rows without a certificate, where the point has one.
        processes: The processes that trained together.
        name: The name of the solver or method, such as "default".
        solver: The solver that was named, or chosen by default.
        instead: The reason why the first choice refused the data, if it did.
        seconds: The time that training took, including the time before a kill.
        beside: Runs by other methods on the same rows.
        why_shipped: The reason why this run is shipped in the place of the named one, if it is.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> table.chosen.best("test").feasible, [run.name for run in table.chosen.beside]
        (True, ['cross-entropy'])
    """

    problem: Problem
    data: Data
    trained: Trained
    point: OperatingPoint
    refusal: str | None = None
    bare: OperatingPoint | None = None
    processes: Processes = ALONE
    name: str = ""
    solver: Choice = None
    instead: str = ""
    seconds: float = 0.0
    beside: tuple[Run, ...] = ()
    why_shipped: str = ""
    _samples: dict[str, Sample] = field(default_factory=dict, repr=False, compare=False)
    _judged: dict[str, OperatingPoint] = field(init=False, default_factory=dict, repr=False, compare=False)
    _best: dict[str, OperatingPoint] = field(init=False, default_factory=dict, repr=False, compare=False)

    def _repr_html_(self) -> str:
        return html_of(self)

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
        """The candidates that the method chose from, from simple to bold."""
        return self.trained.trials

    @property
    def cost_of_certificate(self) -> float | None:
        """How much better the objective is at the bare cut, on the calibration rows; None without a certificate."""
        return cost_of_certificate(self.point, self.bare)

    @property
    def method(self) -> str:
        """The name, and for the default and auto the method that they came down to: no two runs share this text."""
        chosen = [trial.name for trial in self.trials if trial.chosen]
        chosen = chosen_of(self.trials) if self.problem.kind == LABELS else chosen
        if chosen or self.name != "default":
            return ": ".join([self.name, *chosen])
        weight = getattr(self.solver, "pos_weight", None)
        under = "" if weight is None else f"({weight})"
        return f"{self.name}: {self.history[self.trained.best]['solver']}{under}"

    def sample(self, part: str) -> Sample:
        """The scores, labels, weights and groups of one part, such as "test"."""
        if part not in self._samples:
            loader = self.data.seen if part == "train" and self.data.seen is not None else getattr(self.data, part)
            self._samples[part] = score_part(self.model, loader, self.processes)
        return self._samples[part]

    def groups(self, part: str) -> Any:
        """The group of each row of one part, by name where groups have names."""
        return named_groups(self.data, self.sample(part))

    def judged(self, part: str) -> OperatingPoint:
        """The operating point with its rates on one part."""
        if part not in self._judged:
            sample, groups = self.sample(part), self.groups(part)
            weights = weights_of(self.problem, sample)
            given: dict[str, Any] = {"weights": weights, "groups": groups, "lists": sample.lists}
            self._judged[part] = self.point.judge(sample.scores, sample.labels, **given)
        return self._judged[part]

    @property
    def uncertified(self) -> Run:
        """The same run at the bare cut of the calibration rows."""
        return self if self.bare is None else replace(self, point=self.bare, bare=None)

    def on_equal_terms(self, other: Run) -> tuple[Run, Run]:
        """Both runs as they ship, or both at bare cuts where only one has a certificate.

        A certificate costs objective: with one and without, thresholds would be compared and not models.
        """
        if (self.point.certificate is None) == (other.point.certificate is None):
            return self, other
        return self.uncertified, other.uncertified

    def against(self, other: Run, part: str = "test") -> Difference:
        """The difference from another run on the same rows, on equal terms."""
        ours, theirs = self.on_equal_terms(other)
        mine, groups = self.sample(part), self.groups(part)
        points, both = (ours.judged(part), theirs.judged(part)), (mine.scores, other.sample(part).scores)
        found = difference(*points, both, mine.labels, groups=groups, values=mine.values, lists=mine.lists)
        return replace(found, bare=ours is not self or theirs is not other)

    def best(self, part: str) -> OperatingPoint:
        """The best cut of one part itself. It compares models independently of their thresholds."""
        if part not in self._best:
            sample, groups = self.sample(part), self.groups(part)
            weights = weights_of(self.problem, sample)
            given: dict[str, Any] = {"weights": weights, "groups": groups, "lists": sample.lists}
            self._best[part] = evaluate(self.problem, sample.scores, sample.labels, **given)
        return self._best[part]


def run(
    problem: Problem,
    data: Data,
    method: Method | Chosen,
    *,
    name: str = "",
    confidence: Confidence = None,
    work: Work | None = None,
) -> Run:
    """Train by a method and set the operating point on the calibration rows.

    Args:
        problem: The problem to solve.
        data: The parts to train on, to choose by, and to set the threshold on; without calibration rows the threshold
            is set on the held-out rows.
        method: The method to train by, or the choice that `method_for` has made.
        name: The name of the method in tables and reports.
        confidence: The probability with which the bounds are to hold on new data, if the rows allow it; "auto" is 0.95.
        work: The processes that take part, the store of the state, and the listener to progress.

    Returns:
        The run. If the rows allow no certificate, its point has none, and `refusal` says why.

    Raises:
        NotEnoughMemory: If the method refuses the data.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> data = sp.methods.Data(*(sp.Batches(x[k::3], labels[k::3]) for k in range(3)))
        >>> method = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Ridge())
        >>> run = sp.methods.run(sp.ask("minimize fnr where fpr <= 10%"), data, method)
        >>> run.point.feasible, run.judged("held_out").feasible
        (True, True)
    """
    decider(problem)  # A question that cannot be decided is refused before any work.
    refuse_odd_lists(problem, {"training": data.train, "held-out": data.held_out, "calibration": data.calibration})
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
    settled = settle(
        problem, sample.scores, sample.labels, confidence,
        weights=weights_of(problem, sample), groups=groups, classes=data.class_names or None, lists=sample.lists,
        clusters=data.clusters,
    )  # fmt: skip
    seconds = work.store.spent_before + time.perf_counter() - started
    work.store.close()
    return Run(
        problem, data, trained, settled.point, settled.refusal, settled.bare, work.processes, name,
        chosen.solver, chosen.instead, seconds,
        _samples={part: sample},
    )  # fmt: skip


def score_part(model: nn.Module, loader: Iterable[Any], processes: Processes) -> Sample:
    """The scores of all rows of a loader, on all processes; rows in memory keep their order."""
    return score(model, in_order(loader, whole=True), processes)


def named_groups(data: Data, sample: Sample) -> Any:
    """The group of each row, by name where groups have names."""
    if sample.groups is None or not data.group_names:
        return sample.groups
    return np.array(data.group_names)[sample.groups.cpu().numpy()]
