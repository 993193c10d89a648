"""Train on the first process alone, for methods that need all rows, and send the result to every process."""

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
    """Train by a method on the first process only, and send the result to the others.

    Every process must hold all rows.

    Args:
        method: The method to train by.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> method = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Ridge())
        >>> sp.fit(None, ask, train, held_out, sp.methods.OnFirst(method), calibration=rest).point.feasible
        True
    """

    method: Method

    @property
    def expected_rows(self) -> int:
        """The number for the method itself."""
        return expected_rows(self.method)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the method cannot train, or None."""
        return self.method.refuses(problem, data.on_each())

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train on the first process; an error there is raised on all processes."""
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
