"""One price per sample, and the charge of a batch by these prices: shared by all augmented Lagrangians."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.errors import BadIndex, BadSetting, DivergedPrices
from setpoint.measure.curve import roc_area
from setpoint.measure.looks import may_look
from setpoint.measure.sample import Sample, check_sample
from setpoint.solve.refuse import whole_number
from setpoint.solve.solver import Solver


class HeldOutMetric(Protocol):
    """How well an epoch did: a number from held-out scores, or from the merit of the ask on them; larger is better."""

    def __call__(self, held_out: Sample, merit: float) -> float: ...


@dataclass(frozen=True)
class ByAsk:
    """Measure an epoch by the ask itself: its objective at the best feasible cut, larger being better.

    The objective is taken with a minus sign if it is minimised. When no cut is feasible, the measure is minus the
    violation.

    Example:
        >>> import setpoint as sp
        >>> sp.losses.Growth().metric
        ByAsk()
    """

    def __call__(self, held_out: Sample, merit: float) -> float:
        return merit


@dataclass(frozen=True)
class ByArea:
    """Measure an epoch by the area under the whole ROC curve, whatever is asked: the published choice.

    Example:
        >>> import setpoint as sp
        >>> growth = sp.losses.Growth(metric=sp.losses.ByArea())
    """

    def __call__(self, held_out: Sample, merit: float) -> float:
        sample = check_sample(held_out.scores, held_out.labels, held_out.weights)
        return float(roc_area(sample.scores, sample.labels, sample.weights))


@dataclass(frozen=True)
class Growth:
    """How mu and the prices of an augmented Lagrangian start and grow.

    mu, the weight of the square and the pace of the prices, grows after an epoch whose metric is below that of the
    epoch before plus `tolerance`; on a tie, with no tolerance, mu stays. A loop of your own hands `step_metric` any
    number.

    Args:
        rho: Factor by which mu grows, 1 or more.
        limit: The largest mu.
        tolerance: By how much an epoch must be better than the one before for mu to stay.
        metric: How `sp.fit` measures each epoch on held-out rows: `ByAsk()`, since the ask is what the model is judged
            by, or `ByArea()`.
        price: The first price of every sample.
        price_limit: A price beyond this stops the training with `DivergedPrices`.

    Raises:
        BadSetting: If a setting is out of its range.

    Example:
        >>> import setpoint as sp
        >>> solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=9, mu=0.1, growth=sp.losses.Growth(rho=3.0))
        >>> for auc in (0.8, 0.7):
        ...     solver.step_metric(auc)
        >>> round(float(solver.mu), 3)
        0.3
    """

    rho: float = 2.0
    limit: float = 1.0
    tolerance: float = 0.0
    metric: HeldOutMetric = ByAsk()
    price: float = 0.0
    price_limit: float = 1e6

    def __post_init__(self) -> None:
        if not 0 <= self.price <= self.price_limit:
            raise BadSetting(f"price {self.price!r} must be 0 or more, and price_limit {self.price_limit!r} above it")
        if not 1 <= self.rho < float("inf") or not 0 < self.limit < float("inf") or not self.tolerance >= 0:
            raise BadSetting(
                f"mu grows by rho >= 1 up to a limit above 0, past a tolerance of 0 or more; "
                f"got {self.rho!r}, {self.limit!r} and {self.tolerance!r}"
            )


class SamplePriced(Solver):
    """A base loss and a charge: mu / 2 * sum_j q_j^2 / (P N) + sum_j price_j q_j / (P N), then price_j += mu q_j."""

    starts_cold = True
    needs_index = True
    sample_prices: Tensor
    shared_price: Tensor
    last_seen: Tensor
    mu: Tensor
    metric: Tensor

    def __init__(
        self,
        base_loss: Solver,
        n_samples: int,
        margin: float,
        mu: float,
        growth: Growth | None,
        output: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        growth = growth or Growth()
        if not isinstance(base_loss, Solver):
            raise BadSetting(f"base_loss must be a solver such as sp.CrossEntropy(), got {base_loss!r}")
        whole_number("n_samples, the number of training samples,", n_samples)
        if not 0 <= margin < math.inf:
            raise BadSetting(f"margin must be 0 or more, got {margin!r}")
        if not 0 < mu <= growth.limit:
            raise BadSetting(f"mu must be above 0, or no price would ever move, and at most {growth.limit:g}: {mu!r}")
        self.base_loss, self.n_samples, self.margin, self.output = base_loss, n_samples, margin, output
        self.growth = growth
        self.register_buffer("sample_prices", torch.full((n_samples,), float(growth.price)))
        self.register_buffer("shared_price", torch.tensor(float(growth.price)))
        # Where each sample was last seen in a batch, to tell whether one is in it twice; read only after it is written.
        self.register_buffer("last_seen", torch.zeros(n_samples, dtype=torch.int32), persistent=False)
        self.register_buffer("mu", torch.tensor(float(mu), dtype=torch.float64))
        self.register_buffer("metric", torch.tensor(-torch.inf, dtype=torch.float64))

    @property
    def prices(self) -> Tensor:
        """One price per training sample; samples that are not constrained keep the first price."""
        return self.sample_prices

    def progress(self, held_out: Sample, merit: float) -> float:
        """The value to hand to `step_metric` after an epoch: `growth.metric`."""
        return self.growth.metric(held_out, merit)

    def step_metric(self, value: float) -> None:
        """Take the held-out metric of an epoch, larger being better: if it is worse than the last, mu grows."""
        if math.isnan(value):
            raise BadSetting("the metric is NaN; give the validation metric of this epoch, such as its AUC")
        if value < float(self.metric) + self.growth.tolerance:
            self.mu.mul_(self.growth.rho).clamp_(max=self.growth.limit)
        self.metric.fill_(value)

    def check_index(self, index: Tensor | None, size: int) -> Tensor | None:
        """One whole number per sample, from 0 to n_samples - 1."""
        if index is None:
            return None
        if index.shape != (size,) or index.is_floating_point() or index.dtype == torch.bool:
            raise BadIndex(f"{size} samples came with an index {tuple(index.shape)} of {index.dtype}; give one each")
        index = index.to(self.sample_prices.device, torch.long)
        # Without a sign, numbers below 0 are the largest of all.
        if size == 0 or (may_look(index) and index.numpy().view(np.uint64).max() < self.n_samples):
            return index
        lowest, highest = (int(end) for end in index.aminmax())
        if lowest < 0 or highest >= self.n_samples:
            wrong = lowest if lowest < 0 else highest
            raise BadIndex(f"index {wrong} in a batch, but n_samples is {self.n_samples}: number samples from 0")
        return index

    def prices_of(self, index: Tensor | None) -> Tensor:
        """The present price of each of some samples, or the price that all share."""
        return self.shared_price.clone() if index is None else self.sample_prices.index_select(0, index)

    def charge(self, paid: Tensor, index: Tensor | None, weights: Tensor | None, opposed: Tensor | float) -> Tensor:
        """The charge for `paid`, the q of the constrained samples, against others of total weight `opposed`."""
        prices = self.prices_of(index)
        total = self.charge_at(paid, prices, weights, opposed)
        if self.training:
            self.raise_prices(paid.detach(), index, prices, weights)
        return total

    def charge_at(self, paid: Tensor, prices: Tensor, weights: Tensor | None, opposed: Tensor | float) -> Tensor:
        """The charge at given prices."""
        each = paid * (paid * (0.5 * self.mu.to(paid.dtype)) + prices.to(paid.dtype))
        if weights is None:
            return each.sum() / (len(each) * opposed)
        weights = weights.to(each.dtype)
        return (weights @ each) / (weights.sum() * opposed)

    def raise_each(self, places: NDArray[np.int64], risen: NDArray[np.float64]) -> bool:
        """Set the prices of samples on the processor; False, with nothing done, where `raise_prices` has to.

        It has to where a sample is there twice, and where a price has diverged.
        """
        seen, order = self.last_seen.numpy(), np.arange(len(places), dtype=np.int32)
        seen[places] = order
        if not risen.max() <= self.growth.price_limit or not (seen[places] == order).all():
            return False
        self.sample_prices.numpy()[places] = risen
        return True

    @torch.no_grad()
    def raise_prices(self, paid: Tensor, index: Tensor | None, prices: Tensor, weights: Tensor | None) -> None:
        """Move the prices of the samples by mu times what each has paid."""
        prices = prices.to(paid.dtype)
        rise = self.mu.to(paid.dtype) * paid
        if index is None:
            own = torch.ones_like(rise) if weights is None else weights.to(rise.dtype)
            rise = (own @ rise) / own.sum()
        risen = prices + rise
        highest = float(risen.max())
        if not highest <= self.growth.price_limit:
            place = int(risen.argmax())
            name = "shared by all samples" if index is None else f"of sample {int(index[place])}"
            before = float(prices if index is None else prices[place])
            raise DivergedPrices(
                f"the price {name} has diverged: {before:.6g}, then {highest:.6g} (limit {self.growth.price_limit:g}), "
                f"its pairs short of the margin by up to {float(paid.max()):.6g} in all, mu at {float(self.mu):.6g}; "
                "lower mu, or let it grow by less"
            )
        risen = risen.to(self.sample_prices.dtype)
        if index is None:
            self.shared_price.copy_(risen)
            return
        order = torch.arange(len(index), dtype=self.last_seen.dtype, device=index.device)
        self.last_seen[index] = order
        if torch.equal(self.last_seen[index], order):
            self.sample_prices[index] = risen
            return
        samples, which = index.unique(return_inverse=True)
        mean = torch.zeros_like(samples, dtype=risen.dtype).scatter_reduce_(0, which, risen, "mean", include_self=False)
        self.sample_prices[samples] = mean

    def status(self) -> dict[str, Any]:
        """mu, and the highest and the mean price."""
        prices = self.sample_prices
        shared = float(self.shared_price)
        return {
            **self.base_loss.status(),
            "mu": float(self.mu),
            "highest_price": max(float(prices.max()), shared),
            "mean_price": float(prices.mean()),
        }
