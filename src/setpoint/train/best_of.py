"""Train by several methods and keep the model that is best on the held-out rows."""

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
    """Train by each method in turn and keep the model with the best exact metric on the held-out rows.

    Between equals the first is kept.

    Args:
        methods: The methods by name. They may train the same model: it ends with the best parameters.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> model = torch.nn.Linear(1, 1)
        >>> ways = {f"weight {w}": sp.methods.FullBatch(lambda: model, sp.Ridge(w)) for w in (0.5, 2.0)}
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.BestOf(ways), calibration=rest)
        >>> [row["candidate"] for row in result.history]
        ['weight 0.5', 'weight 2.0']
    """

    methods: dict[str, Method]

    @property
    def expected_rows(self) -> int:
        """The sum over all methods."""
        return sum(map(expected_rows, self.methods.values()))

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The first reason why one of the methods cannot train, or None."""
        return next(filter(None, (method.refuses(problem, data) for method in self.methods.values())), None)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train by all methods, and judge each model on the held-out rows by the exact metric."""
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
