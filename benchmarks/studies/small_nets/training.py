"""Trainings of one start: weighted cross-entropy, and the same that goes on by implicit thresholds after a quarter.

Every training of a cell has the same initial parameters, the same batches in the same order, and Adam on a cosine. The
running average of the parameters is what is judged; it forgets after a tenth of the steps.
"""

from __future__ import annotations

import copy
import itertools
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.data import Parts
from setpoint.solve.solver import Solver

BATCH, RATE, DECAY = 256, 3e-3, 1e-4
WARM, MEMORY = 0.25, 32_768


def make_net(parts: Parts, widths: tuple[int, ...], seed: int) -> nn.Module:
    """Linear layers of these widths for tables, three strided convolutions of these widths for images."""
    torch.manual_seed(seed)
    if not parts.is_image:
        sizes = [parts.train[0].shape[1], *widths]
        layers = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
    channels = [1, *widths]
    stages = [
        layer
        for a, b in itertools.pairwise(channels)
        for layer in (nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
    ]
    return nn.Sequential(*stages, nn.Flatten(), nn.Linear(16 * channels[-1], 1))


@torch.no_grad()
def score(model: nn.Module, x: Tensor) -> Tensor:
    model.eval()
    return torch.cat([model(some).squeeze(-1) for some in x.split(2_000)])


@dataclass
class Run:
    """A training on its way; `fork` makes a second one that shares everything up to here."""

    parts: Parts
    widths: tuple[int, ...]
    steps: int
    seed: int
    done: int = 0
    seconds: float = 0.0
    #: Scores and labels of the latest batches, as many as the memory of implicit thresholds holds.
    latest: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    scored: tuple[Tensor, Tensor] | None = None

    def __post_init__(self) -> None:
        self.model = make_net(self.parts, self.widths, self.seed)
        rate = RATE if not self.parts.is_image else RATE / 3
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate, weight_decay=DECAY, fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, self.steps)
        self.average = copy.deepcopy(self.model)
        rows, draw = len(self.parts.train[1]), torch.Generator().manual_seed(self.seed)
        passes = -(-self.steps * BATCH // rows)
        # Whole passes in random order, cut into batches; huge tables need no more than the rows that are seen.
        orders = [torch.randperm(rows, generator=draw) for _ in range(passes)]
        self.order = torch.cat(orders)[: self.steps * BATCH]

    def go(self, solver: Solver, until: int) -> Run:
        self.scored = None
        started = time.process_time()
        x, labels = self.parts.train
        pairs = [
            (mean, own) for mean, own in zip(_values(self.average), _values(self.model)) if mean.is_floating_point()
        ]
        means, owns = [mean for mean, _ in pairs], [own for _, own in pairs]
        keep = 1 - 10 / self.steps
        self.model.train()
        while self.done < until:
            rows = self.order[BATCH * self.done : BATCH * (self.done + 1)]
            scores, truth = self.model(x[rows]).squeeze(-1), labels[rows]
            self.optimizer.zero_grad()
            solver(scores, truth).backward()
            self.optimizer.step()
            self.schedule.step()
            self.done += 1
            torch._foreach_lerp_(means, owns, 1 - min(keep, self.done / (self.done + 10)))
            self.latest = [*self.latest[1 - MEMORY // BATCH :], (scores.detach(), truth)]
        self.seconds += time.process_time() - started
        return self

    def fork(self) -> Run:
        return copy.deepcopy(self, {id(self.parts): self.parts, id(self.order): self.order})

    def scores(self) -> tuple[Tensor, Tensor]:
        """Of held-out and test rows, by the running average; kept, since several asks look at them."""
        if self.scored is None:
            self.scored = score(self.average, self.parts.held_out[0]), score(self.average, self.parts.test[0])
        return self.scored


def _values(model: nn.Module) -> list[Tensor]:
    return [own.detach() for own in (*model.parameters(), *model.buffers())]


def anchored(problem: sp.Problem, weight: float, latest: list[tuple[Tensor, Tensor]]) -> Solver:
    """Implicit thresholds held back by weighted cross-entropy, with the memory of the warm phase."""
    implicit = sp.ImplicitThreshold(problem, temperature=1.0, memory=MEMORY)
    with torch.no_grad():
        for scores, labels in latest:
            implicit(scores, labels)
    return sp.losses.WithAnchor(implicit, sp.CrossEntropy(weight), strength=1.0)
