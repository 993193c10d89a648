"""Scores too many to sort: counted by class in buckets, added up over processes, and then looked at once more.

A score falls into one of `BUCKETS` by its first 20 bits as a float32, rounded down: 2,048 buckets between 1 and 2, as
many between 2 and 4, and so on. Buckets keep the order of the scores, so the cuts between them are true cuts, at which
the counts are exact. What is not known is the order within a bucket. Between its two cuts a bucket can hold only
counts within a box, whose corners bound every rate: buckets whose best corner is no match for the best cut found so far
are done with, and a second look at the same scores needs to sort only those in the few that are left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.certify import certify_among, is_certifiable, walked_from_the_ends
from setpoint.decide.cut import find_among
from setpoint.decide.samples_needed import refuse_confidence, safe_side
from setpoint.errors import BadProblem, BadScores, BadSetting
from setpoint.measure.constraint import SLACK, Quantity
from setpoint.measure.curve import Curve
from setpoint.measure.rate import CATALOGUE, Rate
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import thresholds_from

BITS = 20
BUCKETS = 2**BITS
_HALF, _SHIFT = BUCKETS // 2, 32 - BITS
_FLOOR = np.nextafter(-np.finfo(np.float64).max, 0)
#: Two costs that differ by less are the same.
_EQUAL = 1e-12


@dataclass(frozen=True)
class _Cuts(Curve):
    """Cuts between ranges of scores: `values` are the lowest, `highest` the highest that each range can hold."""

    highest: Tensor

    @property
    def tops(self) -> Tensor:
        return self.highest


class ScoreTally:
    """How many scores of each class there are in every bucket: 16 MB, however many scores.

        tally = sp.ScoreTally()
        for scores, labels in parts:
            tally.update(scores, labels)
        closer = tally.around("minimize fnr where fpr <= 1%")
        for scores, labels in parts:
            closer.update(scores, labels)
        point = closer.calibrate("minimize fnr where fpr <= 1%", confidence=0.95)

    The point is that of `sp.calibrate` on all scores at once (without estimates). `tally.calibrate(...)` does without
    the second look: its rates are exact too, and `tally.doubt(...)` is the most by which its objective falls short of
    the best. `merge` adds the counts of another tally, `all_reduce` those of all processes.
    """

    def __init__(self, windows: NDArray[np.bool_] | None = None) -> None:
        self.counts = np.zeros((2, BUCKETS), dtype=np.int64)
        self.windows = np.zeros(BUCKETS, dtype=bool) if windows is None else windows
        self.values = np.zeros(0)
        self.times = np.zeros((2, 0), dtype=np.int64)

    def update(self, scores: Any, labels: Any) -> ScoreTally:
        """Count more scores, with a label of 0 or 1 each."""
        sample = check_sample(scores, labels)
        values = sample.scores.detach().double().cpu().numpy() + 0.0
        positive = (sample.labels > 0).cpu().numpy()
        bucket = _bucket(values)
        # One count for both classes: the positives stand beyond the last bucket.
        self.counts += np.bincount(bucket + BUCKETS * positive, minlength=2 * BUCKETS).reshape(2, BUCKETS)
        near = self.windows[bucket]
        if near.any():
            self._look(values[near], np.stack([~positive[near], positive[near]]).astype(np.int64))
        return self

    def _look(self, values: NDArray[np.float64], times: NDArray[np.int64]) -> None:
        """Add samples of scores that are kept one by one."""
        joined, where = np.unique(np.concatenate([self.values, values]), return_inverse=True)
        both = np.concatenate([self.times, times], axis=1)
        added = [np.bincount(where, weights=row, minlength=len(joined)) for row in both]
        self.values, self.times = joined, np.rint(added).astype(np.int64)

    def merge(self, other: ScoreTally) -> ScoreTally:
        """Add the counts of another tally with the same windows."""
        if not np.array_equal(self.windows, other.windows):
            raise BadSetting("tallies of a first and of a second look, or around two problems, do not add up")
        self.counts += other.counts
        self._look(other.values, other.times)
        return self

    def all_reduce(self, group: Any = None) -> ScoreTally:
        """Make this the tally of all processes; every process must call it."""
        counts = torch.from_numpy(self.counts)
        dist.all_reduce(counts, group=group)
        parts: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(parts, (self.values, self.times), group=group)
        self.counts = counts.numpy()
        self.values, self.times = np.zeros(0), np.zeros((2, 0), dtype=np.int64)
        for values, times in parts:
            self._look(values, times)
        return self

    @property
    def cuts(self) -> Curve:
        """The true cuts that are known: between buckets, and within those that were looked at."""
        used = np.flatnonzero(self.counts.sum(0) * ~self.windows)
        low = np.concatenate([_lowest(used), self.values])
        high = np.concatenate([np.nextafter(_lowest(used + 1), -np.inf), self.values])
        times = np.concatenate([self.counts[:, used], self.times], axis=1)
        order = np.argsort(-low, kind="stable")
        fp, tp = np.concatenate([np.zeros((2, 1)), times[:, order].cumsum(1)], axis=1)
        return _Cuts(*(torch.from_numpy(np.ascontiguousarray(part)) for part in (low[order], tp, fp, high[order])))

    def calibrate(self, problem: Problem | str, confidence: float | None = None) -> OperatingPoint:
        """The threshold to run at, with its exact rates; with `confidence`, certified."""
        problem = self._checked(problem, confidence)
        cuts, certificate = self.cuts, None
        if confidence is None:
            thresholds = find_among(problem, cuts).thresholds
        else:
            thresholds, certificate = certify_among(problem, cuts, confidence)
        counts = _counts_at(cuts, float(thresholds[0]))
        point = OperatingPoint.at(problem, thresholds_from(thresholds, problem), sample_of(counts), certificate)
        # An equality is met within one sample, not within all that are counted together.
        return replace(point, feasible=problem.holds(counts.unsqueeze(0)))

    def around(self, problem: Problem | str, confidence: float | None = None) -> ScoreTally:
        """An empty tally for a second look at the same scores, one by one where the best cut can be."""
        problem = self._checked(problem, confidence)
        # Both buckets beside the best cut have it as a corner, so both neighbours of its threshold are seen.
        windows = np.zeros(BUCKETS, dtype=bool)
        windows[self._used()[self._possible(problem, confidence)[0]]] = True
        return ScoreTally(windows)

    def doubt(self, problem: Problem | str, confidence: float | None = None) -> float:
        """The most by which a cut within a bucket could better the objective of `calibrate`; after a second look, 0."""
        problem = self._checked(problem, confidence)
        possible, cost, best = self._possible(problem, confidence)
        unsure = possible & ~self.windows[self._used()]
        return max(0.0, best - float(cost[unsure].min())) if unsure.any() else 0.0

    def _used(self) -> NDArray[np.int64]:
        """The buckets that hold any score, the highest first."""
        return np.flatnonzero(self.counts.sum(0))[::-1]

    def _possible(
        self, problem: Problem, confidence: float | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], float]:
        """Which of the used buckets can hold the best cut, the least cost in each, and the cost of the best cut."""
        fp, tp = np.concatenate([np.zeros((2, 1)), self.counts[:, self._used()].cumsum(1)], axis=1)
        plain = _Cuts(
            *(torch.from_numpy(part) for part in (-np.arange(len(tp) - 1.0), tp, fp, -np.arange(len(tp) - 1.0)))
        )
        corners = torch.stack([_box(plain, above, beside) for above in (0, 1) for beside in (0, 1)])
        sign = -1 if problem.maximize else 1
        cost = (sign * problem.objective(corners)).amin(0)
        if confidence is not None:
            return self._certain(problem, plain, confidence, cost, sign)
        best = find_among(problem, plain).counts
        excess = [c.excess(corners) for c in problem.constraints]
        low = [e.amin(0) for e in excess]
        # An equality may be met within the box if its corners lie on either side.
        near = [torch.where((e.amin(0) < 0) & (e.amax(0) > 0), 0.0, e.abs().amin(0)) for e in excess]
        far = [(e.abs() if c.relation == "==" else e).amax(0) for c, e in zip(problem.constraints, excess)]
        at = [c.violation(best)[0] for c in problem.constraints]
        is_target = [c.relation == "==" for c in problem.constraints]
        zeros, zero = torch.zeros_like(cost), torch.zeros((), dtype=torch.float64)
        # In the order of `find`: bounds, equalities, the objective, and then the cut nearest to its bounds.
        bounded = [value.clamp(min=SLACK) for value, target in zip(low, is_target) if not target]
        least = (
            sum(bounded, zeros), sum((v for v, target in zip(near, is_target) if target), zeros), cost,
            -sum(far, zeros),
        )  # fmt: skip
        found = (
            sum((v.clamp(min=SLACK) for v, target in zip(at, is_target) if not target), zero),
            sum((v for v, target in zip(at, is_target) if target), zero),
            sign * problem.objective(best)[0], -sum(at, zero),
        )  # fmt: skip
        possible, tied = torch.zeros_like(cost, dtype=torch.bool), torch.ones_like(cost, dtype=torch.bool)
        for here, known in zip(least, found):
            possible |= tied & (here < known - _EQUAL)
            tied &= here <= known + _EQUAL
        return (possible | tied).numpy(), cost.numpy(), float(found[2])

    def _certain(
        self, problem: Problem, plain: Curve, confidence: float, cost: Tensor, sign: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], float]:
        """The same where the cut must be certified: a bucket may be entered from the side that is."""
        entered = np.ones(len(cost), dtype=bool)
        both = np.ones(len(cost) + 1, dtype=bool)
        for side, walked in walked_from_the_ends(problem, plain, confidence).items():
            reached = np.zeros(len(cost) + 1, dtype=bool)
            reached[walked] = True
            entered &= reached[:-1] if side > 0 else reached[1:]
            both &= reached
        costs = sign * problem.objective(plain.counts)
        best = float(costs[torch.from_numpy(both)].min()) if both.any() else float("inf")
        return entered & (cost.numpy() <= best + _EQUAL), cost.numpy(), best

    def _checked(self, problem: Problem | str, confidence: float | None) -> Problem:
        problem = read_problem(problem)
        if problem.over is not None or problem.group is not None:
            raise BadProblem(f"a tally has one threshold, but '{problem}' asks for several; use sp.calibrate")
        for quantity in (problem.objective, *(c.quantity for c in problem.constraints)):
            if not _is_bounded_by_corners(quantity):
                raise BadProblem(f"a tally knows rates and the metrics of setpoint, not {quantity}; use sp.calibrate")
        if confidence is not None:
            refuse_confidence(confidence)
            if not is_certifiable(problem) or any(safe_side(c) == 0 for c in problem.constraints):
                raise BadProblem(
                    f"a tally certifies bounds that one end of the scores keeps (fpr, recall), not '{problem}'; "
                    "use sp.calibrate"
                )
        negatives, positives = self.counts.sum(1).tolist()
        if negatives + positives == 0:
            raise BadScores("no scores were counted; call update with at least one sample of each class")
        problem.refuse_absent_classes(sample_of(torch.tensor([0.0, 0.0, positives, negatives], dtype=torch.float64)))
        if self.windows.any() and int(self.counts[:, self.windows].sum()) != int(self.times.sum()):
            raise BadSetting("the second look has not seen all scores of its windows; update it with the same scores")
        return problem


def sample_of(counts: Tensor) -> Sample:
    """Four weighted samples with these counts (tp, fp, fn, tn) at any threshold."""
    scores = torch.tensor([torch.inf, torch.inf, -torch.inf, -torch.inf], dtype=torch.float64)
    return Sample(scores, torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64), counts)


def _counts_at(cuts: Curve, threshold: float) -> Tensor:
    passed = int((cuts.values > threshold).sum())
    return cuts.counts[passed]


def _is_bounded_by_corners(quantity: Quantity) -> bool:
    """Whether the best value within a box of counts is at a corner: of quotients of linear functions, and of ours."""
    return isinstance(quantity, Rate) or CATALOGUE.get(quantity.name) is quantity


def _box(cuts: Curve, above: int, beside: int) -> Tensor:
    """Counts at one corner of every bucket: the positives of its upper (0) or lower cut (1), and the negatives."""
    last = len(cuts.tp) - 1
    tp, fp = cuts.tp[above : last + above], cuts.fp[beside : last + beside]
    return torch.stack([tp, fp, cuts.tp[-1] - tp, cuts.fp[-1] - fp], dim=-1)


def _bucket(values: NDArray[np.float64]) -> NDArray[np.int64]:
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
        near = np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
    bits = near.view(np.int32)
    # Negative numbers count backwards.
    order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
    return np.asarray((order >> _SHIFT).astype(np.int64) + _HALF)


def _lowest(buckets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The lowest score of each bucket; beyond the last one, infinity."""
    order = (np.clip(buckets, 0, BUCKETS - 1) - _HALF << _SHIFT).astype(np.int32)
    bits = np.where(order < 0, order ^ np.int32(0x7FFFFFFF), order)
    with np.errstate(invalid="ignore"):
        values = bits.view(np.float32).astype(np.float64)
    # The first and the last few buckets are those of what is no number. No score is as low as the lowest of float64.
    values = np.where(np.isnan(values), np.copysign(np.inf, order), values)
    return np.where(buckets >= BUCKETS, np.inf, np.maximum(values, _FLOOR))
