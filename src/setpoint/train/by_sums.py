"""Linear models on tables that are not in memory: Newton's method on exact sums over the chunks of the table.

Cost, slope and curvature of the cross-entropy are sums over rows. Each chunk gives its own, in whichever process reads
it, and they are added up in the order of the file: the result is the same, to the last bit, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setpoint.data.batch import resident
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.data.standardise import AT_ONCE, Standardiser
from setpoint.problem.problem import Problem
from setpoint.train.class_weights import class_weights, ratio_for
from setpoint.train.full_batch import linear_layer, set_layer
from setpoint.train.linear import MATCH_ROWS, cross_entropy, match, some_rows
from setpoint.train.method import Trained, trained_once
from setpoint.train.work import Work

#: Newton stops when a step lowers the cost by less than this share of it.
TOLERANCE = 1e-10
MOST_STEPS = 40


@dataclass(frozen=True)
class Sums:
    """Choose cross-entropy with a ridge of 1 for a linear model, trained by exact sums over all rows of a stream.

    Args:
        pos_weight: How many negatives a positive counts for. "matched" takes the weight at which a probability of 0.5
            meets the bound of the ask, on a sample of the training rows; "balanced" gives both classes the same weight.

    Example:
        >>> from setpoint.train.by_sums import Sums
        >>> Sums("balanced").pos_weight
        'balanced'
    """

    pos_weight: float | Literal["balanced", "matched"] | None = "matched"


@dataclass(frozen=True)
class BySums:
    """Train a linear model by sums over the chunks of a stream.

    Args:
        make: Gives the model: one linear layer with one output.
        choice: The class weight.
    """

    make: Callable[[], nn.Module]
    choice: Sums

    expected_rows: ClassVar[int] = 1

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why there is nothing to sum, or None: the rows must come from a stream that wants it."""
        wanted = getattr(data.train, "by_sums", False) and resident(data.in_memory) is not None
        return None if wanted else "sums over chunks need a table read with --stream or --workers"

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Choose the class weight on the sample in memory, then take Newton steps on all rows."""
        model = linear_layer(self.make(), self.choice)
        sample = resident(data.in_memory)
        assert sample is not None
        scaling = Standardiser.of(sample.x)
        some = some_rows(replace(sample, x=scaling.with_ones(sample.x), labels=sample.labels.double()), MATCH_ROWS)
        ratio, start = work.once("start", lambda: _start(problem, some, self.choice))
        theta = work.once("theta", lambda: newton_by_sums(data.train, scaling, ratio, start))
        set_layer(model, *scaling.undo(theta))
        return replace(trained_once(self, model, problem, replace(data, train=data.in_memory), work), settled=self)


def _start(problem: Problem, rows: Rows, choice: Sums) -> tuple[float, Tensor]:
    """The class weight, and the solution on a sample to start from."""
    if choice.pos_weight == "matched":
        theta, weights = match(problem, rows)
        positive = rows.labels > 0
        return float(weights[positive][0] / weights[~positive][0]), theta
    ratio = ratio_for(choice.pos_weight, rows)
    return ratio, cross_entropy(rows, class_weights(rows, ratio))


@dataclass(frozen=True)
class Totals:
    """Sums over rows at some parameters: cost, slope and curvature; `+` joins those of two chunks."""

    cost: Tensor
    slope: Tensor
    curvature: Tensor
    #: The sum of the weights, and the number of rows.
    weight: Tensor
    rows: int

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.cost + other.cost, self.slope + other.slope, self.curvature + other.curvature,
            self.weight + other.weight, self.rows + other.rows,
        )  # fmt: skip


def chunk_totals(scaling: Standardiser, ratio: float, theta: Tensor, rows: Rows) -> Totals:
    """The sums over the rows of a chunk; a positive weighs `ratio`, a negative 1."""
    width = len(theta)
    total = Totals(theta.new_zeros(()), theta.new_zeros(width), theta.new_zeros(width, width), theta.new_zeros(()), 0)
    for x, labels in zip(rows.x.split(AT_ONCE), rows.labels.double().split(AT_ONCE)):
        ones, weights = scaling.with_ones(x), torch.where(labels > 0, ratio, 1.0).double()
        scores = ones @ theta
        passed = torch.sigmoid(scores)
        bent = (weights * passed * (1 - passed)).unsqueeze(-1) * ones
        total += Totals(
            (weights * (F.softplus(scores) - labels * scores)).sum(), ones.T @ (weights * (passed - labels)),
            ones.T @ bent, weights.sum(), len(labels),
        )  # fmt: skip
    return total


def newton_by_sums(loader: Any, scaling: Standardiser, ratio: float, start: Tensor) -> Tensor:
    """The minimum of sum a_i CE_i + 1/2 |theta|^2 over all rows, the weights a_i of mean 1 and the bias free.

    Each step is one pass over the table; a step that does not lower the cost enough is halved.
    """
    pull = torch.ones_like(start)
    pull[-1] = 1e-9

    def at(theta: Tensor) -> tuple[float, Tensor, Tensor]:
        parts = loader.map(partial(chunk_totals, scaling, ratio, theta))
        total = next(parts)
        for part in parts:
            total += part
        mean = total.weight / total.rows
        cost = total.cost / mean + (theta[:-1] @ theta[:-1]) / 2
        return float(cost), total.slope / mean + pull * theta, total.curvature / mean + torch.diag(pull)

    theta = start
    cost, slope, curvature = at(theta)
    for _ in range(MOST_STEPS):
        move: Tensor = torch.linalg.solve(curvature, slope)
        gain, length = float(slope @ move), 1.0
        if gain <= TOLERANCE * abs(cost):
            # So near the minimum, a last step without another look.
            return theta - move
        while True:
            there = theta - length * move
            after = at(there)
            if after[0] <= cost - 1e-4 * length * gain or length < 1e-6:
                break
            length /= 2
        lowered, theta, (cost, slope, curvature) = cost - after[0], there, after
        if lowered <= TOLERANCE * abs(cost):
            break
    return theta
