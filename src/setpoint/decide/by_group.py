"""The best thresholds per group under which the groups differ by no more than is allowed.

A gap bound `rate.gap <= g` holds when the rates of all groups lie in some window of width g, and `rate.gap == 0` when
they lie in a window as wide as one sample of the smallest group. In each window every group has a run of cuts and takes
the cheapest of them (a range minimum); the best window wins. This is exact for costs that are linear in the counts.
Ratios such as precision become linear by Dinkelbach's method, global bounds by a price in the cost, found by bisection.
A price reaches only cuts on the convex hull, and a better cut may lie inside it: so one or two groups at a time then
move to better cuts, as long as every bound holds.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_rank import between
from setpoint.errors import BadProblem, TooFewSamples
from setpoint.measure.constraint import SLACK, Constraint, percent
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

#: Windows looked at: all levels up to this many for one gap, its square root for each of two.
WINDOWS = 4096
#: Times that every group may move to a better cut.
ROUNDS = 10
#: All pairs of cuts of two groups are tried up to this many, times groups: two groups of 128 cuts get the best.
PAIRS = 2**15
#: The range of a rate that leaves every cut.
EVERYWHERE = (0.0, 1.0)


Array = NDArray[Any]


def find_by_group(
    problem: Problem, sample: Sample, within: tuple[float, float] = EVERYWHERE
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Thresholds `(1, G)`, true counts `(1, G, 4)`, whether every bound holds, and which are active `(k,)`.

    The search runs on the processor, wherever the sample is. Rates that are compared lie `within` a range, which some
    cut of each group must reach.
    """
    curves = _curves(sample)
    heaviest = 1.0 if sample.weights is None else float(sample.weights.max())
    search = _Search(problem, [counts for _, counts in curves], heaviest, within)
    cuts = search.improved(search.best())
    counts = search.counts(cuts)
    thresholds = np.array([[threshold_of(values, cut) for (values, _), cut in zip(curves, cuts)]], curves[0][0].dtype)
    found = (torch.from_numpy(thresholds), counts, search.holding(counts), search.active(cuts))
    device = sample.scores.device
    return found if device.type == "cpu" else tuple(part.to(device) for part in found)  # type: ignore[return-value]


def _curves(sample: Sample) -> list[tuple[Array, Array]]:
    """The distinct scores of each group, the highest first, and the counts at all cuts, `(c, 4)`: see `Curve`."""
    assert sample.groups is not None
    values = sample.scores.detach().to(sample.dtype).cpu().numpy()
    places = np.argsort(-values)
    values = values[places]
    labels, groups = sample.labels.cpu().numpy()[places], sample.groups.cpu().numpy()[places]
    weights = None if sample.weights is None else sample.weights.detach().cpu().numpy()[places]
    found = []
    for group in range(sample.n_groups or 0):
        own = groups == group if weights is None else (groups == group) & (weights > 0)
        mine, weight = values[own], 1.0 if weights is None else weights[own].astype(np.float64)
        positive = labels[own].astype(np.float64)
        sides = np.zeros((2, len(mine) + 1))
        for side, part in zip(sides, (positive * weight, (1 - positive) * weight)):
            part.cumsum(out=side[1:])
        # A cut stands where the next score is lower; with no ties, everywhere.
        parted = mine[1:] != mine[:-1]
        if not parted.all():
            last = np.append(np.flatnonzero(parted), len(mine) - 1)
            mine, sides = mine[last], sides[:, np.append(0, last + 1)]
        found.append((mine, np.concatenate([sides, sides[:, -1:] - sides]).T.copy()))
    return found


def edges_of(levels: list[Array], limit: int = WINDOWS, within: tuple[float, float] | None = None) -> Array:
    """Where windows begin: at the levels of all groups, ascending, or at some of them if there are many."""
    # The levels of each group ascend, and a stable sort merges what is in order already.
    edges: Array = np.sort(np.concatenate(levels), kind="stable")
    edges = edges[np.append(True, edges[1:] != edges[:-1])]
    if within is not None:
        edges = edges[(edges >= within[0] - SLACK) & (edges <= within[1] + SLACK)]
    if len(edges) > limit:
        edges = edges[torch.linspace(0, len(edges) - 1, limit).round().long().numpy()]
    return edges


def threshold_of(values: Array, cut: int) -> Any:
    """The threshold of a cut, as `Curve.thresholds` has it."""
    if cut == 0:
        return values[0] if len(values) else 0.0
    if cut == len(values):
        return np.nextafter(values[-1], values.dtype.type(-np.inf))
    return between(values[cut - 1], values[cut])


def _rate(rate: Rate, counts: Array) -> Array:
    """The rate at counts `(..., 4)`; 0 of nothing."""
    part, whole = counts @ np.array(rate.part, float), counts @ np.array(rate.whole, float)
    found: Array = part / np.where(whole > 0, whole, np.inf)
    return found


class _Search:
    """All cuts of all groups, and the windows in which they may lie."""

    def __init__(
        self, problem: Problem, tables: list[Array], heaviest: float, within: tuple[float, float] = EVERYWHERE
    ) -> None:
        if not isinstance(problem.objective, Rate):
            raise BadProblem(f"thresholds a group need a rate as objective, not the metric {problem.objective}")
        self.objective = problem.objective
        self.problem = problem
        self.tables = tables
        self.heaviest = heaviest
        self.total = np.stack([table[0] for table in tables]).sum(0)
        self.gaps = [c for c in problem.constraints if isinstance(c.quantity, Gap)]
        self.others = [c for c in problem.constraints if not isinstance(c.quantity, Gap)]
        for c in self.gaps:
            held = c.relation == "<=" or (c.relation == "==" and c.bound == 0)
            if not held or not c.quantity.rate.direction:  # type: ignore[attr-defined]
                raise BadProblem(
                    f"{c}: a gap is held down (<=) or closed (== 0), on a rate that moves one way with the threshold"
                )
        for c in self.others:
            if not isinstance(c.quantity, Rate):
                raise BadProblem(f"{c}: beside a gap only rates can be bounded")
        self.first, self.last = self._windows(within)

    def counts(self, cuts: list[int]) -> Tensor:
        return torch.from_numpy(np.stack([table[cut] for table, cut in zip(self.tables, cuts)])).unsqueeze(0)

    def _windows(self, within: tuple[float, float]) -> tuple[Array, Array]:
        """First and last cut of each group `(G, W)` in each window; windows without a cut of some group are dropped."""
        limit = WINDOWS if len(self.gaps) == 1 else int(WINDOWS ** (1 / len(self.gaps)))
        ranges = []
        for constraint in self.gaps:
            gap = constraint.quantity
            assert isinstance(gap, Gap)
            levels = [_rate(gap.rate, table) * gap.rate.direction for table in self.tables]
            present = [bool(table[0] @ np.array(gap.rate.whole, float) > 0) for table in self.tables]
            least, most = sorted(end * gap.rate.direction for end in within)
            edges = edges_of([at for at, here in zip(levels, present) if here] or levels, limit, (least, most))
            low, high = edges - SLACK, np.minimum(edges + self._allowed(constraint), most + SLACK)
            first, last = np.zeros((2, len(levels), len(edges)), np.int64)
            for group, (level, here) in enumerate(zip(levels, present)):
                last[group] = np.searchsorted(level, high, "right") - 1 if here else len(level) - 1
                if here:
                    first[group] = np.searchsorted(level, low)
            ranges.append((first, last))
        first, last = ranges[0]
        for more in ranges[1:]:
            first = np.maximum(first[:, :, None], more[0][:, None]).reshape(len(first), -1)
            last = np.minimum(last[:, :, None], more[1][:, None]).reshape(len(last), -1)
        possible = (first <= last).all(0)
        if not possible.any():
            rate, (lowest, highest) = self.gaps[0].quantity, map(percent, within)
            raise TooFewSamples(
                f"{rate}: some group has no cut with a rate between {lowest} and {highest}, since many scores are "
                "tied; bring more rows, or scores with fewer ties"
            )
        return (first, last) if possible.all() else (first[:, possible], last[:, possible])

    def _allowed(self, gap: Constraint) -> float:
        """The widest gap that keeps the bound; a gap of 0 is kept within one sample, as other equalities are."""
        if gap.relation != "==":
            return gap.bound + SLACK
        return gap.bound + SLACK + float(gap.quantity.resolution(self.counts([0] * len(self.tables)), self.heaviest)[0])

    def best(self) -> list[int]:
        """The best cuts that meet every bound; failing that, those that break the global bounds least."""
        sign = -1.0 if self.problem.maximize else 1.0
        part, whole = (np.array(v, float) for v in (self.objective.part, self.objective.whole))
        if self.objective.has_fixed_whole:
            return self._within_bounds(sign * part / max(self.total @ whole, 1e-300))
        ratio, cuts = 0.0, [0] * len(self.tables)
        for _ in range(20):
            cuts = self._within_bounds(sign * (part - ratio * whole) / self.total.sum())
            now = float(self.objective(self.counts(cuts).sum(-2))[0])
            if abs(now - ratio) < 1e-12:
                break
            ratio = now
        return cuts

    def improved(self, cuts: list[int]) -> list[int]:
        """The same cuts, or better ones that break no bound further, reached by moves of one group or two."""
        if not self.others:
            return cuts
        least = [self._allowed(c) - c.bound if isinstance(c.quantity, Gap) else SLACK for c in self.problem.constraints]
        floor = torch.tensor(least, dtype=torch.float64).unsqueeze(-1)
        most = self.problem.violations_per_cut(self.counts(cuts)).maximum(floor)
        for _ in range(ROUNDS):
            before = cuts
            for moving in self._moves():
                cuts = self._moved(cuts, moving, most)
            if cuts == before:
                break
        return cuts

    def _moves(self) -> list[tuple[int, ...]]:
        """The groups that move together: each alone and, where there are few cuts, every two."""
        sizes = [len(table) for table in self.tables]
        pairs = list(itertools.combinations(range(len(sizes)), 2))
        few = sum(sizes[a] * sizes[b] for a, b in pairs) * len(sizes) <= PAIRS
        return [*((group,) for group in range(len(sizes))), *(pairs if few else [])]

    def _moved(self, cuts: list[int], moving: tuple[int, ...], most: Tensor) -> list[int]:
        """The best of all cuts of the groups that move, if better than the present ones; the other groups stay."""
        grid = torch.cartesian_prod(*(torch.arange(len(self.tables[g])) for g in moving))
        grid = grid.view(-1, len(moving))
        tried = self.counts(cuts).repeat(len(grid), 1, 1)
        for group, places in zip(moving, grid.T):
            tried[:, group] = torch.from_numpy(self.tables[group])[places]
        worse = (self.problem.violations_per_cut(tried) > most).any(0)
        cost = self.problem.costs(tried).masked_fill(worse, torch.inf)
        best = int(cost.argmin())
        if cost[best] >= self.problem.cost(self.counts(cuts)) - SLACK:
            return cuts
        moved = dict(zip(moving, grid[best].tolist()))
        return [moved.get(group, cut) for group, cut in enumerate(cuts)]

    def _within_bounds(self, cost: Array) -> list[int]:
        """The cheapest cuts under the global bounds, each of which is linear too: (part - bound whole) . counts."""
        prices = [0.0] * len(self.others)
        lines = [self._line(c) for c in self.others]
        cuts = self._cheapest(cost)
        for _ in range(3 if len(lines) > 1 else 1):
            for i, (constraint, line) in enumerate(zip(self.others, lines)):
                rest = cost + sum((p * li for j, (p, li) in enumerate(zip(prices, lines)) if j != i), 0 * cost)
                prices[i], cuts = self._price_of(constraint, line, rest)
        return cuts

    def _line(self, constraint: Constraint) -> Array:
        rate = constraint.quantity
        assert isinstance(rate, Rate)
        line = np.array(rate.part, float) - constraint.bound * np.array(rate.whole, float)
        found: Array = (-line if constraint.relation == ">=" else line) / self.total.sum()
        return found

    def _price_of(self, constraint: Constraint, line: Array, cost: Array) -> tuple[float, list[int]]:
        """The lowest price at which the cheapest cuts keep the bound, and those cuts."""

        def excess(price: float) -> tuple[float, list[int]]:
            cuts = self._cheapest(cost + price * line)
            return float(constraint.excess(self.counts(cuts).sum(-2))[0]), cuts

        free, cuts = excess(0.0)
        if free <= SLACK and constraint.relation != "==":
            return 0.0, cuts
        sign = 1.0 if free > 0 else -1.0
        low, high = 0.0, 1.0
        while sign * excess(sign * high)[0] > SLACK and high < 1e9:
            low, high = high, high * 4
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if sign * excess(sign * middle)[0] > SLACK else (low, middle)
        return sign * high, excess(sign * high)[1]

    def _cheapest(self, cost: Array) -> list[int]:
        """The cheapest cut of each group in the best window; among equal cuts, flagging more wins."""
        values = [table @ cost for table in self.tables]
        lowest = [_range_min(*run) for run in zip(values, self.first, self.last)]
        best = int(np.stack(lowest).sum(0).argmin())
        picks = []
        for value, first, last in zip(values, self.first[:, best], self.last[:, best]):
            window = value[first : last + 1]
            picks.append(int(last - window[::-1].argmin()))
        return picks

    def active(self, cuts: list[int]) -> Tensor:
        """A bound is active when moving one group to a neighbouring cut would break it."""
        moves = [(g, cut + by) for g, cut in enumerate(cuts) for by in (-1, 1) if 0 <= cut + by < len(self.tables[g])]
        moved = np.repeat(np.stack([table[cut] for table, cut in zip(self.tables, cuts)])[None], len(moves), 0)
        for place, (group, cut) in enumerate(moves):
            moved[place, group] = self.tables[group][cut]
        broken = [c.relation == "==" or bool((self._excess(c, moved) > SLACK).any()) for c in self.problem.constraints]
        return torch.tensor(broken)

    def holding(self, counts: Tensor) -> Tensor:
        """Whether every bound holds."""
        if any(c.relation == "==" for c in self.problem.constraints):
            return self.problem.holding(counts, self.heaviest)
        return torch.tensor(all(self._excess(c, counts.numpy())[0] <= SLACK for c in self.problem.constraints))

    def _excess(self, constraint: Constraint, counts: Array) -> Array:
        """The excess of an inequality at counts of all groups `(c, G, 4)`."""
        if isinstance(constraint.quantity, Gap):
            rate = constraint.quantity.rate
            values, empty = _rate(rate, counts), counts @ np.array(rate.whole, float) <= 0
            gap = np.where(empty, -np.inf, values).max(-1) - np.where(empty, np.inf, values).min(-1)
            return np.where(empty.all(-1), 0.0, gap) - constraint.bound
        assert isinstance(constraint.quantity, Rate)
        beyond = _rate(constraint.quantity, counts.sum(1)) - constraint.bound
        return -beyond if constraint.relation == ">=" else beyond


def _range_min(values: Array, first: Array, last: Array) -> Array:
    """The smallest value in each run `first ... last`, by a table of runs of lengths 1, 2, 4, ..."""
    widest = int((last - first).max(initial=0)) + 1
    table = np.empty((widest.bit_length(), len(values)))
    table[0] = values
    for depth in range(1, len(table)):
        width = 2 ** (depth - 1)
        table[depth] = table[depth - 1]
        np.minimum(table[depth - 1, :-width], table[depth - 1, width:], out=table[depth, :-width])
    # Two runs of one length, which overlap, cover a run of any length.
    level: Array = np.frexp(last - first + 1.0)[1] - 1
    flat, row = table.ravel(), level * len(values)
    found: Array = np.minimum(flat[row + first], flat[row + last + 1 - (1 << level)])
    return found
