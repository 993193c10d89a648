"""Train on the first process alone what needs all rows in one place, and give the result to every process."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.data.parts import Data
from setpoint.errors import SetpointError
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.work import Work


@dataclass(frozen=True)
class OnFirst:
    """Train by a method on the first process, where each process holds all rows; the others wait for the result."""

    method: Method

    @property
    def expected_rows(self) -> int:
        """About how many rows of history there will be."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why this cannot be trained, if so, as for the method itself."""
        return self.method.refuses(problem, data.on_each())

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train once; a mistake that the first process finds is raised on all of them."""
        answer: Trained | SetpointError | None = None
        if work.processes.leads:
            try:
                answer = self.method.train(problem, data.on_each(), work.by(ALONE))
            except SetpointError as cause:
                answer = cause
        answer = work.processes.from_first(answer)
        if isinstance(answer, SetpointError):
            raise answer
        assert answer is not None
        return answer
