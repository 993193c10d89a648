"""Candidates of several kinds that are cross-fitted on the same rows, and the choice among them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.train.class_loss import class_losses
from setpoint.train.cross_fit import CrossFit, Folded
from setpoint.train.history import History
from setpoint.train.linear import cross_entropy
from setpoint.train.method import Method, Trained
from setpoint.train.stack import Stack, stacked
from setpoint.train.trial import Judged, Trial, gain_over
from setpoint.train.work import Work

PLAIN, ASKED, TREES, NETWORK, STACK = "cross-entropy", "linear", "trees", "mlp", "stack"
#: Trees that are trained for the order in lists, where an ask is about lists.
RANKED = "lambdarank"
#: The note of the candidate that is kept unless another is clearly better by the exact metric.
LOWEST = "the lowest log-loss"
#: From simple to bold.
ORDER = (PLAIN, ASKED, TREES, RANKED, NETWORK, STACK)


class Contest:
    """The candidates that are tried on one problem and data."""

    def __init__(self, problem: Problem, data: Data, work: Work, minutes: float | None) -> None:
        self.problem, self.data, self.work = problem, data, work
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self.folded: dict[str, Folded] = {}
        self.trained: dict[str, Trained] = {}
        self.judged: dict[str, Judged] = {}
        self.ahead: dict[str, Folded] = {}
        self.seconds: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.history: History = []
        self.rows: dict[str, int] = {}
        self.stack_weights: tuple[dict[str, float], float] = ({}, 0.0)

    def add(self, name: str, method: CrossFit, data: Data | None = None, unless_behind: str = "") -> None:
        """Cross-fit one more candidate, if there is time; all of it unless its first fold is behind another's."""
        started, first = time.perf_counter(), len(self.history)
        if self._is_over(name):
            self.leave_out(name, "the minutes were over")
            return
        folded = self.ahead.get(name) or self._begin(name, method, data or self.data)
        if unless_behind in self.folded:
            gap = _gap(folded, self.folded[unless_behind])
            if gap is not None:
                self.leave_out(name, f"its first fold has a larger log-loss than that of {unless_behind}, {gap}")
                self.seconds[name] = time.perf_counter() - started
                return
        trained = folded.all()
        assert trained.out_of_fold is not None
        self.folded[name], self.trained[name] = folded, trained
        self.judged[name] = Judged(self.problem, trained.out_of_fold)
        self.rows[name] = first + trained.best
        rows = enumerate(trained.history, first)
        self.history += [{**row, "epoch": place, "candidate": name} for place, row in rows]
        self.seconds[name] = (folded.ended - folded.started) if name in self.ahead else time.perf_counter() - started

    @contextmanager
    def meanwhile(self, name: str, method: CrossFit) -> Iterator[None]:
        """Train a candidate in threads beside the block, at whose end it is trained; `add` then takes it."""
        if self._is_over(name):
            yield
            return
        self.ahead[name] = self._begin(name, method, self.data)
        with self.ahead[name].in_threads():
            yield

    def _is_over(self, name: str) -> bool:
        over = self.end is not None and time.monotonic() > self.end and name != PLAIN
        return self.work.once(f"no time for {name}", lambda: over)

    def _begin(self, name: str, method: CrossFit, data: Data) -> Folded:
        first = len(self.history)

        def tell(row: dict[str, Any]) -> None:
            self.work.tell({**row, "epoch": first + row["epoch"], "candidate": name})

        return Folded(method, self.problem, data, self.work.part(name, tell=tell))

    def leave_out(self, name: str, why: str) -> None:
        """Note why a candidate is not tried."""
        self.notes[name] = f"left out: {why}"

    def is_behind(self, name: str, other: str, errors: float) -> bool:
        """Whether a candidate is worse than another by more than so many standard errors of the exact metric."""
        return other in self.judged and gain_over(self.judged[name], self.judged[other]).exceeds(errors)

    def stack(self, folds: Tensor) -> None:
        """Add the stack of all candidates so far."""
        started = time.perf_counter()
        (*weights, bias), sample = stacked([one.sample for one in self.judged.values()], folds)
        self.judged[STACK] = Judged(self.problem, sample)
        self.stack_weights = dict(zip(self.trained, weights)), bias
        self.rows[STACK] = max(self.rows.values())
        self.seconds[STACK] = time.perf_counter() - started
        shares = ", ".join(f"{weight:.2f} {name}" for name, weight in self.stack_weights[0].items())
        self.notes[STACK] = f"logits weighted {shares}"

    def model(self, name: str) -> Stack:
        """The model of a candidate: a stack, of one member or of all."""
        if name != STACK:
            return Stack({name: self.trained[name].model}, {name: 1.0})
        return Stack({name: trained.model for name, trained in self.trained.items()}, *self.stack_weights)

    def choose(self, caution: float, settled: Method) -> Trained:
        """Keep the candidate with the lowest log-loss, unless another is clearly better by the exact metric.

        The log-loss tells models apart on far fewer rows than a rate at a tight bound does. Between equals the simpler
        candidate wins.
        """
        tried = [name for name in ORDER if name in self.judged]
        losses = {name: _loss(self.judged[name].sample) for name in tried}
        first = min(tried, key=lambda name: float(losses[name].sum()))
        gains = {name: gain_over(self.judged[first], self.judged[name]) for name in tried}
        clear = [name for name in tried if name != first and gains[name].exceeds(caution)]
        kept = max(clear, key=lambda name: gains[name].value, default=first)
        for name in tried:
            more, error = _paired(losses[name] - losses[first])
            note = f"{gains[name]} against {first}; log-loss {more:+.4f} ± {error:.4f} per row"
            note = LOWEST if name == first else note
            self.notes[name] = "; ".join(filter(None, (note, self.notes.get(name))))
        trials = []
        for name in (name for name in ORDER if name in self.judged or name in self.notes):
            point = self.judged[name].point if name in self.judged else None
            trials.append(Trial(name, point, self.seconds.get(name, 0.0), name == kept, self.notes.get(name, "")))
        return Trained(
            self.model(kept).eval(), self.history, self.rows[kept], settled, tuple(trials),
            plain=self.trained[PLAIN].model, out_of_fold=self.judged[kept].sample,
        )  # fmt: skip


def _gap(one: Folded, other: Folded) -> str | None:
    """By how much the first member of a cross-fit is worse than that of another on the first fold, if it is.

    Both are judged by the log-loss after the best rescaling of their scores, per row.
    """
    rows = replace(one.rows, x=one.folds).take(one.folds == 0)
    mean, error = _paired(_loss(rows.sample(one.scores(0))) - _loss(rows.sample(other.scores(0))))
    return f"{mean:.4f} ± {error:.4f} per row" if mean > error else None


def _loss(sample: Sample) -> Tensor:
    """The log-loss of each row, times its weight, after the best rescaling of the scores."""
    if sample.scores.dim() == 2:
        return class_losses(sample)
    weights = torch.ones(len(sample.labels)) if sample.weights is None else sample.weights
    weights, labels = weights.double(), sample.labels.double()
    x = torch.stack([sample.scores.double(), torch.ones_like(labels)], dim=1)
    logits = x @ cross_entropy(Rows(x, labels, weights), weights / weights.mean())
    return weights * (F.softplus(logits) - labels * logits)


def _paired(differences: Tensor) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(differences.mean()), float(differences.std()) / len(differences) ** 0.5
