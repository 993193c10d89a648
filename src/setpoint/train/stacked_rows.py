"""Linear recipes on several sets of rows at once, such as the folds of a cross-fit.

On small tables a step takes longer in Python than in numbers. Steps of all sets are therefore taken together: the
products with the rows set by set, and everything else as one operation. The result of a set does not depend on the
others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem
from setpoint.train.class_weights import deciding_bound
from setpoint.train.newton import squares

#: The factors of the curvature of each set: matrices and the order of their rows.
Factors = tuple[Tensor, Tensor]
#: To which share of the loss a fit is made.
TOLERANCE = 1e-10
#: The pace of fits that only look for the class weight.
SEARCHING = 10.0


class StackedRows:
    """Several sets of rows, whose last column is 1.

    Shorter sets are filled up with rows that weigh nothing, and narrower ones with columns of 0 before the last, whose
    parameters stay at 0.
    """

    def __init__(self, sets: Sequence[Rows]) -> None:
        self.sizes = [len(rows.labels) for rows in sets]
        self.features = [rows.x.shape[1] - 1 for rows in sets]
        self.longest, self.width = max(self.sizes), max(self.features) + 1
        self.sets = [self._widened(rows) for rows in sets]
        self.labels = self.filled([rows.labels.double() for rows in sets])
        self.weights = self.filled([rows.weights_or_ones.double() for rows in sets])
        self._backwards = [rows.x.T for rows in self.sets]

    def _widened(self, rows: Rows) -> Rows:
        more = self.width - rows.x.shape[1]
        if not more:
            return rows
        return replace(rows, x=torch.cat([F.pad(rows.x[:, :-1], (0, more)), rows.x[:, -1:]], dim=1))

    def own(self, theta: Tensor, place: int) -> Tensor:
        """The parameters of one set, without those of columns that it was filled up with."""
        return torch.cat([theta[place, : self.features[place]], theta[place, -1:]])

    def filled(self, each: Sequence[Tensor]) -> Tensor:
        """The values of all sets, `(sets, longest)`, with 0 behind shorter ones."""
        return torch.stack([F.pad(values, (0, self.longest - len(values))) for values in each])

    def scores(self, theta: Tensor) -> Tensor:
        """The scores of all rows by the parameters of their set, `(sets, longest)`."""
        found = theta.new_zeros(len(self.sets), self.longest)
        for rows, own, out, size in zip(self.sets, theta, found, self.sizes):
            torch.mv(rows.x, own, out=out[:size])
        return found

    def back(self, values: Tensor) -> Tensor:
        """The sum over the rows of each set of its values times the features, `(sets, width)`."""
        found = values.new_empty(len(self.sets), self.width)
        for x, own, out, size in zip(self._backwards, values, found, self.sizes):
            torch.mv(x, own[:size], out=out)
        return found

    def mean(self, values: Tensor) -> Tensor:
        """The mean over the rows of each set, `(sets,)`."""
        return values.sum(1) / torch.tensor(self.sizes, dtype=torch.float64)

    def class_weights(self, ratios: Tensor) -> Tensor:
        """Weights of mean 1 in each set, with positives so many times as heavy."""
        weights = torch.where(self.labels > 0, ratios.unsqueeze(-1) * self.weights, self.weights)
        return weights / self.mean(weights).unsqueeze(-1)

    def cross_entropy(
        self, weights: Tensor, start: Tensor | None = None, known: Factors | None = None, pace: float = torch.inf
    ) -> tuple[Tensor, Factors]:
        """Ridge logistic regression on each set, to convergence, by Newton's method, and its last curvatures.

        A curvature, the costly part of a step, is used again as long as each step shrinks what is left to gain by the
        factor `pace`. The first step has the `known` curvatures.
        """
        ridge = self.mean(weights)
        pull = ridge.unsqueeze(-1).repeat(1, self.width)
        pull[:, -1] = 1e-9
        theta = torch.zeros_like(pull) if start is None else start.clone()

        def cost(scores: Tensor, at: Tensor) -> Tensor:
            entropy = (weights * (F.softplus(scores) - self.labels * scores)).sum(1)
            return entropy + ridge * at[:, :-1].square().sum(1) / 2

        scores = self.scores(theta)
        value, left = cost(scores, theta), torch.full_like(ridge, torch.inf)
        going = torch.ones(len(theta), dtype=torch.bool)
        factors = known
        for _ in range(60):
            passed = torch.sigmoid(scores)
            slope = self.back(weights * (passed - self.labels)) + pull * theta
            stale = going
            if factors is not None:
                move = torch.linalg.lu_solve(*factors, slope.unsqueeze(-1)).squeeze(-1)
                gain = (slope * move).sum(1)
                near = going & (gain <= TOLERANCE * value.abs())
                # So near the minimum the last curvature is good enough.
                theta = torch.where(near.unsqueeze(-1), theta - move, theta)
                going = going & ~near
                stale = going & ~(gain * pace <= left)
            if not bool(going.any()):
                break
            if factors is None or bool(stale.any()):
                factors = self._renewed(weights * passed * (1 - passed), pull, stale, factors)
                move = torch.linalg.lu_solve(*factors, slope.unsqueeze(-1)).squeeze(-1)
                gain = (slope * move).sum(1)
            left, move = gain, move * going.unsqueeze(-1)
            moved, length = self.scores(move), torch.ones_like(gain)
            while True:
                along = length.unsqueeze(-1)
                after = cost(scores - along * moved, theta - along * move)
                short = going & (after > value - 1e-4 * length * gain) & (length > 1e-6)
                if not bool(short.any()):
                    break
                length = torch.where(short, length / 2, length)
            theta, scores = theta - along * move, scores - along * moved
            going = going & (value - after > TOLERANCE * value.abs())
            value = after
        assert factors is not None
        return theta, factors

    def curvatures(self, bends: Tensor, pull: Tensor) -> Factors:
        """The factors of x' diag(bends) x + diag(pull) of each set."""
        return self._renewed(bends, pull, torch.ones(len(self.sets), dtype=torch.bool), None)

    def _renewed(self, bends: Tensor, pull: Tensor, stale: Tensor, known: Factors | None) -> Factors:
        """The factors of the curvature of each set, anew where it is stale."""
        places = stale.nonzero().squeeze(-1)
        curvature = torch.diag_embed(pull[places])
        for row, place in enumerate(places.tolist()):
            curvature[row] += squares(self.sets[place].x, bends[place, : self.sizes[place]])
        made = torch.linalg.lu_factor(curvature)
        if known is None:
            return made[0], made[1]
        factors = known[0].clone(), known[1].clone()
        for old, new in zip(factors, made):
            old[places] = new
        return factors

    def match(self, problem: Problem, plain: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy weighted so that threshold 0 meets the bound on each set, and these weights, from the plain."""
        bound, number = deciding_bound(problem), len(self.sets)
        if bound is None:
            return plain, self.class_weights(torch.ones(number, dtype=torch.float64))
        rate = bound.quantity
        assert isinstance(rate, Rate)
        low, high = (torch.full((number,), math.log(end), dtype=torch.float64) for end in (1e-6, 1e6))
        positive, negative = self.weights * self.labels, self.weights * (1 - self.labels)
        theta, known = plain, None
        for _ in range(20):
            middle = (low + high) / 2
            weights = self.class_weights(middle.exp())
            theta, known = self.cross_entropy(weights, theta, known, SEARCHING)
            passes = self.scores(theta) > 0
            tp, fp = (positive * passes).sum(1), (negative * passes).sum(1)
            counts = torch.stack([tp, fp, positive.sum(1) - tp, negative.sum(1) - fp], dim=1)
            # More weight on positives flags more rows.
            lower = (rate(counts) > bound.bound) == (rate.direction > 0)
            low, high = torch.where(lower, low, middle), torch.where(lower, middle, high)
        return self.cross_entropy(weights, theta)[0], weights
