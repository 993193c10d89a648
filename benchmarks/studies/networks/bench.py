"""The trainings of one set and split in the network study, each done once, and the scores that they lead to."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import setpoint as sp
from benchmarks.studies.networks.nets import (
    RATE,
    Loss,
    Parts,
    Shuffled,
    Trained,
    make_net,
    net_epochs,
    score,
    train,
    train_weighted,
    weighted_loss,
)

WEIGHTS = tuple(4.0**power for power in (0, -1, 1, -2, 2, -3, 3))
MEMBERS, FOLDS = 3, 5
#: Fine-tuning: a tenth of the rate, a sixth of the epochs, the running average at the end; nothing is chosen.
FINE_RATE, FINE_SHARE = RATE / 10, 1 / 6


@dataclass(frozen=True)
class Scores:
    """The logits of one model on the rows that it was not trained on, and the processor's seconds that it took."""

    held_out: Tensor
    calibration: Tensor
    test: Tensor
    seconds: float

    @classmethod
    def of(cls, model: nn.Module, parts: Parts, seconds: float) -> Scores:
        three = (parts.held_out, parts.calibration, parts.test)
        held_out, calibration, test = (score(model, part[0]) for part in three)
        return cls(held_out, calibration, test, seconds)

    @classmethod
    def mean(cls, several: list[Scores]) -> Scores:
        held_out, calibration, test = (torch.stack([getattr(one, part) for one in several]).mean(0) for part in
                                       ("held_out", "calibration", "test"))  # fmt: skip
        return cls(held_out, calibration, test, sum(one.seconds for one in several))


class Bench:
    """The trainings of one set and split, each done once."""

    def __init__(self, parts: Parts, seed: int, epochs: int | None = None) -> None:
        self.parts, self.seed = parts, 1000 * seed
        self.epochs = epochs or net_epochs(parts)
        self.nets: dict[tuple[float, int], Trained] = {}
        self.fine_tuned: dict[tuple[str, str, int], Scores] = {}
        self.refitted: dict[tuple[int, float, bool], Scores] = {}
        self.folded: dict[float, Scores] = {}
        self.fitted: dict[str, Scores] = {}

    def net(self, weight: float = 1.0, member: int = 0) -> Trained:
        if (weight, member) not in self.nets:
            self.nets[weight, member] = train_weighted(self.parts, weight, self.seed + member, self.epochs)
        return self.nets[weight, member]

    def scores(self, weight: float = 1.0, member: int = 0, average: bool = False) -> Scores:
        trained = self.net(weight, member)
        return Scores.of(trained.average if average else trained.model, self.parts, trained.seconds)

    def by_loss(self) -> Scores:
        """Plain cross-entropy whose epoch is that of the least loss itself, which minds how sure the scores are."""
        x, labels = self.parts.held_out
        trained = train(
            make_net(self.parts, self.seed), Shuffled(self.parts, self.seed), weighted_loss(1.0, self.parts.train[1]),
            (x, lambda scores: float(F.binary_cross_entropy_with_logits(scores, labels))),
            epochs=self.epochs, patience=max(5, self.epochs // 4),
        )  # fmt: skip
        return Scores.of(trained.model, self.parts, trained.seconds)

    def best_weight(self, problem: sp.Problem, average: bool = False) -> tuple[float, Scores]:
        """The class weight that is best on held-out rows by the exact metric; ties to the nearest to 1."""
        tried = {weight: self.scores(weight, average=average) for weight in WEIGHTS}
        sign, labels = 1 if problem.maximize else -1, self.parts.held_out[1]
        best = max(tried, key=lambda weight: sign * objective(problem, tried[weight].held_out, labels))
        return best, replace(tried[best], seconds=sum(one.seconds for one in tried.values()))

    def best_weight_on_all_rows(self, problem: sp.Problem, annealed: bool) -> Scores:
        """The grid, and then once more on held-out rows too under the weight that it chose."""
        weight, grid = self.best_weight(problem, average=not annealed)
        again = self.all_rows(0, weight, annealed)
        return replace(again, seconds=grid.seconds + again.seconds - self.net(weight).seconds)

    def mean(self, members: int, average: bool = False) -> Scores:
        return Scores.mean([self.scores(member=member, average=average) for member in range(members)])

    @cached_property
    def every_row(self) -> tuple[Tensor, Tensor]:
        """Training and held-out rows together."""
        x, labels = (torch.cat(pair) for pair in zip(self.parts.train, self.parts.held_out))
        return x, labels

    def all_rows(self, member: int = 0, weight: float = 1.0, annealed: bool = False) -> Scores:
        """Once more from the same start on held-out rows too, for as many epochs as were best.

        The running average of the same cosine, cut off there; or the end of a cosine that falls to zero there.
        """
        key = (member, weight, annealed)
        if key not in self.refitted:
            first = self.net(weight, member)
            parts = replace(self.parts, train=self.every_row)
            loss = weighted_loss(weight, self.every_row[1])
            best, best_average = first.best_after
            trained = train(
                make_net(parts, self.seed + member), Shuffled(parts, self.seed + member), loss, None,
                epochs=best if annealed else self.epochs, stop_after=best if annealed else best_average,
            )  # fmt: skip
            model = trained.model if annealed else trained.average
            self.refitted[key] = Scores.of(model, parts, first.seconds + trained.seconds)
        return self.refitted[key]

    def folds(self, weight: float = 1.0) -> Scores:
        """Five nets, each stopped early on another fifth of training and held-out rows, which so are all trained on."""
        if weight in self.folded:
            return self.folded[weight]
        x, labels = self.every_row
        turn, first = torch.arange(len(labels)) % FOLDS, len(self.parts.train[1])
        held_out, several = torch.zeros(len(labels) - first), []
        for fold in range(FOLDS):
            inside, outside = ((x[rows], labels[rows]) for rows in (turn != fold, turn == fold))
            parts = replace(self.parts, train=inside, held_out=outside)
            net = train_weighted(parts, weight, self.seed + fold, self.epochs)
            several.append(Scores.of(net.model, parts, net.seconds))
            mine = turn[first:] == fold
            held_out[mine] = several[-1].held_out[len(outside[1]) - int(mine.sum()) :]
        calibration, test = (torch.stack([getattr(own, part) for own in several]).mean(0) for part in
                             ("calibration", "test"))  # fmt: skip
        self.folded[weight] = Scores(held_out, calibration, test, sum(own.seconds for own in several))
        return self.folded[weight]

    @cached_property
    def teacher(self) -> tuple[Tensor, Tensor, float]:
        """The mean logit of the members on training and held-out rows, and what they took."""
        nets = [self.net(member=member) for member in range(MEMBERS)]
        own = [torch.stack([score(net.average, part[0]) for net in nets]).mean(0) for part in
               (self.parts.train, self.parts.held_out)]  # fmt: skip
        return own[0], own[1], sum(net.seconds for net in nets)

    def threshold(self, problem: sp.Problem, held_out: Tensor) -> float:
        found = sp.evaluate(problem, held_out, self.parts.held_out[1]).threshold
        return float(found) if isinstance(found, float) and math.isfinite(found) else 0.0

    def student(self, problem: sp.Problem | None) -> Scores:
        """One new net, taught by the mean of the members; tilted to their threshold if there is a problem."""
        on_train, on_held_out, seconds = self.teacher
        shift = 0.0 if problem is None else self.threshold(problem, on_held_out)
        targets, judged = torch.sigmoid(on_train - shift), torch.sigmoid(on_held_out - shift)
        trained = train(
            make_net(self.parts, self.seed + 50), Shuffled(self.parts, self.seed + 50),
            lambda scores, _, rows: F.binary_cross_entropy_with_logits(scores, targets[rows]),
            (self.parts.held_out[0], lambda scores: float(F.binary_cross_entropy_with_logits(scores, judged))),
            epochs=self.epochs, patience=max(5, self.epochs // 4),
        )  # fmt: skip
        return Scores.of(trained.average, self.parts, seconds + trained.seconds)

    def tune(self, problem: sp.Problem, name: str, make: Callable[[int], Loss], member: int = 0) -> Scores:
        """Go on from a converged net at a small rate; the running average at the end."""
        key = (str(problem), name, member)
        if key not in self.fine_tuned:
            start = self.net(member=member)
            model, batches = copy.deepcopy(start.model), Shuffled(self.parts, self.seed + 70 + member)
            epochs = max(2, round(FINE_SHARE * self.epochs))
            loss = make(epochs * len(batches))
            trained = train(model, batches, loss, None, epochs=epochs, rate=FINE_RATE)
            self.fine_tuned[key] = Scores.of(trained.average, self.parts, start.seconds + trained.seconds)
        return self.fine_tuned[key]


def objective(problem: sp.Problem, scores: Tensor, labels: Tensor) -> float:
    return sp.evaluate(problem, scores, labels).objective
