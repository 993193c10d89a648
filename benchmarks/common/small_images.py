"""Few images, short runs: loading, drawing and training, as the studies on CIFAR-10 share them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.common.sets import decode, floats
from setpoint.solve.sample_prices import SamplePriced
from setpoint.solve.solver import Solver

TRAINING_IMAGES = 50_000
#: Scores of the held-out images, to the figure by which an epoch is chosen; larger is better.
Judge = Callable[[Tensor], float]


@dataclass(frozen=True)
class Images:
    """Pixels (uint8, channels first) and labels of one part."""

    x: Tensor
    labels: Tensor

    def part(self, rows: Tensor) -> Images:
        return Images(self.x[rows], self.labels[rows])


@dataclass(frozen=True)
class Plan:
    """How long a net is trained, at what pace, by how many pixels at most its images are moved, and if mirrored."""

    epochs: int = 20
    width: int = 8
    batch: int = 64
    rate: float = 6e-3
    moved: int = 2
    mirrored: bool = True


@cache
def cifar10(data: str) -> tuple[Images, Images]:
    """The 50,000 training and 10,000 test images, with class numbers."""
    whole = Images(*decode(data))
    rows = torch.arange(len(whole.labels))
    return whole.part(rows[:TRAINING_IMAGES]), whole.part(rows[TRAINING_IMAGES:])


def shuffled(classes: Tensor, seed: int) -> list[Tensor]:
    """The rows of each class, in the order that a seed draws."""
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    return [order[classes[order] == number] for number in range(int(classes.max()) + 1)]


def channels_last(x: Tensor) -> Tensor:
    return floats(x).contiguous(memory_format=torch.channels_last)


def with_mirrored(x: Tensor, margin: int = 0) -> Tensor:
    """All images and after them their mirror images, channels last, within a margin of their own pixels."""
    both = torch.cat([x, x.flip(-1)])
    return floats(F.pad(both, [margin] * 4, mode="reflect").permute(0, 2, 3, 1)).contiguous()


@torch.no_grad()
def scores_of(net: nn.Module, x: Tensor) -> Tensor:
    """`(n,)` of a net with one output, `(n, K)` of one with K."""
    net.eval()
    return torch.cat([net(channels_last(part)) for part in x.split(500)]).squeeze(-1)


def train(
    net: nn.Module, images: Images, held_out: Tensor, solver: Solver, judge: Judge, plan: Plan, seed: int
) -> float:
    """Adam on a cosine; the net is left at the epoch that `judge` likes best, whose figure is returned.

    Images are mirrored, each by chance, and moved, all of a batch alike, as far as the plan says so.
    """
    net.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=plan.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.epochs)
    draw, both = torch.Generator().manual_seed(seed), with_mirrored(images.x, plan.moved)
    side = images.x.shape[-1]
    best, state = -float("inf"), net.state_dict()
    for _ in range(plan.epochs):
        net.train()
        for rows in torch.randperm(len(images.labels), generator=draw).split(plan.batch):
            mirrored = (torch.rand(len(rows), generator=draw) < 0.5) & plan.mirrored
            down, right = torch.randint(2 * plan.moved + 1, (2,), generator=draw).tolist() if plan.moved else (0, 0)
            seen = both[:, down : down + side, right : right + side]
            x = seen[rows + len(images.labels) * mirrored].permute(0, 3, 1, 2)
            loss = solver(net(x).squeeze(-1), images.labels[rows], index=rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        found = judge(scores_of(net, held_out))
        if isinstance(solver, SamplePriced):
            solver.step_metric(found)
        if found > best:
            best, state = found, copy.deepcopy(net.state_dict())
    net.load_state_dict(state)
    return best
