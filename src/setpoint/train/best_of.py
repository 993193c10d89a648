"""Train by several methods and keep the one whose model is best on the held-out rows."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from setpoint.data.parts import Data
from setpoint.decide.order import preference
from setpoint.problem.problem import Problem
from setpoint.train.history import History, score
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.trial import judge
from setpoint.train.work import Work


@dataclass(frozen=True)
class BestOf:
    """Train by each method in turn; of equals the first is kept.

    Args:
        methods: The methods by name. They may train one and the same model: its parameters are set back to the best.
    """

    methods: dict[str, Method]

    @property
    def expected_rows(self) -> int:
        """Those of all methods."""
        return sum(map(expected_rows, self.methods.values()))

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why one of the methods cannot train, if so."""
        return next(filter(None, (method.refuses(problem, data) for method in self.methods.values())), None)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train all, judge all on the held-out rows by the exact metric."""
        history: History = []
        found = []
        for name, method in self.methods.items():
            trained = method.train(problem, data, work.part(name, trial=name))
            point = judge(problem, score(trained.model, data.held_out, work.processes))
            found.append((preference(point), len(history), trained, copy.deepcopy(trained.model.state_dict())))
            history += [{**row, "candidate": name} for row in trained.history]
        _, first, best, state = max(found, key=lambda one: one[0])
        best.model.load_state_dict(state)
        return replace(best, history=history, best=first + best.best)
