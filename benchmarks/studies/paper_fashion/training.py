"""One training of the study: batches, corrections as published, and the state that is best on held-out rows."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.data import Parts
from benchmarks.studies.small_nets.training import MEMORY, anchored, make_net, score
from setpoint.errors import SetpointError
from setpoint.measure.curve import mcclish

WIDTHS, BATCH, RATE = (32, 32), 512, 1e-3
#: Makes the solver of a net and its optimizer.
Make = Callable[[nn.Sequential, torch.optim.Optimizer], nn.Module]


@dataclass(frozen=True)
class Plan:
    """How many steps, after how many a state is looked at and thresholds are corrected, and how many begin as plain."""

    steps: int = 1_200
    look: int = 100
    every: int = 1_000
    warm: int = 0


class Best:
    """The state that is best by one ask on held-out rows; ties go to the earlier."""

    def __init__(self, ask: str) -> None:
        self.problem, self.sign = sp.ask(ask), 1 if sp.ask(ask).maximize else -1
        self.value, self.step, self.net = -math.inf, 0, nn.Module()

    def look(self, step: int, net: nn.Module, scores: Tensor, labels: Tensor) -> None:
        value = self.sign * sp.evaluate(self.problem, scores, labels).objective
        if value > self.value:
            self.value, self.step, self.net = value, step, copy.deepcopy(net)

    def row(self, parts: Parts, seconds: float) -> dict[str, Any]:
        """On test rows: at the best cut of their curve, and at the threshold set on calibration rows."""
        if not self.step:
            return {"failed": "the solver gave up before the first look", "seconds": seconds}
        scores, labels = score(self.net, parts.test[0]), parts.test[1]
        found = {"validation": self.sign * self.value, "step": self.step, "seconds": seconds}
        value = sp.evaluate(self.problem, scores, labels).objective
        if self.problem.over is not None:
            return {**found, "test": float(mcclish(torch.tensor(value), self.problem.over.low, self.problem.over.high))}
        point = sp.calibrate(self.problem, score(self.net, parts.calibration[0]), parts.calibration[1])
        shipped = point.judge(scores, labels)
        return {**found, "test": value, "at threshold": shipped.objective, "fpr": shipped.rates["fpr"]}


def batches(rows: int, seed: int) -> Iterator[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(rows, generator=draw).split(BATCH)[: rows // BATCH]


def train(parts: Parts, seed: int, plan: Plan, make: Make, asks: list[str]) -> list[dict[str, Any]]:
    """One training; the best state for each ask is judged."""
    best, spent = trained(parts, seed, plan, make, asks)
    return [one.row(parts, spent) for one in best]


def trained(parts: Parts, seed: int, plan: Plan, make: Make, asks: list[str]) -> tuple[list[Best], float]:
    """One training: the best state for each ask, and the seconds of the processor."""
    started, (x, labels) = time.process_time(), parts.train
    net = make_net(parts, WIDTHS, seed)
    assert isinstance(net, nn.Sequential)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    solver, best = make(net, optimizer), [Best(ask) for ask in asks]
    if prices := list(solver.parameters()):
        optimizer.add_param_group({"params": prices})
    coming, plain = batches(len(labels), seed), sp.CrossEntropy()
    for step in range(1, plan.steps + 1):
        net.train()
        warm = step <= plan.warm
        if isinstance(solver, sp.ImplicitThreshold) and not warm and solver.needs_correction:
            ahead = list(itertools.islice(coming, solver.correction.batches))
            sp.methods.correct(net, solver, [(x[rows], labels[rows]) for rows in ahead])
            coming = itertools.chain(ahead, coming)
        rows = next(coming)
        try:
            loss = (plain if warm else solver)(net(x[rows]).squeeze(-1), labels[rows])
        except SetpointError:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % plan.look == 0:
            scores = score(net, parts.held_out[0])
            for one in best:
                one.look(step, net, scores, parts.held_out[1])
    return best, time.process_time() - started


class AnchoredLate(nn.Module):
    """Cross-entropy for so many steps, then implicit thresholds beside it."""

    def __init__(self, problem: sp.Problem, warm: int) -> None:
        super().__init__()
        self.problem, self.warm, self.solver = problem, warm, sp.CrossEntropy()
        self.latest: list[tuple[Tensor, Tensor]] = []

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        if len(self.latest) == self.warm:
            self.solver = anchored(self.problem, 1.0, self.latest[-(MEMORY // BATCH) :])
        if len(self.latest) <= self.warm:
            self.latest.append((scores.detach(), labels))
        return self.solver(scores, labels)


def as_published(problem: sp.Problem, temperature: float, plan: Plan) -> Make:
    """Algorithm 1; for areas the thresholds take no step of their own and are corrected ten times as often."""
    area = problem.over is not None

    def make(net: nn.Sequential, optimizer: torch.optim.Optimizer) -> nn.Module:
        every = plan.every // 10 if area else plan.every
        correction = sp.losses.Correction(every=every, batches=10)
        solver = sp.ImplicitThreshold(problem, temperature=temperature, memory=0, correction=correction)
        if not area:
            solver.follow(optimizer)
        return solver

    return make
