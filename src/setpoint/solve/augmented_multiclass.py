"""The augmented Lagrangian for K classes of which some are critical: one price per critical sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.measure.classes import check_classes
from setpoint.measure.pairs import Hinge, pairs_per_negative, pairs_per_positive
from setpoint.measure.sample import Sample
from setpoint.solve.losses import class_numbers
from setpoint.solve.sample_prices import Growth, SamplePriced
from setpoint.solve.solver import Solver


def softmax(scores: Tensor) -> Tensor:
    """Probabilities of the K classes, rows of sum 1."""
    return scores.softmax(-1)


@dataclass(frozen=True)
class Others:
    """The samples of the non-critical classes of a batch: outputs `(n, K)`, class numbers, weights."""

    outputs: Tensor
    labels: Tensor
    weights: Tensor


class Demand(Protocol):
    """Says how much each sample of a critical class pays against the samples of all non-critical classes."""

    def pays(self, outputs: Tensor, critical: int, others: Others, margin: float) -> Tensor: ...


@dataclass(frozen=True)
class OwnOutput:
    """The output of a critical class must be higher for its own samples than for those of non-critical classes.

        q_cj = sum_k relu(margin - (f_c(x_j) - f_c(x_k)))    over all non-critical samples k

    Example:
        >>> import setpoint as sp
        >>> demand, base = sp.classes.OwnOutput(), sp.losses.ClassCrossEntropy()
        >>> solver = sp.classes.AugmentedMulticlass(base, n_samples=90, critical=2, demand=demand)
    """

    def pays(self, outputs: Tensor, critical: int, others: Others, margin: float) -> Tensor:
        own, rest = outputs[:, critical], others.outputs[:, critical]
        return pairs_per_positive(own, rest, Hinge(margin), weights=others.weights)


@dataclass(frozen=True)
class EveryOutput:
    """`OwnOutput`, and the output of each non-critical class must be lower for critical samples than for its own.

        q_cj = that of OwnOutput + sum_i sum_k relu(margin + f_i(x_j) - f_i(x_k))

    over the samples k of each non-critical class i.

    Example:
        >>> import setpoint as sp
        >>> demand, base = sp.classes.EveryOutput(), sp.losses.ClassCrossEntropy()
        >>> solver = sp.classes.AugmentedMulticlass(base, n_samples=90, critical=2, demand=demand)
    """

    def pays(self, outputs: Tensor, critical: int, others: Others, margin: float) -> Tensor:
        total = OwnOutput().pays(outputs, critical, others, margin)
        for each in others.labels.unique().tolist():
            theirs = others.labels == each
            high, low = others.outputs[theirs, each], outputs[:, each]
            total = total + pairs_per_negative(high, low, Hinge(margin), weights=others.weights[theirs])
        return total


class AugmentedMulticlass(SamplePriced):
    """`AugmentedLagrangian` for K classes: each sample of a critical class has a price.

    Scores are `(n, K)`, labels are class numbers. The charge is divided by the critical times the non-critical samples
    of the batch; critical classes are not compared with each other. Index and `step_metric` are as in
    `AugmentedLagrangian`.

    Args:
        base_loss: The loss below the charge, such as `ClassCrossEntropy()`.
        n_samples: Number of training samples.
        critical: Number of the critical class, or several.
        demand: `OwnOutput()`, the first constraint of the paper, or `EveryOutput()`, its second.
        margin: By how much a critical sample should be ahead, in units of `output(scores)`.
        mu: Weight of the square and pace of the prices.
        growth: How mu grows by `step_metric`, where the prices start and where they are stopped.
        output: Maps scores to the values that are compared; by default the softmax.

    Raises:
        BadSetting: If a setting is out of its range, or no class or every class is critical.

    Example:
        >>> import torch, setpoint as sp
        >>> base = sp.losses.ClassCrossEntropy()
        >>> solver = sp.classes.AugmentedMulticlass(base, n_samples=3, critical=2, mu=0.1)
        >>> loss = solver(torch.zeros(3, 3), torch.tensor([0, 1, 2]), index=torch.arange(3))
        >>> solver.prices > 0
        tensor([False, False,  True])
    """

    def __init__(
        self,
        base_loss: Solver,
        *,
        n_samples: int,
        critical: int | Sequence[int],
        demand: Demand | None = None,
        margin: float = 0.1,
        mu: float = 1e-4,
        growth: Growth | None = None,
        output: Callable[[Tensor], Tensor] = softmax,
    ) -> None:
        super().__init__(base_loss, n_samples, margin, mu, growth, output)
        self.critical = tuple(sorted(set(class_numbers(critical) or ())))
        self.demand = OwnOutput() if demand is None else demand

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n, K)` with class numbers `(n,)`."""
        return check_classes(scores, labels, weights)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        n_classes = batch.scores.shape[1]
        if self.critical[-1] >= n_classes or len(self.critical) == n_classes:
            raise BadSetting(f"critical classes {self.critical} must be some, not all, of 0 to {n_classes - 1}")
        index = self.check_index(index, len(batch.scores))
        base = self.base_loss.loss(batch, index)
        assert batch.weights is not None
        present = batch.weights > 0
        is_critical = torch.isin(batch.labels, torch.tensor(self.critical, device=batch.labels.device))
        rest = present & ~is_critical
        if not bool(rest.any()) or not bool((present & is_critical).any()):
            return base
        outputs = self.output(batch.scores.to(torch.promote_types(batch.scores.dtype, torch.float32)))
        others = Others(outputs[rest], batch.labels[rest], batch.weights[rest])
        places, paid = [], []
        for each in self.critical:
            own = (present & (batch.labels == each)).nonzero().squeeze(-1)
            if len(own):
                places.append(own)
                paid.append(self.demand.pays(outputs[own], each, others, self.margin))
        own = torch.cat(places)
        own_index = None if index is None else index[own]
        return base + self.charge(torch.cat(paid), own_index, batch.weights[own], others.weights.sum())
