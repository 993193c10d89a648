"""The best shifts of K classes for any objective and bounds: the best cut of one class at a time.

A class k is predicted where its margin over its best rival, s_k - max_j(s_j - t_j), lies above t_k. All cuts of that
margin are counted from one sort and one cumulative sum, whatever is asked. Bounds are priced, first low, then ever
higher, so that the search moves along the trade-off before it settles within the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.measure.classes import OfClass, count_classes
from setpoint.measure.constraint import SLACK
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

#: Gives the shifts at which a search starts, from the rows that it is made on.
Start = Callable[[Sample], Tensor]
#: Units of the objective per unit of all violations, one after the other.
PRICES = (1.0, 10.0, 1e4)
#: Margins that differ by less than this share of the largest are equal but for rounding.
TIED = 1e-12
#: The most cuts of a class that are compared at once; the best of them is then looked at more closely.
COARSE = 128
#: Of so many rows one is looked at around the cut of a class, when all rows are many.
NEAREST = 8
#: The most rows from which the search starts; it ends on all rows.
FEW = 20_000
#: The most visits of each class, and those on all rows when they are many.
SWEEPS, LAST_SWEEPS = 20, 2
#: The most classes with bounds that are moved in pairs.
MOST_PAIRED = 6


@dataclass(frozen=True)
class Line:
    """All cuts of some classes against the others, whose shifts differ by one number that is added to them.

    The rows are in the order of their margins, the best of these classes over the best of the others at present.

    Args:
        sample: The sample, in float64.
        shifts: The present shifts, `(K,)`.
        shifted: The scores less the present shifts, `(K, n)`: a class lies in one piece.
        ahead: The largest of them in each row, `(n,)`.
        leader: The class that has it, `(n,)`.
        classes: The classes that move together; usually one.
        nearest: About so many rows around the present cut may change sides; None for all rows.
    """

    sample: Sample
    shifts: Tensor
    shifted: Tensor
    ahead: Tensor
    leader: Tensor
    classes: tuple[int, ...]
    nearest: int | None = None

    @cached_property
    def rivals(self) -> tuple[Tensor, Tensor]:
        """The best of the other classes in each row: its shifted score, and its number."""
        strongest, rival = self.ahead.clone(), self.leader.clone()
        led = self.leader == self.classes[0]
        for k in self.classes[1:]:
            led |= self.leader == k
        # Elsewhere the best of all classes is the best of the others.
        rows = led.nonzero().squeeze(-1)
        # Gathered from rows that lie in one piece each, which is quicker than from columns.
        others = self.sample.scores[rows] - self.shifts
        others[:, list(self.classes)] = -torch.inf
        strongest[rows], rival[rows] = others.max(1)
        return strongest, rival

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The rows by falling margin (margin, rival, winner, class and weight of each), and the counts."""
        labels, weights = self.sample.labels, self.sample.weights
        chosen = torch.tensor(self.classes, device=labels.device)
        if len(chosen) == 1:
            own, winner = self.shifted[self.classes[0]], chosen.expand_as(labels)
        else:
            own, place = self.shifted[chosen].max(0)
            winner = chosen[place]
        strongest, rival = self.rivals
        margin, predicted = own - strongest, rival
        kept: Tensor | None = None
        if self.nearest is not None and self.nearest < len(margin):
            # The others stay where they are: with their winners, or with their rivals.
            some = margin[:: max(1, len(margin) // FEW)].abs()
            reach = some.kthvalue(max(1, round(len(some) * self.nearest / len(margin)))).values
            distance = margin.abs()
            predicted = torch.where(margin > reach, winner, rival)
            near = distance <= reach
            near[distance.argmin()] = True
            kept = near.nonzero().squeeze(-1)
        base = self._both(predicted, labels, weights)
        weights = torch.ones_like(margin) if weights is None else weights
        if kept is not None:
            margin, rival, winner, labels, weights = (each[kept] for each in (margin, rival, winner, labels, weights))
        margin, order = margin.sort(descending=True)
        return margin, rival[order], winner[order], labels[order], weights[order], base

    def _both(self, predicted: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """The weight that is predicted as each class, and the part of it that belongs there, `(2, K)`."""
        size = self.sample.scores.shape[1]
        right = (predicted == labels).double() if weights is None else weights * (predicted == labels)
        return torch.stack([torch.bincount(predicted, each, size).double() for each in (weights, right)])

    @cached_property
    def places(self) -> Tensor:
        """The cuts that part no tied rows, by the number of rows above them."""
        padded = self._padded
        # Margins that only rounding tells apart are tied.
        return (padded[:-1] - padded[1:] > TIED * padded.abs().max()).nonzero().squeeze(-1)

    @cached_property
    def _padded(self) -> Tensor:
        margin = self._sorted[0]
        step = (margin[:1] - margin[-1:]) / len(margin) + 1e-6 * margin.abs().max() + 1e-12
        return torch.cat([margin[:1] + 2 * step, margin, margin[-1:] - 2 * step])

    def values(self, places: Tensor) -> Tensor:
        """The number that is added to the shifts at each cut: half way between two margins, so that no row is tied."""
        return self._padded[places] / 2 + self._padded[places + 1] / 2

    def counts(self, places: Tensor) -> Tensor:
        """The counts at cuts, given in ascending order, `(c, K, 4)`."""
        margin, rival, winner, labels, weights, base = self._sorted
        sizes = class_sizes(self.sample)
        n_classes = len(sizes)
        # A row that passes a cut leaves its rival for its winner.
        first = n_classes * torch.searchsorted(places, torch.arange(len(margin), device=places.device), right=True)
        moves = torch.zeros(2, (len(places) + 1) * n_classes, dtype=torch.float64, device=margin.device)
        for to, sign in ((rival, -weights), (winner, weights)):
            moves[0].index_add_(0, first + to, sign)
            moves[1].index_add_(0, first + to, sign * (labels == to))
        flagged, hits = base.unsqueeze(1) + moves.view(2, -1, n_classes)[:, :-1].cumsum(1)
        counts = torch.stack([hits, flagged - hits, sizes - hits, sizes.sum() - sizes - flagged + hits], dim=-1)
        return counts.clamp(min=0)


def class_sizes(sample: Sample) -> Tensor:
    """The weight of each class, `(K,)`."""
    return torch.bincount(sample.labels, sample.weights, sample.scores.shape[1]).double()


def class_cuts(sample: Sample, shifts: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All cuts of class k, the other shifts held: its shift at each, `(c,)`, and the counts there, `(c, K, 4)`.

    Cut 0 predicts the class nowhere, the last one everywhere.
    """
    shifted = (sample.scores - shifts).T.contiguous()
    line = Line(sample, shifts, shifted, *shifted.max(0), (k,))
    return shifts[k] + line.values(line.places), line.counts(line.places)


def priced(problem: Problem, counts: Tensor, price: float) -> Tensor:
    """The objective at each of m cuts with the sign of a loss, and the price of all broken bounds, `(m,)`."""
    cost = problem.costs(counts)
    if not problem.constraints:
        return cost
    return cost + price * (problem.violations_per_cut(counts) - SLACK).clamp(min=0).sum(0)


@dataclass
class ShiftDescent:
    """A search from one start: the shifts so far, and what they are worth at a price."""

    problem: Problem
    sample: Sample
    shifts: Tensor
    price: float = PRICES[-1]

    def __post_init__(self) -> None:
        self.shifts = self.shifts.double().clone()
        self.shifted = (self.sample.scores - self.shifts).T.contiguous()
        self.ahead, self.leader = self.shifted.max(0)
        self.value = self._value()

    def _value(self) -> float:
        sample = self.sample
        counts = count_classes(sample.scores, sample.labels, self.shifts, weights=sample.weights)
        return float(priced(self.problem, counts.unsqueeze(0), self.price)[0])

    def at(self, price: float) -> None:
        """Go on at another price."""
        self.price = price
        self.value = self._value()

    def visit(self, classes: tuple[int, ...], *, all_cuts: bool = False) -> None:
        """Move some classes together to their best cut, if that is better than where they are."""
        rows = len(self.sample.labels)
        nearest = rows // NEAREST if rows > 2 * FEW else None
        line = Line(self.sample, self.shifts, self.shifted, self.ahead, self.leader, classes, nearest)
        places = line.places
        while True:
            looked = places if all_cuts or len(places) <= COARSE else places[_spread(len(places))]
            value = priced(self.problem, line.counts(looked), self.price)
            best = int(value.argmin())
            if len(looked) == len(places):
                break
            around = looked[max(best - 1, 0)], looked[min(best + 1, len(looked) - 1)]
            places = places[(places >= around[0]) & (places <= around[1])]
        lowest = float(value[best])
        if lowest < self.value - EQUAL:
            moves = line.values(looked)
            # Among equally good cuts the nearest.
            distance = moves.abs().masked_fill(value > lowest + EQUAL, torch.inf)
            for k in classes:
                self.shifts[k] += moves[distance.argmin()]
                self.shifted[k] = self.sample.scores[:, k] - self.shifts[k]
            self._take_the_lead(line)
            self.value = lowest

    def _take_the_lead(self, line: Line) -> None:
        """Find the best class of each row anew, after the classes of a line have moved."""
        self.ahead, self.leader = line.rivals
        for k in line.classes:
            leads = self.shifted[k] > self.ahead
            self.ahead = torch.where(leads, self.shifted[k], self.ahead)
            self.leader = torch.where(leads, k, self.leader)

    def sweep(self, sweeps: int, *, all_cuts: bool = False) -> None:
        """Visit all classes, again and again until none moves; classes with bounds also together."""
        together = moved_together(self.problem, len(self.shifts))
        for _ in range(sweeps):
            before = self.value
            for classes in (*((k,) for k in range(len(self.shifts))), *together):
                self.visit(classes, all_cuts=all_cuts)
            if self.value >= before - EQUAL:
                break


def moved_together(problem: Problem, n_classes: int) -> list[tuple[int, ...]]:
    """The classes with bounds, all together and in pairs: where two of them compete, only both together gain."""
    named = sorted({c.quantity.k for c in problem.constraints if isinstance(c.quantity, OfClass)})
    sets = [tuple(named), *combinations(named, 2)] if len(named) <= MOST_PAIRED else [tuple(named)]
    return [each for each in dict.fromkeys(sets) if 1 < len(each) < n_classes]


def _spread(size: int) -> Tensor:
    return torch.linspace(0, size - 1, COARSE, dtype=torch.float64).round().long()


@torch.no_grad()
def search_shifts(problem: Problem, sample: Sample, starts: Sequence[Start]) -> Tensor:
    """The best shifts `(K,)` found for the objective within the bounds, in float64.

    The search begins at each of the starts, with many rows on some of them. No move of a single shift improves the
    result, which for two classes makes it the optimum; for more classes it may be a local one.
    """
    wide = sample.double()
    few = _some(wide)
    best = min((_from(problem, few, start(few)) for start in starts), key=lambda end: end.value)
    found = ShiftDescent(problem, wide, best.shifts)
    found.sweep(SWEEPS if wide is few else LAST_SWEEPS, all_cuts=wide is few)
    return found.shifts


@torch.no_grad()
def nearby_shifts(problem: Problem, sample: Sample, start: Tensor) -> Tensor:
    """The shifts after a few moves from good shifts of a problem that differs little."""
    way = ShiftDescent(problem, _some(sample.double()), start)
    way.sweep(LAST_SWEEPS)
    return way.shifts


def _from(problem: Problem, sample: Sample, start: Tensor) -> ShiftDescent:
    way = ShiftDescent(problem, sample, start)
    for price in PRICES if problem.constraints else PRICES[-1:]:
        way.at(price)
        way.sweep(SWEEPS)
    return way


def _some(sample: Sample) -> Sample:
    """Evenly spread rows of each class, about as many of every class, each with the weight of those it stands for."""
    if len(sample.labels) <= 2 * FEW:
        return sample
    share = -(-FEW // sample.scores.shape[1])
    weights = torch.ones_like(sample.scores[:, 0]) if sample.weights is None else sample.weights
    rows, mass = [], []
    for k in range(sample.scores.shape[1]):
        own = (sample.labels == k).nonzero().squeeze(-1)
        taken = own[:: max(1, len(own) // share)]
        rows.append(taken)
        mass.append(weights[taken] * (weights[own].sum() / weights[taken].sum().clamp(min=1e-300)))
    return replace(sample.take(torch.cat(rows)), weights=torch.cat(mass))
