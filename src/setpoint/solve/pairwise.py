"""Areas by pairs: every selected positive against every selected negative, with the selection exact."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.measure.pairs import SquaredHinge, Surrogate, pair_sum, pairs_per_negative, pairs_per_positive
from setpoint.measure.rate import Range, fnr, fpr, recall, tnr
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.memory import Memory, memory_size
from setpoint.solve.solver import Solver

Share = tuple[float, float]
_WHOLE: Share = (0.0, 1.0)


class PairwiseArea(Solver):
    """The mean cost of pairs in the asked part of the ROC curve: a surrogate of 1 - its normalised partial area.

    One-way: all positives against the negatives of an FPR range. Two-way, `PairwiseArea(sp.fpr.between(0, b),
    sp.recall.between(a, 1))`: the lowest 1 - a of the positives against the highest b of the negatives. A sample at the
    edge counts by the share of it that lies inside, tied samples alike. With the hard step in place of the surrogate
    the one-way mean is exactly the partial area, unless the edge cuts a tie of both classes. Batch samples meet all
    remembered samples of the other class. Hinges cost O(n log n); `Logistic` and `Sigmoid` the number of pairs.

    Args:
        parts: A problem such as `maximize recall over fpr in [a, b]`, or one or two ranges; none is the whole ROC area.
        surrogate: Cost of a pair by its difference of scores; by default the squared hinge.
        memory: Number of scores remembered. None chooses it from the range; 0 makes every batch stand for itself.

    Raises:
        BadProblem: If a part is not an area or range of the ROC curve.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.losses.PairwiseArea(sp.ask("maximize recall over fpr in [0%, 50%]"), memory=0)
        >>> labels = torch.tensor([1.0, 1.0, 0.0, 0.0])
        >>> float(solver(torch.tensor([3.0, 2.0, 1.0, -1.0]), labels))
        0.0
    """

    def __init__(self, *parts: Problem | Range, surrogate: Surrogate | None = None, memory: int | None = None) -> None:
        super().__init__()
        self.surrogate = SquaredHinge() if surrogate is None else surrogate
        self.of_negatives, self.of_positives = _shares(parts)
        ends = (self.of_negatives[1] - self.of_negatives[0], self.of_positives[1] - self.of_positives[0])
        self.memory = Memory(memory_size(min(ends)) if memory is None else memory)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        # The rows of the batch stand first in `joined`; `taking` leaves them where the ring has room.
        reference = self.memory.joined(batch)
        if self.training:
            self.memory.push(batch)
        if float(batch.mass) <= 0 or not reference.has_both_classes:
            return (0.0 * batch.scores).sum()
        chosen = self._selection(reference)
        positive = reference.labels > 0
        high, low, v, w = (part[side] for part in (reference.scores, chosen) for side in (positive, ~positive))
        # Shares, not weights: the sum over all pairs is then their mean, and as small.
        chosen = chosen / torch.where(positive, v.sum(), w.sum())
        v, w = chosen[positive], chosen[~positive]
        if len(reference.scores) == len(batch.scores):
            high, low = batch.scores[positive], batch.scores[~positive]
            return pair_sum(high, low, self.surrogate, positive_weights=v, negative_weights=w)
        # To first order: each batch sample against all that is remembered, blown up by 1 / share to stand for the rest.
        value = pair_sum(high, low, self.surrogate, positive_weights=v, negative_weights=w)
        now = self._against(batch, batch.scores, chosen, (high, low, v, w))
        then = self._against(batch, reference.scores[: len(batch.scores)], chosen, (high, low, v, w))
        return (value + (now - then) / (batch.mass / reference.mass)).to(value.dtype)

    def _against(self, batch: Sample, scores: Tensor, chosen: Tensor, rest: tuple[Tensor, ...]) -> Tensor:
        """The sum that the samples of a batch pay at `scores`, each against the selected samples of the other class."""
        high, low, v, w = rest
        own, mine = batch.labels > 0, chosen[: len(scores)]
        up = pairs_per_positive(scores[own], low, self.surrogate, weights=w).double() @ mine[own]
        down = pairs_per_negative(high, scores[~own], self.surrogate, weights=v).double() @ mine[~own]
        return up + down

    def _selection(self, reference: Sample) -> Tensor:
        """How much of each sample lies in the asked range: its weight, a part of it, or nothing."""
        weights = torch.ones_like(reference.scores) if reference.weights is None else reference.weights
        positive = reference.labels > 0
        chosen = torch.zeros_like(weights, dtype=torch.float64)
        for side, share in ((positive, self.of_positives), (~positive, self.of_negatives)):
            chosen[side] = ranked_part(reference.scores[side], weights[side], share)
        return chosen


def ranked_part(scores: Tensor, weights: Tensor, share: Share) -> Tensor:
    """The weight of each score that lies between two shares of the list, counted from the highest; float64.

    Tied scores are one block, of which each takes its part.
    """
    weights = weights.detach().double()
    if share == _WHOLE:
        return weights
    _, block = scores.detach().neg().unique(return_inverse=True)
    mass = torch.zeros(int(block.max()) + 1, dtype=torch.float64, device=scores.device).index_add_(0, block, weights)
    end = mass.cumsum(0)
    low, high = (float(end[-1]) * edge for edge in share)
    inside = (end.clamp(low, high) - (end - mass).clamp(low, high)).clamp(min=0)
    return weights * (inside / mass.clamp(min=torch.finfo(torch.float64).tiny))[block]


def _shares(parts: tuple[Problem | Range, ...]) -> tuple[Share, Share]:
    """The parts of the ranked negatives and of the ranked positives, from the highest down, that a range asks for."""
    ranges: list[Range] = []
    for part in parts:
        if isinstance(part, Problem):
            asked = (part.objective, part.maximize)
            over = part.over
            by_recall, by_fpr = asked in ((recall, True), (fnr, False)), asked in ((fpr, False), (tnr, True))
            if over is None or not ((by_recall and over.rate in (fpr, tnr)) or (by_fpr and over.rate in (recall, fnr))):
                raise BadProblem(f"pairs make ROC areas, such as 'maximize recall over fpr in [0%, 5%]', not '{part}'")
            ranges.append(over)
        elif isinstance(part, Range):
            ranges.append(part)
        else:
            raise BadProblem(f"expected a problem or a range such as sp.fpr.between(0, 0.05), got {part!r}")
    of_negatives, of_positives = _WHOLE, _WHOLE
    for each in ranges:
        # From the highest down the negatives are passed at fpr 0 ... 1, the positives at recall 0 ... 1.
        turned = each.rate in (tnr, fnr)
        share = (1 - each.high, 1 - each.low) if turned else (each.low, each.high)
        if each.rate in (fpr, tnr) and of_negatives == _WHOLE:
            of_negatives = share
        elif each.rate in (recall, fnr) and of_positives == _WHOLE:
            of_positives = share
        else:
            raise BadProblem(f"an area by pairs takes one range of fpr or tnr and one of recall or fnr, not {each}")
    return of_negatives, of_positives
