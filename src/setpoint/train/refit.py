"""Retrain on training and held-out rows together, after the held-out rows have chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from setpoint.data.batch import Batches, in_order
from setpoint.data.parts import Data
from setpoint.errors import CannotPool
from setpoint.problem.problem import Problem
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.history import score
from setpoint.train.method import Method, Trained, expected_rows
from setpoint.train.work import Work


@dataclass(frozen=True)
class Refit:
    """Train by a method, then retrain on training and held-out rows together with the choices it made.

    A network is retrained from its initial parameters for the number of epochs that was best, a linear model by the
    recipe that was best. History and best row are those of the first training.

    Args:
        method: The method of the first training.
        required: Whether data that cannot be pooled are an error; otherwise the first training is kept.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> method = sp.methods.FullBatch(lambda: torch.nn.Linear(1, 1), sp.Ridge())
        >>> result = sp.fit(None, ask, train, held_out, sp.methods.Refit(method), calibration=rest)
        >>> len(result.history), result.point.feasible
        (1, True)
    """

    method: Method
    required: bool = True

    @property
    def expected_rows(self) -> int:
        """Twice the epochs of a network; the retraining of a recipe takes too little time to show."""
        return expected_rows(self.method) * (2 if isinstance(self.method, ByEpochs) else 1)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the method cannot train on all rows together, or None."""
        return self.method.refuses(problem, data.pooled())

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train twice; the second training tells its progress in rows marked `again`."""
        first = self.method.train(problem, data, work)
        known = isinstance(data.held_out, Batches)
        judged = score(first.model, in_order(data.held_out, whole=True), work.processes) if known else None
        told = len(first.history)

        def tell(row: dict[str, Any]) -> None:
            work.tell({**row, "epoch": told + row["epoch"], "again": True})

        try:
            second = first.settled.train(problem, data.pooled(), work.part("again", tell=tell))
        except CannotPool:
            if self.required:
                raise
            return first
        return replace(first, model=second.model, settled=second.settled, again=True, held_out=judged)
