"""Retrain on training and held-out rows together, once the held-out rows have chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from setpoint.data.parts import Data
from setpoint.errors import CannotPool
from setpoint.problem.problem import Problem
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.work import Work


@dataclass(frozen=True)
class Refit:
    """Train by a method, then train what it settled on again, on training and held-out rows together.

    Rows that nothing more is chosen on need not lie idle: a network is trained anew for as many epochs as were best, a
    linear model by the recipe that was best. History and best row are those of the first training. Unless `required`,
    data that cannot be pooled leave it at the first training.
    """

    method: Method
    required: bool = True

    @property
    def expected_rows(self) -> int:
        """Those of both trainings; a settled recipe takes no time worth showing."""
        return expected_rows(self.method) * (2 if isinstance(self.method, ByEpochs) else 1)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Why this cannot be trained, if so, on all rows together."""
        return self.method.refuses(problem, data.pooled())

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train twice; those who are told of progress see the second training in rows marked `again`."""
        first = self.method.train(problem, data, work)
        told = len(first.history)

        def tell(row: dict[str, Any]) -> None:
            work.tell({**row, "epoch": told + row["epoch"], "again": True})

        try:
            second = first.settled.train(problem, data.pooled(), work.part("again", tell=tell))
        except CannotPool:
            if self.required:
                raise
            return first
        return replace(first, model=second.model, settled=second.settled, again=True)
