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

import torch
from torch import Tensor

from setpoint.errors import BadProblem, TooFewSamples
from setpoint.measure.constraint import SLACK, Constraint, percent
from setpoint.measure.curve import Curve, curve
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


def find_by_group(
    problem: Problem, sample: Sample, within: tuple[float, float] = EVERYWHERE
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Thresholds `(1, G)`, true counts `(1, G, 4)`, whether every bound holds, and which are active `(k,)`.

    Rates that are compared lie `within` a range, which some cut of each group must reach.
    """
    assert sample.groups is not None
    parts = [sample.take(sample.groups == group) for group in range(sample.n_groups or 0)]
    curves = [curve(part.scores, part.labels, part.weights) for part in parts]
    heaviest = 1.0 if sample.weights is None else float(sample.weights.max())
    search = _Search(problem, [c.counts for c in curves], heaviest, within)
    cuts = search.improved(search.best())
    counts = search.counts(cuts)
    thresholds = torch.stack([_threshold(c, cut) for c, cut in zip(curves, cuts)]).unsqueeze(0)
    return thresholds, counts, problem.holding(counts, heaviest), search.active(cuts)


def _threshold(cuts: Curve, cut: int) -> Tensor:
    if len(cuts.values) == 0:
        return torch.zeros((), dtype=cuts.values.dtype, device=cuts.values.device)
    return cuts.thresholds(torch.tensor([cut], device=cuts.values.device))[0]


class _Search:
    """All cuts of all groups, and the windows in which they may lie."""

    def __init__(
        self, problem: Problem, tables: list[Tensor], heaviest: float, within: tuple[float, float] = EVERYWHERE
    ) -> None:
        if not isinstance(problem.objective, Rate):
            raise BadProblem(f"thresholds a group need a rate as objective, not the metric {problem.objective}")
        self.objective = problem.objective
        self.problem = problem
        self.tables = tables
        self.heaviest = heaviest
        self.total = torch.stack([table[0] for table in tables]).sum(0)
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
        return torch.stack([table[cut] for table, cut in zip(self.tables, cuts)]).unsqueeze(0)

    def _windows(self, within: tuple[float, float]) -> tuple[Tensor, Tensor]:
        """First and last cut of each group `(G, W)` in each window; windows without a cut of some group are dropped."""
        limit = WINDOWS if len(self.gaps) == 1 else int(WINDOWS ** (1 / len(self.gaps)))
        ranges = []
        for constraint in self.gaps:
            gap = constraint.quantity
            assert isinstance(gap, Gap)
            levels = [gap.rate(table) * gap.rate.direction for table in self.tables]
            present = [bool(gap.rate.size(table[0]) > 0) for table in self.tables]
            edges = torch.unique(torch.cat([level for level, here in zip(levels, present) if here] or levels))
            least, most = sorted(end * gap.rate.direction for end in within)
            edges = edges[(edges >= least - SLACK) & (edges <= most + SLACK)]
            if len(edges) > limit:
                edges = edges[torch.linspace(0, len(edges) - 1, limit).round().long()]
            rows = []
            for level, here in zip(levels, present):
                first = torch.searchsorted(level, edges - SLACK)
                ends = (edges + self._allowed(constraint)).clamp(max=most + SLACK)
                last = torch.searchsorted(level, ends, right=True) - 1
                everything = torch.stack([torch.zeros_like(first), torch.full_like(last, len(level) - 1)])
                rows.append(torch.stack([first, last]) if here else everything)
            ranges.append(torch.stack(rows, dim=1))
        first, last = ranges[0]
        for more in ranges[1:]:
            first = torch.maximum(first.unsqueeze(-1), more[0].unsqueeze(-2)).flatten(1)
            last = torch.minimum(last.unsqueeze(-1), more[1].unsqueeze(-2)).flatten(1)
        possible = (first <= last).all(0)
        if not bool(possible.any()):
            rate, (low, high) = self.gaps[0].quantity, map(percent, within)
            raise TooFewSamples(
                f"{rate}: some group has no cut with a rate between {low} and {high}, since many scores are tied; "
                "bring more rows, or scores with fewer ties"
            )
        return first[:, possible], last[:, possible]

    def _allowed(self, gap: Constraint) -> float:
        """The widest gap that keeps the bound; a gap of 0 is kept within one sample, as other equalities are."""
        one = float(gap.quantity.resolution(self.counts([0] * len(self.tables)), self.heaviest)[0])
        return gap.bound + SLACK + (one if gap.relation == "==" else 0.0)

    def best(self) -> list[int]:
        """The best cuts that meet every bound; failing that, those that break the global bounds least."""
        sign = -1.0 if self.problem.maximize else 1.0
        part, whole = (self.total.new_tensor(v) for v in (self.objective.part, self.objective.whole))
        if self.objective.has_fixed_whole:
            return self._within_bounds(sign * part / (self.total @ whole).clamp(min=1e-300))
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
        least = [self._allowed(c) - c.bound if isinstance(c.quantity, Gap) else SLACK for c in self.problem.constraints]
        most = self.problem.violations_per_cut(self.counts(cuts)).maximum(self.total.new_tensor(least).unsqueeze(-1))
        for _ in range(ROUNDS if self.others else 0):
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
        grid = torch.cartesian_prod(*(torch.arange(len(self.tables[g]), device=most.device) for g in moving))
        grid = grid.view(-1, len(moving))
        tried = self.counts(cuts).repeat(len(grid), 1, 1)
        for group, places in zip(moving, grid.T):
            tried[:, group] = self.tables[group][places]
        worse = (self.problem.violations_per_cut(tried) > most).any(0)
        cost = self.problem.costs(tried).masked_fill(worse, torch.inf)
        best = int(cost.argmin())
        if cost[best] >= self.problem.cost(self.counts(cuts)) - SLACK:
            return cuts
        moved = dict(zip(moving, grid[best].tolist()))
        return [moved.get(group, cut) for group, cut in enumerate(cuts)]

    def _within_bounds(self, cost: Tensor) -> list[int]:
        """The cheapest cuts under the global bounds, each of which is linear too: (part - bound whole) . counts."""
        prices = [0.0] * len(self.others)
        lines = [self._line(c) for c in self.others]
        cuts = self._cheapest(cost)
        for _ in range(3 if len(lines) > 1 else 1):
            for i, (constraint, line) in enumerate(zip(self.others, lines)):
                rest = cost + sum((p * li for j, (p, li) in enumerate(zip(prices, lines)) if j != i), 0 * cost)
                prices[i], cuts = self._price_of(constraint, line, rest)
        return cuts

    def _line(self, constraint: Constraint) -> Tensor:
        rate = constraint.quantity
        assert isinstance(rate, Rate)
        line = self.total.new_tensor(rate.part) - constraint.bound * self.total.new_tensor(rate.whole)
        return (-line if constraint.relation == ">=" else line) / self.total.sum()

    def _price_of(self, constraint: Constraint, line: Tensor, cost: Tensor) -> tuple[float, list[int]]:
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

    def _cheapest(self, cost: Tensor) -> list[int]:
        """The cheapest cut of each group in the best window; among equal cuts, flagging more wins."""
        picks = [_range_argmin(table @ cost, a, b) for table, a, b in zip(self.tables, self.first, self.last)]
        value = torch.stack([(table @ cost)[pick] for table, pick in zip(self.tables, picks)]).sum(0)
        best = int(value.argmin())
        return [int(pick[best]) for pick in picks]

    def active(self, cuts: list[int]) -> Tensor:
        """A bound is active when moving one group to a neighbouring cut would break it."""
        broken = torch.zeros(len(self.problem.constraints), dtype=torch.bool)
        for group, cut in enumerate(cuts):
            for other in (cut - 1, cut + 1):
                if 0 <= other < len(self.tables[group]):
                    moved = self.counts([*cuts[:group], other, *cuts[group + 1 :]])
                    broken |= (self.problem.excesses(moved) > SLACK).cpu()
        equality = torch.tensor([c.relation == "==" for c in self.problem.constraints])
        return (broken | equality).to(self.total.device)


def _range_argmin(values: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The place of the smallest value in each run `first ... last`, by a table of runs of lengths 1, 2, 4, ..."""
    places = torch.arange(len(values), device=values.device)
    table, width = [places], 1
    while 2 * width <= len(values):
        left, right = table[-1][:-width], table[-1][width:]
        table.append(torch.where(values[left] < values[right], left, right))
        width *= 2
    length = last - first + 1
    level = length.double().log2().floor().long()
    answer = torch.zeros_like(first)
    for depth, row in enumerate(table):
        here = level == depth
        left, right = row[first[here]], row[last[here] - 2**depth + 1]
        answer[here] = torch.where(values[left] < values[right], left, right)
    return answer
