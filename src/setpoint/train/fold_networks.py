"""The networks of a cross-fit, trained by cross-entropy, all folds at once.

A step of a small network takes longer in Python than in numbers. The first fold is trained alone, because it may tell
that no other is needed; the others take their steps together, in two groups beside each other. A network does not
depend on those beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.problem.problem import Problem
from setpoint.train.boosting import fewer_to_judge
from setpoint.train.method import Trained, trained_once
from setpoint.train.models import drawn, mlp
from setpoint.train.stacked_rows import StackedRows
from setpoint.train.work import Work

#: The settings of Adam, as in the study of networks.
RATE, DECAY, BETAS, EPSILON = 0.003, 1e-4, (0.9, 0.999), 1e-8

State = dict[str, Tensor]


@dataclass(frozen=True)
class NetworkPlan:
    """How networks are trained.

    Args:
        epochs: The largest number of passes over the rows.
        patience: Stop after this many epochs without a smaller loss on the fold.
        batch: The rows per step.
        ratio: The number of negatives that a positive counts for.
        seed: The seed of the first fold; that of each further fold is one higher.
    """

    epochs: int
    patience: int
    batch: int
    ratio: float
    seed: int


class _Group:
    """Networks of the same shape that are under way: their parameters one below the other, and the state of Adam."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.shapes = {name: value.shape for name, value in models[0].state_dict().items()}
        each = [torch.cat([value.flatten() for value in model.state_dict().values()]) for model in models]
        self.flat = torch.stack(each)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.taken = torch.zeros(len(models), 1)

    def keep(self, places: Tensor) -> None:
        """Go on with some of the networks."""
        self.flat, self.mean, self.square = self.flat[places], self.mean[places], self.square[places]
        self.taken = self.taken[places]

    def parameters(self, flat: Tensor) -> list[Tensor]:
        """Each parameter of all networks, as a view: weights `(networks, out, in)`, biases `(networks, 1, out)`."""
        parts = flat.split([math.prod(shape) for shape in self.shapes.values()], dim=1)
        return [
            part.unflatten(1, shape) if len(shape) == 2 else part.unsqueeze(1)
            for part, shape in zip(parts, self.shapes.values())
        ]

    def state(self, place: int) -> State:
        """The `state_dict` of one network."""
        own = self.flat[place].clone().split([math.prod(shape) for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), own)}

    def layers(self, x: Tensor) -> list[Tensor]:
        """The input, the values of each hidden layer, and the scores `(networks, rows, 1)`."""
        parameters, values = self.parameters(self.flat), [x]
        for place in range(0, len(parameters), 2):
            weight, bias = parameters[place : place + 2]
            after = torch.baddbmm(bias, values[-1], weight.transpose(1, 2))
            values.append(after if place == len(parameters) - 2 else after.relu_())
        return values

    def step(self, x: Tensor, labels: Tensor, weights: Tensor, rate: float) -> None:
        """One step of Adam on one batch per network; a network whose rows weigh nothing stays."""
        *values, scores = self.layers(x)
        pushed = (torch.sigmoid(scores) - labels.unsqueeze(-1)) * weights.unsqueeze(-1)
        parameters, slopes = self.parameters(self.flat), list[Tensor]()
        for place in range(len(values) - 1, -1, -1):
            slopes[:0] = [torch.bmm(pushed.transpose(1, 2), values[place]).flatten(1), pushed.sum(1)]
            if place:
                pushed = torch.bmm(pushed, parameters[2 * place]).mul_(values[place] > 0)
        slope = torch.cat(slopes, dim=1).add_(self.flat, alpha=DECAY)
        has = (weights > 0).any(1, keepdim=True)
        self.taken = self.taken + has
        mean = torch.lerp(self.mean, slope, 1 - BETAS[0])
        square = (self.square * BETAS[1]).addcmul_(slope, slope, value=1 - BETAS[1])
        scale = square.sqrt().div_((1 - BETAS[1] ** self.taken).sqrt_()).add_(EPSILON)
        flat = self.flat - (mean / scale).mul_(rate / (1 - BETAS[0] ** self.taken))
        if not bool(has.all()):
            mean, square, flat = (
                torch.where(has, new, old) for new, old in ((mean, self.mean), (square, self.square), (flat, self.flat))
            )
        self.mean, self.square, self.flat = mean, square, flat


class FoldNetworks:
    """The network of each fold, trained on all rows but those of the fold, and stopped by these.

    Args:
        rows: All rows.
        folds: The number of the fold of each row.
        plan: How to train.
    """

    def __init__(self, rows: Rows, folds: Tensor, plan: NetworkPlan) -> None:
        self.rows, self.folds, self.plan = rows, folds, plan
        self.x, self.labels = rows.x.float(), rows.labels.float()
        self.weights = rows.weights_or_ones.float()
        # Here, because drawing sets the random state of all threads.
        self.starts = [drawn(mlp, self.x.shape[1], plan.seed + fold) for fold in range(int(folds.max()) + 1)]

    def state(self, fold: int) -> State:
        """The `state_dict` of the network of a fold."""
        return self._first if fold == 0 else self._others[fold]

    @cached_property
    def _first(self) -> State:
        return self._train([0])[0]

    @cached_property
    def _others(self) -> dict[int, State]:
        # The same two groups on every machine, so that results do not depend on the number of cores.
        folds = list(range(1, int(self.folds.max()) + 1))
        groups = [group for group in (folds[::2], folds[1::2]) if group]
        with ThreadPoolExecutor(len(groups) or 1) as pool:
            found = pool.map(self._train, groups)
            return {fold: state for group, states in zip(groups, found) for fold, state in zip(group, states)}

    def _train(self, folds: list[int]) -> list[State]:
        plan, own = self.plan, [(self.folds != fold).nonzero().squeeze(-1) for fold in folds]
        group = _Group([self.starts[fold] for fold in folds])
        draws = [torch.Generator().manual_seed(plan.seed + fold) for fold in folds]
        judges = [_Judge(self, fold) for fold in folds]
        found: list[State] = [{} for _ in folds]
        least, best = [math.inf] * len(folds), [0] * len(folds)
        going = list(range(len(folds)))
        for epoch in range(plan.epochs):
            rate = RATE / 2 * (1 + math.cos(math.pi * epoch / plan.epochs))
            self._epoch(group, [own[k][torch.randperm(len(own[k]), generator=draws[k])] for k in going], rate)
            losses = _losses(group, [judges[k] for k in going])
            for place, k in enumerate(going):
                if losses[place] < least[k] or not epoch:
                    least[k], best[k], found[k] = losses[place], epoch, group.state(place)
            stay = [place for place, k in enumerate(going) if epoch - best[k] < plan.patience]
            if len(stay) < len(going):
                group.keep(torch.tensor(stay, dtype=torch.long))
                going = [going[place] for place in stay]
            if not going:
                break
        return found

    def _epoch(self, group: _Group, orders: list[Tensor], rate: float) -> None:
        """One pass over the rows of each network, in its order."""
        longest = max(len(order) for order in orders)
        order = torch.stack([F.pad(one, (0, longest - len(one))) for one in orders])
        is_row = torch.arange(longest) < torch.tensor([[len(one)] for one in orders])
        labels, weights = self.labels[order], self.weights[order] * is_row
        positives = (weights * labels).sum(1, keepdim=True)
        total = weights.sum(1, keepdim=True)
        # Class weights in the asked ratio, of mean 1 over the rows of each network.
        mean = (self.plan.ratio * positives + total - positives) / total
        heavy = weights * torch.where(labels > 0, self.plan.ratio, 1.0) / mean
        for start in range(0, longest, self.plan.batch):
            part = slice(start, start + self.plan.batch)
            size = weights[:, part].sum(1, keepdim=True)
            group.step(self.x[order[:, part]], labels[:, part], heavy[:, part] / torch.where(size > 0, size, 1), rate)


class _Judge:
    """The rows of a fold, which stop the training of its network."""

    def __init__(self, networks: FoldNetworks, fold: int) -> None:
        inside = networks.folds == fold
        self.x, self.labels = networks.x[inside], networks.labels[inside].double()
        self.weights = networks.weights[inside].double()


def _losses(group: _Group, judges: list[_Judge]) -> list[float]:
    """The mean cross-entropy of each network on its fold at the best scale and shift of the scores.

    Scores in the wrong order, or not finite, count as infinite losses.
    """
    longest = max(len(judge.x) for judge in judges)
    x = torch.stack([F.pad(judge.x, (0, 0, 0, longest - len(judge.x))) for judge in judges])
    scores = [s[: len(judge.x)].double() for s, judge in zip(group.layers(x)[-1].squeeze(-1), judges)]
    finite = [bool(own.isfinite().all()) for own in scores]
    scores = [own if ok else torch.zeros_like(own) for own, ok in zip(scores, finite)]
    columns = [own.unsqueeze(-1) for own in scores]
    scaled = [Standardiser.of(c, judge.weights).with_ones(c) for c, judge in zip(columns, judges)]
    stacked = StackedRows([Rows(own, judge.labels, judge.weights) for own, judge in zip(scaled, judges)])
    theta, _ = stacked.cross_entropy(stacked.weights)
    logits = stacked.scores(theta)
    entropy = stacked.weights * (F.softplus(logits) - stacked.labels * logits)
    mean = entropy.sum(1) / stacked.weights.sum(1)
    usable = torch.tensor(finite) & (theta[:, 0] > 0)
    return torch.where(usable, mean, torch.inf).tolist()


@dataclass(frozen=True)
class FoldNetwork:
    """The network of one fold as a method of a cross-fit."""

    networks: FoldNetworks
    fold: int

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """None: the rows are in memory."""
        return None

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """The trained network, judged on its fold and on some of the rows that it was trained on."""
        model = mlp(self.networks.x.shape[1])
        model.load_state_dict(work.once("network", lambda: self.networks.state(self.fold)))
        return trained_once(self, model, problem, fewer_to_judge(problem, data), work)
