"""The augmented Lagrangian of critical classes: a base loss, and one price per sample on the pairs it loses.

Each positive j is asked to be above every negative by a margin, q_j = sum_k relu(margin - (f_j - f_k)) = 0:

    loss = base + mu / 2 * sum_j q_j^2 / (P N) + sum_j price_j q_j / (P N),    price_j += mu q_j

over the P positives and N negatives of the batch. The square makes the worst positive the dearest, hence low FPR at
high TPR; asked of each negative instead, r_k = sum_j relu(...), it makes for high TPR at low FPR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.measure.hinge_sums import HingeSums
from setpoint.measure.looks import may_look
from setpoint.measure.pairs import Hinge, pairs_per_negative, pairs_per_positive
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.counted import overflows
from setpoint.solve.sample_prices import Growth, SamplePriced
from setpoint.solve.solver import Solver
from setpoint.solve.with_slopes import with_slopes


class Side(Protocol):
    """Chooses the constrained samples, and says how much each of them pays against all others."""

    def constrained(self, labels: Tensor) -> Tensor: ...

    def pays(self, own: Tensor, others: Tensor, weights: Tensor | None, margin: float) -> Tensor: ...


@dataclass(frozen=True)
class PerPositive:
    """One constraint per positive, to be above all negatives: prefers low FPR at high TPR.

    Example:
        >>> import setpoint as sp
        >>> solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, side=sp.losses.PerPositive())
    """

    def constrained(self, labels: Tensor) -> Tensor:
        return labels > 0

    def pays(self, own: Tensor, others: Tensor, weights: Tensor | None, margin: float) -> Tensor:
        return pairs_per_positive(own, others, Hinge(margin), weights=weights)


@dataclass(frozen=True)
class PerNegative:
    """One constraint per negative, to be below all positives: prefers high TPR at low FPR.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.ask("minimize fnr where fpr <= 1%")
        >>> sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, problem=problem).side
        PerNegative()
    """

    def constrained(self, labels: Tensor) -> Tensor:
        return labels == 0

    def pays(self, own: Tensor, others: Tensor, weights: Tensor | None, margin: float) -> Tensor:
        return pairs_per_negative(others, own, Hinge(margin), weights=weights)


def side_for(problem: Problem | None) -> Side:
    """Constrain each negative if the problem is about the top of the list, else (and without a problem) each positive.

    `fpr <= 1%`, `tnr >= 99%`, `flagged == 2%`, `precision >= 90%` and areas over low FPR are about the top;
    `recall >= 95%` and `fnr <= 5%` are not, nor is a bound that leaves half of everything to be flagged.
    """
    for bound in () if problem is None else problem.bounds:
        rate = bound.quantity.rate if isinstance(bound.quantity, Gap) else bound.quantity
        if not isinstance(rate, Rate):
            continue
        about_positives = rate.whole[1] == 0 and rate.whole[3] == 0
        flags = bound.bound if rate.direction > 0 else 1 - bound.bound
        if not about_positives and (not rate.has_fixed_whole or flags < 0.5):
            return PerNegative()
    return PerPositive()


class AugmentedLagrangian(SamplePriced):
    """Any base loss with one price per constrained sample, for the pairs that the sample loses.

        loss = base + mu / 2 * sum_j q_j^2 / (P N) + sum_j price_j q_j / (P N),    price_j += mu q_j,

    where q_j is by how much sample j misses its margin over all samples of the other class. A batch that lacks a class
    has the base loss alone and moves no price. A sample that is twice in a batch pays twice, and its price moves once,
    by the mean. Each price is looked up by `index`, the number of the sample among all training samples: `sp.Batches`
    yields it, and `sp.methods.with_index` adds it to other loaders. Without an index all samples share one price.

    Args:
        base_loss: The loss below the charge, such as `CrossEntropy()`.
        n_samples: Number of training samples.
        margin: By how much a positive should be above a negative, in units of `output(scores)`.
        problem: The ask, from which it follows whether positives or negatives are constrained.
        side: `PerPositive()` or `PerNegative()`, if it is not to follow from the problem.
        mu: Weight of the square and pace of the prices.
        growth: How mu grows by `step_metric`, where the prices start and where they are stopped.
        output: Maps scores to the values that are compared; by default the probability.

    Raises:
        BadProblem: If `problem` is not a problem.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=4, mu=0.1)
        >>> scores, labels = torch.tensor([0.5, -0.5, 1.0, -1.0]), torch.tensor([1.0, 1.0, 0.0, 0.0])
        >>> loss = solver(scores, labels, index=torch.arange(4))
        >>> solver.prices > 0
        tensor([ True,  True, False, False])
    """

    def __init__(
        self,
        base_loss: Solver,
        *,
        n_samples: int,
        margin: float = 0.1,
        problem: Problem | None = None,
        side: Side | None = None,
        mu: float = 1e-4,
        growth: Growth | None = None,
        output: Callable[[Tensor], Tensor] = torch.sigmoid,
    ) -> None:
        super().__init__(base_loss, n_samples, margin, mu, growth, output)
        if problem is not None and not isinstance(problem, Problem):
            raise BadProblem(f"expected a problem, got {problem!r}; turn a text into one with sp.ask")
        self.side = side_for(problem) if side is None else side

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        index = self.check_index(index, len(batch.scores))
        base = self.base_loss.loss(batch, index)
        values, weights = self.output(batch.scores.to(batch.dtype)), batch.weights
        readable = may_look(values) and self.sample_prices.dtype != torch.bfloat16
        if readable and isinstance(self.side, PerPositive | PerNegative):
            return self._planned_loss(base, values, batch, index)
        own = self.side.constrained(batch.labels)
        others = ~own
        if weights is not None:
            # What weighs nothing is not there: it pays nothing, and its price stays.
            own, others = own & (weights > 0), others & (weights > 0)
        own, others = own.nonzero().squeeze(-1), others.nonzero().squeeze(-1)
        if not len(own) or not len(others):
            return base
        v, w = (None, None) if weights is None else (weights[own], weights[others])
        index = None if index is None else index[own]
        paid = self.side.pays(values.index_select(0, own), values.index_select(0, others), w, self.margin)
        return base + self.charge(paid, index, v, float(len(others)) if w is None else w.sum())

    @overflows
    def _planned_loss(self, base: Tensor, values: Tensor, batch: Sample, index: Tensor | None) -> Tensor:
        """The same loss on the processor, of the sides that are known here, with its slopes written out."""
        per_negative = isinstance(self.side, PerNegative)
        positive, heavy = batch.labels.numpy() > 0, None if batch.weights is None else batch.weights.double().numpy()
        own, others = (~positive, positive) if per_negative else (positive, ~positive)
        if heavy is not None:
            own, others = own & (heavy > 0), others & (heavy > 0)
        mine, against = np.flatnonzero(own), np.flatnonzero(others)
        if not len(mine) or not len(against):
            return base
        weights, opposing = (None, None) if heavy is None else (heavy[mine], heavy[against])
        places = None if index is None else index.numpy()[mine]
        price = self.shared_price.numpy() if places is None else self.sample_prices.numpy()[places]
        given, sign, mu = values.detach().numpy().astype(np.float64), 1.0 if per_negative else -1.0, self.mu.item()
        if not per_negative:
            np.negative(given, out=given)
        found = HingeSums(given[mine], given[against], opposing, self.margin)
        opposed = float(len(against)) if opposing is None else float(opposing.sum())
        share = 1.0 / (len(mine) * opposed) if weights is None else weights / (weights.sum() * opposed)
        rise, price = mu * found.sums, price.astype(np.float64)
        total = float((share * found.sums * (0.5 * rise + price)).sum())
        slopes = np.zeros(len(given))
        slopes[mine], slopes[against] = found.slopes(sign * share * (rise + price))

        def again(values: Tensor) -> Tensor:
            one, other, v, w = (
                None if part is None else torch.from_numpy(part) for part in (mine, against, weights, opposing)
            )
            paid = self.side.pays(values[one], values[other], w, self.margin)
            return self.charge_at(paid, torch.from_numpy(price), v, opposed)

        if self.training and not (places is not None and self.raise_each(places, price + rise)):
            v = None if weights is None else torch.from_numpy(weights)
            known = None if places is None else torch.from_numpy(places)
            self.raise_prices(torch.from_numpy(found.sums), known, torch.from_numpy(price), v)
        return base + with_slopes(total, (slopes,), again, values)
