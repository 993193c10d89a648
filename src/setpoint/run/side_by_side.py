"""Several ways to train on the same rows: the named solver, and plain cross-entropy beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from setpoint.data.parts import Data
from setpoint.decide.settle import Confidence
from setpoint.errors import BadSetting
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.run.run import Run, run
from setpoint.run.ship import shipped
from setpoint.train.choose import How, can_refit, method_for
from setpoint.train.default import BASELINE, Case, Choice, make_solver
from setpoint.train.kinds import build_model, kind_of
from setpoint.train.method import Given, Method
from setpoint.train.work import Work

#: Called with the name of the solver, its rows of history so far, the expected number of rows and, if there is one,
#: the name of the candidate.
Told = Callable[..., None]


@dataclass(frozen=True)
class Entry:
    """One way to train: its name, a function that makes the model, and a function that makes the solver or method."""

    name: str
    make_model: Callable[[], nn.Module | None]
    choose: Callable[[Case], Choice]


#: Before the name of a kind of model, which is then trained by its default.
MODEL = "model "


def entries(
    kind: str, names: Sequence[str], width: int, seed: int, given: Mapping[str, Any] | None = None, outputs: int = 1
) -> list[Entry]:
    """The ways to train a kind of model, by the names of solvers; "model trees" names another kind, by its default.

    A kind with its own method uses it for "default", with the settings that are given and that the method has; plain
    cross-entropy beside it then trains a linear model.
    """

    def entry(name: str) -> Entry:
        shape, solver = (name.removeprefix(MODEL), "default") if name.startswith(MODEL) else (kind, name)
        own = kind_of(shape).method
        if own is None or solver == BASELINE:
            shape = shape if own is None else "linear"
            return Entry(name, lambda: build_model(shape, width, seed, outputs), lambda case: make_solver(solver, case))
        if solver != "default":
            raise BadSetting(
                f"model {shape!r} is trained by its own method, so it takes no solver; leave out {solver!r}, or choose "
                "--model linear or mlp"
            )
        method = own()
        # Settings are given for the kind of the table, not for others beside it.
        ours = {key: value for key, value in (given or {}).items() if shape == kind or hasattr(method, key)}
        return Entry(name, lambda: None, lambda case: with_settings(method, {**ours, "seed": seed}))

    return [entry(name) for name in names]


def with_settings(method: Method, given: Mapping[str, Any]) -> Method:
    """The method with these settings; the seed only where the method has one."""
    for name in given:
        if name != "seed" and not hasattr(method, name):
            raise BadSetting(f"{type(method).__name__} takes no {name}; leave it out")
    own = {name: value for name, value in given.items() if hasattr(method, name)}
    return replace(method, **own) if own else method  # type: ignore[type-var]


@dataclass(frozen=True)
class SideBySide:
    """The problem, the data and the settings that all trainings share.

    Args:
        problem: The problem to solve.
        make_data: Gives the data, new loaders for each training, so that each draws the same order.
        case: The circumstances for which solvers are made; `linear` is filled in.
        how: The settings of the training.
        confidence: The probability with which the bounds are to hold on new data, if the rows allow it; "auto" is 0.95.
        on_row: Is called with the progress.
    """

    problem: Problem
    make_data: Callable[[], Data]
    case: Case
    how: How
    confidence: Confidence = None
    on_row: Told | None = None

    def run(self, ways: Sequence[Entry], work: Work, *, unless_tried: bool = False) -> Run:
        """Train by the first entry, then by the others, which stand beside it.

        The others are retrained on held-out rows only if the first is, because rows that only one of them gets would
        look like its merit. Plain cross-entropy that the first trained as a candidate is not trained again. The first
        is the result, or plain cross-entropy where held-out rows clearly prefer it to the default (`shipped`). With
        `unless_tried` there are no others if the first chose among candidates itself. The listener of `work` is told
        each run as it ends.
        """
        first = self._one(ways[0], self.how, work)
        if unless_tried and first.trials:
            return first
        how, plain = replace(self.how, refit=first.trained.again), first.trained.plain
        if plain is not None:
            given = Given(plain, first.trained.again)
            ways = [Entry(BASELINE, lambda: None, lambda case: given) if w.name == BASELINE else w for w in ways]
        return shipped(replace(first, beside=tuple(self._one(way, how, work) for way in ways[1:])))

    def _choice(self, way: Entry, model: nn.Module | None) -> Any:
        """The choice of an entry; where each of several labels has its own model, one choice per label."""
        case = replace(self.case, linear=isinstance(model, nn.Linear))
        if not isinstance(self.problem, LabelProblem) or not (case.linear or model is None):
            return way.choose(case)
        each = {label: way.choose(replace(case, problem=own)) for label, own in self.problem.each.items()}
        first = next(iter(each.values()))
        return first if getattr(first, "takes_labels", False) else each

    def _one(self, way: Entry, how: How, work: Work) -> Run:
        model, data = way.make_model(), self.make_data()
        choice = self._choice(way, model)
        if how is not self.how and not can_refit(choice, model):
            how = replace(how, refit=False)
        method = method_for(model, self.problem, choice, how, data, work.processes)
        rows, done = method.expected_rows, 0

        def tell(row: dict[str, Any]) -> None:
            nonlocal done
            done = min(max(done, row["epoch"]) + 1, rows)
            if self.on_row is not None:
                self.on_row(way.name, done, rows, *([row["candidate"]] if "candidate" in row else []))

        own = work.part(way.name, tell=tell)
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(self.how.seed)
            found = run(self.problem, data, method, name=way.name, confidence=self.confidence, work=own)
        if self.on_row is not None:
            self.on_row(way.name, rows, rows)
        work.tell({"run": found})
        return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread: for the small batches of tables more threads are slower, and they change the last digits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
