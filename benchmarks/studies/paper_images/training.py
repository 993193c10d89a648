"""The papers' five-convolution net, narrow, and one way of training it for every criterion.

A run has so many epochs on one cosine. Cross-entropy, weighted or not, goes through all of them. What is warm-started
takes over from plain cross-entropy half-way: the same weights, order, flips and learning rates, another criterion and a
fresh Adam. Of the epochs after the half the best on validation rows is kept, for every method alike.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.studies.paper_images.sets import Images
from setpoint.errors import SetpointError
from setpoint.measure.curve import mcclish
from setpoint.solve.solver import Solver
from setpoint.train.head import fit_proximal_head

State = dict[str, Tensor]
Criterion = Callable[[sp.Problem, nn.Sequential], Solver]


@dataclass(frozen=True)
class Plan:
    """What a run depends on beside its images, criterion and seed."""

    epochs: int
    width: int = 16
    batch: int = 64
    rate: float = 1e-3
    decay: float = 1e-4

    @property
    def warm(self) -> int:
        return self.epochs // 2


#: The ways that depend on the ask; each takes over from cross-entropy.
CRITERIA: dict[str, Criterion] = {
    "Lagrangian": lambda problem, net: sp.Lagrangian(problem),
    "implicit": lambda problem, net: sp.ImplicitThreshold(problem),
    "method 1": lambda problem, net: sp.losses.ImplicitLastLayer(problem, net[-1]),
    "method 2": lambda problem, net: sp.losses.ImplicitLastLayer(problem, net[-1], below=sp.losses.Penalty(problem)),
    "ablation": lambda problem, net: sp.losses.ImplicitLastLayer(
        problem, net[-1], below=sp.losses.Penalty(problem), above=sp.losses.Penalty(problem)
    ),
}


def five_convolutions(channels: int, width: int) -> nn.Sequential:
    """The papers have a width of 128. Pooling comes before normalisation, which costs a quarter and changes little."""
    layers: list[nn.Module] = []
    for filters in (width, 2 * width, 2 * width, 4 * width, 4 * width):
        layers += [nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.MaxPool2d(2),
                   nn.BatchNorm2d(filters), nn.ReLU()]  # fmt: skip
        channels = filters
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 1))
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def fresh(images: Images, plan: Plan, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return five_convolutions(images.x.shape[1], plan.width)


def train(
    net: nn.Module, solver: Solver, images: Images, plan: Plan, seed: int, first: int = 0, last: int | None = None
) -> Iterator[int]:
    """Goes from epoch `first` to `last` of the plan, and stops after each; a solver that gives up ends the run."""
    groups = [{"params": [*net.parameters()], "weight_decay": plan.decay}, {"params": [*solver.parameters()]}]
    optimizer = torch.optim.Adam(groups, lr=plan.rate)
    steps = math.ceil(len(images) / plan.batch)
    for epoch in range(first, plan.epochs if last is None else last):
        draw = torch.Generator().manual_seed(1000 * seed + epoch)
        net.train()
        for step, rows in enumerate(torch.randperm(len(images), generator=draw).split(plan.batch)):
            for group in optimizer.param_groups:
                group["lr"] = plan.rate * (1 + math.cos(math.pi * (epoch + step / steps) / plan.epochs)) / 2
            flipped = (torch.rand(len(rows), generator=draw) < 0.5).view(-1, 1, 1, 1)
            x = images.floats(rows)
            x = torch.where(flipped, x.flip(-1), x).contiguous(memory_format=torch.channels_last)
            try:
                loss = solver(net(x).squeeze(-1), images.labels[rows])
            except SetpointError:
                return
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield epoch


@torch.no_grad()
def scores_of(net: nn.Module, images: Images) -> Tensor:
    net.eval()
    parts = torch.arange(len(images)).split(500)
    return torch.cat([net(images.floats(rows).contiguous(memory_format=torch.channels_last)) for rows in parts])[:, 0]


class BestEpoch:
    """The epoch that is best by one ask on validation rows, ties to the earlier."""

    def __init__(self, problem: sp.Problem) -> None:
        self.problem = problem
        self.epoch, self.value, self.state = -1, math.nan, State()

    def look(self, epoch: int, state: State, scores: Tensor, labels: Tensor) -> None:
        value = sp.evaluate(self.problem, scores, labels).objective
        sign = 1 if self.problem.maximize else -1
        if self.epoch < 0 or sign * value > sign * self.value:
            self.epoch, self.value, self.state = epoch, value, state


class Runs:
    """All trainings on the parts of one seed. No method sees test rows before it is judged."""

    def __init__(self, parts: dict[str, Images], plan: Plan, seed: int) -> None:
        self.parts, self.plan, self.seed = parts, plan, seed
        # Several asks often choose the same epoch; it is scored once.
        self._scored: dict[int, tuple[State, dict[str, Tensor]]] = {}

    def weighted(
        self, asks: list[str], weight: float | None, plan: Plan | None = None
    ) -> tuple[dict[str, BestEpoch], dict[str, BestEpoch], State, float]:
        """Cross-entropy: the best epochs after and before the half, the state half-way, and seconds."""
        plan = plan or self.plan
        net, start = fresh(self.parts["train"], plan, self.seed), time.process_time()
        after, before = ({ask: BestEpoch(sp.ask(ask)) for ask in asks} for _ in range(2))
        half = State()
        for epoch in train(net, sp.CrossEntropy(weight), self.parts["train"], plan, self.seed):
            self._look(epoch, net, after if epoch >= plan.warm else before)
            if epoch == plan.warm - 1:
                half = copy.deepcopy(net.state_dict())
        return after, before, half, time.process_time() - start

    def half_way(self) -> State:
        """The state of plain cross-entropy that the others take over."""
        net = fresh(self.parts["train"], self.plan, self.seed)
        for _ in train(net, sp.CrossEntropy(), self.parts["train"], self.plan, self.seed, last=self.plan.warm):
            pass
        return copy.deepcopy(net.state_dict())

    def taken_over(self, ask: str, criterion: Criterion, half: State) -> tuple[BestEpoch, float]:
        """The second half by another criterion."""
        net, start = self.net(half), time.process_time()
        best = BestEpoch(sp.ask(ask))
        solver = criterion(best.problem, net)
        for epoch in train(net, solver, self.parts["train"], self.plan, self.seed, first=self.plan.warm):
            self._look(epoch, net, {ask: best})
        return best, time.process_time() - start

    def _look(self, epoch: int, net: nn.Module, best: dict[str, BestEpoch]) -> None:
        on = self.parts["validation"]
        scores, state = scores_of(net, on), copy.deepcopy(net.state_dict())
        for one in best.values():
            one.look(epoch, state, scores, on.labels)

    def net(self, state: State) -> nn.Sequential:
        net = fresh(self.parts["train"], self.plan, self.seed)
        net.load_state_dict(state)
        return net

    def refitted(self, best: BestEpoch) -> tuple[State, bool, float]:
        """The last layer of a trained net, re-fitted on validation rows: what `sp.fit` does with a network."""
        net, start = self.net(best.state), time.process_time()
        on = self.parts["validation"]
        x = on.floats().contiguous(memory_format=torch.channels_last)
        row = fit_proximal_head(net, best.problem, sp.Batches(x, on.labels, batch_size=500), 0)
        return net.state_dict(), bool(row and row["kept"]), time.process_time() - start

    def judged(self, problem: sp.Problem, state: State) -> dict[str, float]:
        """On test rows: at the best cut of their own curve, and at the threshold set on calibration rows."""
        known = self._scored.get(id(state))
        if known is None:
            net = self.net(state)
            known = state, {part: scores_of(net, self.parts[part]) for part in ("calibration", "test")}
            self._scored[id(state)] = known
        scores, labels = known[1]["test"], self.parts["test"].labels
        found = sp.evaluate(problem, scores, labels).objective
        if problem.over is not None:
            return {"test": float(mcclish(torch.tensor(found), problem.over.low, problem.over.high))}
        set_on = self.parts["calibration"].labels
        point = sp.calibrate(problem, known[1]["calibration"], set_on).judge(scores, labels)
        return {"test": found, "at threshold": point.objective, "fpr": point.rates["fpr"]}


def row_of(runs: Runs, best: BestEpoch, seconds: float) -> dict[str, Any]:
    """What the journal keeps of a finished training."""
    if best.epoch < 0:
        return {"failed": "the solver gave up before the end of an epoch", "seconds": seconds}
    figures = {"validation": best.value, "epoch": best.epoch + 1, **runs.judged(best.problem, best.state)}
    return {**figures, "seconds": seconds}
