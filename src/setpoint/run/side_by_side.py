"""Several ways to train on the same rows: the one that was asked for, and plain cross-entropy beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from setpoint.data.parts import Data
from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.run.run import Run, run
from setpoint.train.choose import How, can_refit, method_for
from setpoint.train.default import BASELINE, Case, Choice, make_solver
from setpoint.train.models import build_model, kind_of
from setpoint.train.work import Work

#: Told of progress: the name of what is trained, its rows of history so far, and how many are expected.
Told = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Entry:
    """One way to train: its name, a new model at its first parameters, and the solver, recipe or method for a case."""

    name: str
    make_model: Callable[[], nn.Module | None]
    choose: Callable[[Case], Choice]


def entries(kind: str, names: Sequence[str], width: int, seed: int) -> list[Entry]:
    """Ways to train a kind of model by the names of solvers; a kind with a method of its own takes that for "default".

    Plain cross-entropy then stands beside it as a linear model.
    """
    own = kind_of(kind).method

    def entry(name: str) -> Entry:
        if own is None or name == BASELINE:
            shape = kind if own is None else "linear"
            return Entry(name, lambda: build_model(shape, width, seed), lambda case: make_solver(name, case))
        if name != "default":
            raise BadSetting(f"model {kind!r} is trained by its own method, so it takes no solver; leave out {name!r}")
        return Entry(name, lambda: None, lambda case: own())

    return [entry(name) for name in names]


@dataclass(frozen=True)
class SideBySide:
    """The problem, the rows and the settings that all trainings share.

    Args:
        problem: What is asked.
        make_data: Gives the data, anew for each training, so that each draws the same order.
        case: What solvers are made for; whether the model is linear is filled in.
        how: How to train, whichever way.
        confidence: Certify the bounds at this level, if the rows allow it.
        on_row: Is told of progress.
    """

    problem: Problem
    make_data: Callable[[], Data]
    case: Case
    how: How
    confidence: float | None = None
    on_row: Told | None = None

    def run(self, ways: Sequence[Entry], work: Work, *, unless_tried: bool = False) -> Run:
        """Train by the first entry, then by the others, which stand beside it.

        Others are trained again on held-out rows only if the first is: rows that one alone has would pass for its
        merit. With `unless_tried` there are no others where the first has itself chosen among candidates.
        """
        first = self._one(ways[0], self.how, work)
        if unless_tried and first.trials:
            return first
        how = replace(self.how, refit=first.trained.again)
        return replace(first, beside=tuple(self._one(way, how, work) for way in ways[1:]))

    def _one(self, way: Entry, how: How, work: Work) -> Run:
        model, data = way.make_model(), self.make_data()
        choice = way.choose(replace(self.case, linear=isinstance(model, nn.Linear)))
        if how is not self.how and not can_refit(choice, model):
            how = replace(how, refit=False)
        method = method_for(model, self.problem, choice, how, data, work.processes)
        rows, done = method.expected_rows, 0

        def tell(row: dict[str, Any]) -> None:
            nonlocal done
            done = min(max(done, row["epoch"]) + 1, rows)
            if self.on_row is not None:
                self.on_row(way.name, done, rows)

        own = work.part(way.name, tell=tell)
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(self.how.seed)
            found = run(self.problem, data, method, name=way.name, confidence=self.confidence, work=own)
        if self.on_row is not None:
            self.on_row(way.name, rows, rows)
        return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Batches of tables are small: a second thread costs more than it brings, and changes the last digits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
