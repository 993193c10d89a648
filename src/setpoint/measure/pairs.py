"""Sums over all positive-negative pairs in O(n log n), value and gradient.

A pair of a positive j and a negative k falls short of its margin by x = margin - (s_j - s_k) and costs l(x).
When l is a power of relu(x), the sum over one side is a polynomial between neighbouring scores of that side, so
two sorts and a few running sums give it at every score of the other side. Everything is added up in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from setpoint.errors import BadScores, BadSetting, MissingClass, ShapeMismatch
from setpoint.measure.hinge_sums import HingeSumsOf
from setpoint.measure.looks import may_look
from setpoint.measure.sample import refuse_odd_weights

#: Up to this many pairs, laying them all out is faster than sorting.
BROADCAST_UP_TO = 2**16


@dataclass(frozen=True)
class Surrogate(ABC):
    """The cost of a pair as a function of x = margin - (s_j - s_k), by how much it falls short of the margin."""

    margin: float = 1.0
    #: p if the cost is relu(x)^p with p at most 2; None if sorting does not help.
    degree: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.margin):
            raise BadSetting(f"margin is {self.margin}; give a finite number, such as 1.0")

    @abstractmethod
    def __call__(self, shortfall: Tensor) -> Tensor:
        """l(x), entry by entry."""


@dataclass(frozen=True)
class Hinge(Surrogate):
    """The cost relu(x) of a pair that falls short of its margin by x; the slope at x = 0 is taken as 0.

    Args:
        margin: How far a positive should score above a negative.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Hinge
        >>> Hinge()(torch.tensor([-1.0, 0.5, 2.0]))
        tensor([0.0000, 0.5000, 2.0000])
    """

    degree: ClassVar[int | None] = 1

    def __call__(self, shortfall: Tensor) -> Tensor:
        return shortfall.relu()


@dataclass(frozen=True)
class SquaredHinge(Surrogate):
    """The cost relu(x)^2 of a pair that falls short of its margin by x.

    Args:
        margin: How far a positive should score above a negative.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import SquaredHinge
        >>> SquaredHinge()(torch.tensor([-1.0, 0.5, 2.0]))
        tensor([0.0000, 0.2500, 4.0000])
    """

    degree: ClassVar[int | None] = 2

    def __call__(self, shortfall: Tensor) -> Tensor:
        return shortfall.relu().square()


@dataclass(frozen=True)
class Logistic(Surrogate):
    """The cost log(1 + exp(temperature * x)) of a pair that falls short of its margin by x.

    It has no form in O(n log n): time grows with the number of pairs, memory does not.

    Args:
        margin: How far a positive should score above a negative.
        temperature: The steepness, above 0.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Logistic
        >>> Logistic()(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3133, 0.6931, 2.1269])
    """

    margin: float = 0.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < math.inf:
            raise BadSetting(f"temperature is {self.temperature}; give a finite number above 0, such as 1.0")

    def __call__(self, shortfall: Tensor) -> Tensor:
        return F.softplus(self.temperature * shortfall)


@dataclass(frozen=True)
class Sigmoid(Logistic):
    """The cost 1 / (1 + exp(-temperature * x)): a smooth count of the pairs that fall short of their margin.

    A higher temperature is nearer to the count, and fewer pairs have a gradient. Its time is that of `Logistic`.

    Args:
        margin: How far a positive should score above a negative.
        temperature: The steepness, above 0.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Sigmoid
        >>> Sigmoid(temperature=10.0)(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([4.5398e-05, 5.0000e-01, 1.0000e+00])
    """

    def __call__(self, shortfall: Tensor) -> Tensor:
        return torch.sigmoid(self.temperature * shortfall)


def pairs_per_positive(
    positives: Tensor,
    negatives: Tensor,
    surrogate: Surrogate,
    *,
    weights: Tensor | None = None,
    broadcast_up_to: int = BROADCAST_UP_TO,
) -> Tensor:
    """The cost of each positive against all negatives: q_j = sum_k w_k l(margin - (s_j - s_k)).

    Args:
        positives: The scores of the positives, `(n_pos,)`.
        negatives: The scores of the negatives, `(n_neg,)`; without any, every cost is 0.
        surrogate: The cost l of a pair, such as `Hinge()`.
        weights: One weight per negative; all 1 if None.
        broadcast_up_to: Above this number of pairs hinges are sorted, and other surrogates go block by block; the plain
            hinge is always sorted on the processor.

    Returns:
        The costs `(n_pos,)` in the dtype of the scores, float32 at least.

    Raises:
        ShapeMismatch: If scores are not of one dimension, or weights do not match.
        BadScores: If scores are not finite, or so far apart that a sum overflows.
        BadWeights: If weights are negative or not finite.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Hinge, pairs_per_positive
        >>> pairs_per_positive(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 1.5]), Hinge())
        tensor([0.5000, 3.5000])
    """
    _check(positives, negatives, None, weights)
    sums = _sums(-positives, -negatives, weights, surrogate, broadcast_up_to)
    return _narrow(sums, positives, negatives)


def pairs_per_negative(
    positives: Tensor,
    negatives: Tensor,
    surrogate: Surrogate,
    *,
    weights: Tensor | None = None,
    broadcast_up_to: int = BROADCAST_UP_TO,
) -> Tensor:
    """The cost of each negative against all positives: r_k = sum_j w_j l(margin - (s_j - s_k)).

    Args:
        positives: The scores of the positives, `(n_pos,)`; without any, every cost is 0.
        negatives: The scores of the negatives, `(n_neg,)`.
        surrogate: The cost l of a pair, such as `Hinge()`.
        weights: One weight per positive; all 1 if None.
        broadcast_up_to: Above this number of pairs hinges are sorted, and other surrogates go block by block; the plain
            hinge is always sorted on the processor.

    Returns:
        The costs `(n_neg,)` in the dtype of the scores, float32 at least.

    Raises:
        ShapeMismatch: If scores are not of one dimension, or weights do not match.
        BadScores: If scores are not finite, or so far apart that a sum overflows.
        BadWeights: If weights are negative or not finite.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Hinge, pairs_per_negative
        >>> pairs_per_negative(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 1.5]), Hinge())
        tensor([1., 3.])
    """
    _check(positives, negatives, weights, None)
    sums = _sums(negatives, positives, weights, surrogate, broadcast_up_to)
    return _narrow(sums, positives, negatives)


def pair_sum(
    positives: Tensor,
    negatives: Tensor,
    surrogate: Surrogate,
    *,
    positive_weights: Tensor | None = None,
    negative_weights: Tensor | None = None,
    broadcast_up_to: int = BROADCAST_UP_TO,
) -> Tensor:
    """The cost of all pairs: sum_jk v_j w_k l(margin - (s_j - s_k)).

    Args:
        positives: The scores of the positives, `(n_pos,)`.
        negatives: The scores of the negatives, `(n_neg,)`.
        surrogate: The cost l of a pair, such as `Hinge()`.
        positive_weights: One weight per positive; all 1 if None.
        negative_weights: One weight per negative; all 1 if None.
        broadcast_up_to: Above this number of pairs hinges are sorted, and other surrogates go block by block; the plain
            hinge is always sorted on the processor.

    Returns:
        A 0-dimensional tensor in the dtype of the scores, float32 at least; 0 if either class is empty.

    Raises:
        ShapeMismatch: If scores are not of one dimension, or weights do not match.
        BadScores: If scores are not finite, or so far apart that the sum overflows.
        BadWeights: If weights are negative or not finite.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import Hinge, pair_sum
        >>> pair_sum(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 1.5]), Hinge())
        tensor(4.)
    """
    _check(positives, negatives, positive_weights, negative_weights)
    sums = _sums(-positives, -negatives, negative_weights, surrogate, broadcast_up_to)
    total = sums.sum() if positive_weights is None else sums @ positive_weights.double()
    return _narrow(total, positives, negatives)


def concordance(
    positives: Tensor, negatives: Tensor, positive_weights: Tensor | None = None, negative_weights: Tensor | None = None
) -> Tensor:
    """The weighted share of pairs in the right order, ties counted half: the ROC area.

    Args:
        positives: The scores of the positives, `(n_pos,)`.
        negatives: The scores of the negatives, `(n_neg,)`.
        positive_weights: One weight per positive; all 1 if None.
        negative_weights: One weight per negative; all 1 if None.

    Returns:
        A 0-dimensional float64 tensor without gradient, exact if there are no weights.

    Raises:
        MissingClass: If the weights of either class sum to 0.
        ShapeMismatch: If scores are not of one dimension, or weights do not match.
        BadScores: If scores are not finite.
        BadWeights: If weights are negative or not finite.

    Example:
        >>> import torch
        >>> from setpoint.measure.pairs import concordance
        >>> concordance(torch.tensor([4.0, 2.0]), torch.tensor([3.0, 1.0]))
        tensor(0.7500, dtype=torch.float64)
    """
    _check(positives, negatives, positive_weights, negative_weights)
    above, below = positives.detach().double(), negatives.detach().double()
    v, w = _double(positive_weights, above).detach(), _double(negative_weights, below).detach()
    if not v.sum() > 0 or not w.sum() > 0:
        raise MissingClass(f"positives weigh {v.sum():g}, negatives {w.sum():g}; add samples of the missing class")
    ranked, order = below.sort()
    passed = _from_zero(w[order])
    lower = passed[torch.searchsorted(ranked, above)]
    lower_or_tied = passed[torch.searchsorted(ranked, above, right=True)]
    return (v @ (lower + lower_or_tied)) / 2 / (v.sum() * w.sum())


def _sums(upper: Tensor, lower: Tensor, weights: Tensor | None, surrogate: Surrogate, up_to: int) -> Tensor:
    """sum_k w_k l(margin + upper_j - lower_k) for each j, in float64: both public directions in one form."""
    weighed = weights is not None and weights.requires_grad
    if surrogate.degree == 1 and may_look(upper) and len(lower) and not weighed:

        def again(upper: Tensor, lower: Tensor) -> Tensor:
            return _reference_sums(upper, lower, weights, surrogate, up_to)

        return cast(Tensor, HingeSumsOf.apply(upper, lower, weights, surrogate.margin, again))  # type: ignore[no-untyped-call]
    return _reference_sums(upper, lower, weights, surrogate, up_to)


def _reference_sums(upper: Tensor, lower: Tensor, weights: Tensor | None, surrogate: Surrogate, up_to: int) -> Tensor:
    """The same of every surrogate, on every device, with slopes of every order."""
    if surrogate.degree is None or len(upper) * len(lower) <= up_to:
        return _broadcast_sums(upper, lower, _double(weights, lower), surrogate, up_to)
    (upper, order), (lower, lower_order) = upper.sort(), lower.sort()
    # Large scores of small spread keep all their digits only if the common part goes first.
    centre = lower[len(lower) // 2].detach()
    high, low = upper.detach().double() - centre + surrogate.margin, lower.detach().double() - centre
    below = torch.searchsorted(low, high, out_int32=max(len(high), len(low)) < 2**31)
    above = len(high) - torch.bincount(below, minlength=len(low) + 1).cumsum(0, dtype=below.dtype)[:-1]
    del high, low
    weights = None if weights is None else weights.double()[lower_order]
    sums = _power_sums(upper, lower, weights, below, above, surrogate.margin, surrogate.degree)
    return torch.empty_like(sums).scatter(0, order, sums)


def _broadcast_sums(upper: Tensor, lower: Tensor, weights: Tensor, surrogate: Surrogate, at_once: int) -> Tensor:
    """The same, pair by pair, in blocks that the backward pass computes again, so that memory stays bounded."""

    def block(part: Tensor, lower: Tensor, weights: Tensor) -> Tensor:
        return surrogate(surrogate.margin + (part.double().unsqueeze(1) - lower.double())) @ weights

    parts = upper.split(max(1, at_once // max(1, len(lower))))
    if len(parts) == 1:
        return block(upper, lower, weights)
    again = partial(checkpoint, block, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([again(part, lower, weights) for part in parts])


class _PowerSums(torch.autograd.Function):
    """sum_k w_k relu(margin + upper_j - lower_k)^degree for each j in float64; `upper` and `lower` ascend.

    `below` holds, for each upper, how many lowers are less than upper + margin; `above`, for each lower, how many
    uppers exceed lower - margin. The derivatives are sums of the same form, one degree down or seen from the other
    side, so the backward pass sorts nothing and can itself be differentiated.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        upper, lower, weights, below, above, margin, degree = arguments
        ctx.save_for_backward(upper, lower, weights, below, above)
        ctx.margin, ctx.degree = margin, degree
        sums = _from_zero(_double(weights, lower))
        result = sums.index_select(0, below)
        if degree > 0:
            # Moving the corner from one lower to the next adds terms of one sign only, so that nothing cancels.
            corner = torch.cat([lower[:1], lower]).double()
            rise, step = (upper - corner.index_select(0, below)).add_(margin).relu_(), corner.diff()
            del corner
            added = step * sums[:-1]
            torch.cumsum(added, 0, out=sums[1:])
            result.mul_(rise).add_(sums.index_select(0, below), alpha=degree)
            if degree == 2:
                torch.cumsum(added.add_(sums[:-1], alpha=2).mul_(step), 0, out=sums[1:])
                result.mul_(rise).add_(sums.index_select(0, below))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient, (upper, lower, weights, below, above) = gradients[0], ctx.saved_tensors
        margin, degree, to_upper, to_lower, to_weights = ctx.margin, ctx.degree, None, None, None
        if ctx.needs_input_grad[0] and degree > 0:
            to_upper = degree * gradient * _power_sums(upper, lower, weights, below, above, margin, degree - 1)
            to_upper = to_upper.to(upper.dtype)
        mirrored = (-lower.flip(0), -upper.flip(0), gradient.flip(0), above.flip(0), below.flip(0), margin)
        if ctx.needs_input_grad[1] and degree > 0:
            to_lower = -degree * _power_sums(*mirrored, degree - 1).flip(0)
            to_lower = (to_lower if weights is None else to_lower * weights).to(lower.dtype)
        if ctx.needs_input_grad[2]:
            to_weights = _power_sums(*mirrored, degree).flip(0)
        return to_upper, to_lower, to_weights, None, None, None, None


def _power_sums(*arguments: Tensor | float | None) -> Tensor:
    return cast(Tensor, _PowerSums.apply(*arguments))  # type: ignore[no-untyped-call]


def _from_zero(terms: Tensor) -> Tensor:
    """The sums of the first 0, 1, 2, ... terms."""
    sums = terms.new_zeros(len(terms) + 1)
    torch.cumsum(terms, 0, out=sums[1:])
    return sums


def _double(weights: Tensor | None, scores: Tensor) -> Tensor:
    """The weights, in float64; all 1 if none are given."""
    return torch.ones_like(scores, dtype=torch.float64) if weights is None else weights.double()


def _narrow(sums: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """The sums in the precision of the scores, float32 at least, if they fit."""
    dtype = torch.promote_types(torch.promote_types(positives.dtype, negatives.dtype), torch.float32)
    narrow = sums.to(dtype)
    if not _is_finite(narrow):
        raise BadScores(f"the scores are so far apart that their pairs sum to more than a {dtype} holds; scale them")
    return narrow


def _is_finite(numbers: Tensor) -> bool:
    """Whether all numbers are finite; a finite sum needs no closer look at each of them."""
    return math.isfinite(float(numbers.detach().sum())) or bool(numbers.isfinite().all())


def _check(positives: Tensor, negatives: Tensor, v: Tensor | None, w: Tensor | None) -> None:
    for name, scores, weights in (("positives", positives, v), ("negatives", negatives, w)):
        if scores.dim() != 1:
            raise ShapeMismatch(f"{name} have shape {tuple(scores.shape)}; give a tensor of one dimension")
        if not scores.is_floating_point() or not _is_finite(scores):
            raise BadScores(f"the {name} must be finite floating-point scores; look for nan, inf or whole numbers")
        if weights is not None and weights.shape != scores.shape:
            raise ShapeMismatch(f"{len(scores)} {name} came with weights {tuple(weights.shape)}; give one each")
        if weights is not None:
            refuse_odd_weights(weights, f"the weights of the {name}")
