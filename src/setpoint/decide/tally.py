"""Tallies of scores that are too many to sort: counts per class and bucket, added up over parts and processes.

A score falls into one of `BUCKETS` by its first 20 bits as a float32, rounded down: 2,048 buckets between 1 and 2, as
many between 2 and 4, and so on. Buckets keep the order of the scores, so the counts at the cuts between them are exact;
only the order within a bucket is unknown. The counts at a cut within a bucket lie in a box, whose corners bound every
rate. A bucket whose best corner is worse than the best cut found so far cannot hold the best cut, and a second look at
the same scores has to sort only those in the few other buckets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.decide.certify import certify_among, is_certifiable, walked_from_the_ends
from setpoint.decide.cut import criteria, find_among
from setpoint.decide.samples_needed import refuse_confidence, safe_side
from setpoint.errors import BadProblem, BadScores, BadSetting
from setpoint.measure.constraint import Quantity
from setpoint.measure.curve import Curve, RangedCurve
from setpoint.measure.rate import CATALOGUE, Rate
from setpoint.measure.sample import Sample, check_sample
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_thresholds import thresholds_from
from setpoint.processes import Processes

BITS = 20
BUCKETS = 2**BITS
_HALF, _SHIFT = BUCKETS // 2, 32 - BITS
_FLOOR = np.nextafter(-np.finfo(np.float64).max, 0)


class ScoreTally:
    """The number of scores of each class per bucket, in 16 MB however many scores there are.

    Two passes over the scores give the point that `sp.calibrate` gives on all of them at once (without estimates).
    After one pass `calibrate` gives a threshold with exact rates, and `doubt` says how far its objective may fall short
    of the best.

    Args:
        windows: Which buckets keep their scores one by one; `around` sets it.

    Example:
        >>> import setpoint as sp, torch
        >>> ask = "minimize fnr where fpr <= 1%"
        >>> parts = [(part, part > 0.6) for part in torch.rand(100_000).split(10_000)]
        >>> tally = sp.ScoreTally()
        >>> for scores, labels in parts:
        ...     tally = tally.update(scores, labels)
        >>> closer = tally.around(ask)
        >>> for scores, labels in parts:
        ...     closer = closer.update(scores, labels)
        >>> closer.calibrate(ask, confidence=0.95).feasible
        True
    """

    def __init__(self, windows: NDArray[np.bool_] | None = None) -> None:
        self.counts = np.zeros((2, BUCKETS), dtype=np.int64)
        self.windows = np.zeros(BUCKETS, dtype=bool) if windows is None else windows
        self.values = np.zeros(0)
        self.times = np.zeros((2, 0), dtype=np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Few buckets hold any score, so a tally is small on its way to another process."""
        used = np.flatnonzero(self.counts.sum(0))
        return {
            "used": used, "counts": self.counts[:, used], "windows": np.packbits(self.windows),
            "values": self.values, "times": self.times,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.counts = np.zeros((2, BUCKETS), dtype=np.int64)
        self.counts[:, state["used"]] = state["counts"]
        self.windows = np.unpackbits(state["windows"], count=BUCKETS).astype(bool)
        self.values, self.times = state["values"], state["times"]

    def update(self, scores: Any, labels: Any) -> ScoreTally:
        """Count more scores.

        Args:
            scores: Scores `(n,)`, as a tensor, an array or a list.
            labels: Labels `(n,)` of 0 and 1.

        Returns:
            This tally.
        """
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
        """Add scores of the windows, which are kept one by one."""
        joined, where = np.unique(np.concatenate([self.values, values]), return_inverse=True)
        both = np.concatenate([self.times, times], axis=1)
        added = [np.bincount(where, weights=row, minlength=len(joined)) for row in both]
        self.values, self.times = joined, np.rint(added).astype(np.int64)

    def merge(self, other: ScoreTally) -> ScoreTally:
        """Add the counts of another tally.

        Args:
            other: A tally with the same windows.

        Returns:
            This tally.

        Raises:
            BadSetting: If the other tally has other windows.
        """
        if not np.array_equal(self.windows, other.windows):
            raise BadSetting("tallies of a first and of a second look, or around two problems, do not add up")
        self.counts += other.counts
        self._look(other.values, other.times)
        return self

    def all_reduce(self, group: Any = None) -> ScoreTally:
        """Add up the tallies of all processes; every process must call it.

        Args:
            group: The process group; None is the default one.

        Returns:
            This tally, the same on every process.

        Raises:
            BadSetting: If torch.distributed has not been initialised.
        """
        processes = Processes.of(True if group is None else group)
        parts = processes.all_objects((self.values, self.times))
        self.counts = processes.sum(torch.from_numpy(self.counts)).numpy()
        self.values, self.times = np.zeros(0), np.zeros((2, 0), dtype=np.int64)
        for values, times in parts:
            self._look(values, times)
        return self

    @property
    def cuts(self) -> Curve:
        """The true cuts that are known: between buckets, and within the windows."""
        used = np.flatnonzero(self.counts.sum(0) * ~self.windows)
        low = np.concatenate([_lowest(used), self.values])
        high = np.concatenate([np.nextafter(_lowest(used + 1), -np.inf), self.values])
        times = np.concatenate([self.counts[:, used], self.times], axis=1)
        order = np.argsort(-low, kind="stable")
        fp, tp = np.concatenate([np.zeros((2, 1)), times[:, order].cumsum(1)], axis=1)
        return RangedCurve(
            *(torch.from_numpy(np.ascontiguousarray(part)) for part in (low[order], tp, fp, high[order]))
        )

    def calibrate(self, problem: Problem | str, confidence: float | None = None) -> OperatingPoint:
        """Set the threshold to run at.

        Args:
            problem: A problem with one threshold, or the text of an ask.
            confidence: The probability with which the bounds are to hold, if they are to be certified.

        Returns:
            The threshold with its exact rates and, with `confidence`, its certificate.

        Raises:
            BadProblem: If the problem needs several thresholds, or bounds that a tally cannot certify.
        """
        problem = self._checked(problem, confidence)
        cuts, certificate = self.cuts, None
        if confidence is None:
            thresholds = find_among(problem, cuts).thresholds
        else:
            thresholds, certificate = certify_among(problem, cuts, confidence)
        counts = cuts.counts[int((cuts.values > thresholds[0]).sum())]
        # No score lies between the ends of the ranges beside the threshold.
        shown = thresholds_from(thresholds, problem).legible(torch.cat([cuts.values, cuts.tops]))
        point = OperatingPoint.at(problem, shown, sample_of(counts), certificate)
        # An equality is met within one sample, not within all that are counted together.
        return replace(point, feasible=problem.holds(counts.unsqueeze(0)))

    def around(self, problem: Problem | str, confidence: float | None = None) -> ScoreTally:
        """An empty tally for a second pass over the same scores, which keeps those near the best cut one by one.

        Args:
            problem: The problem that will be calibrated.
            confidence: The confidence that will be asked for.

        Returns:
            A tally to update with the same scores.
        """
        problem = self._checked(problem, confidence)
        # Both buckets beside the best cut have it as a corner, so both neighbours of its threshold are seen.
        windows = np.zeros(BUCKETS, dtype=bool)
        windows[self._used()[self._possible(problem, confidence)[0]]] = True
        return ScoreTally(windows)

    def doubt(self, problem: Problem | str, confidence: float | None = None) -> float:
        """The most by which the objective of `calibrate` may fall short of the best; 0 after a second pass.

        Args:
            problem: The problem that is calibrated.
            confidence: The confidence that is asked for.

        Returns:
            A difference of the objective, 0 or more.
        """
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
        plain = RangedCurve(
            *(torch.from_numpy(part) for part in (-np.arange(len(tp) - 1.0), tp, fp, -np.arange(len(tp) - 1.0)))
        )
        corners = torch.stack([_box(plain, above, beside) for above in (0, 1) for beside in (0, 1)])
        cost = problem.costs(corners).amin(0)
        if confidence is not None:
            return self._certain(problem, plain, confidence, cost)
        best = find_among(problem, plain).counts
        excess = [c.excess(corners) for c in problem.constraints]
        is_target = [c.relation == "==" for c in problem.constraints]
        # An equality may be met within the box if its corners lie on either side.
        near = [
            torch.where((e.amin(0) < 0) & (e.amax(0) > 0), 0.0, e.abs().amin(0)) if target else e.amin(0)
            for e, target in zip(excess, is_target)
        ]
        far = [(e.abs() if target else e).amax(0) for e, target in zip(excess, is_target)]
        none, at, best_cost = cost.new_zeros(0, len(cost)), problem.violations_per_cut(best), problem.costs(best)
        least = criteria(problem, torch.stack(near) if near else none, cost, torch.stack(far) if far else none)
        found = criteria(problem, at, best_cost, at)
        possible, tied = torch.zeros_like(cost, dtype=torch.bool), torch.ones_like(cost, dtype=torch.bool)
        for here, known in zip(least, found):
            possible |= tied & (here < known - EQUAL)
            tied &= here <= known + EQUAL
        return (possible | tied).numpy(), cost.numpy(), float(best_cost)

    def _certain(
        self, problem: Problem, plain: Curve, confidence: float, cost: Tensor
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], float]:
        """The same for a cut to be certified: a bucket can hold it only if the cut beside the bucket is certified."""
        entered = np.ones(len(cost), dtype=bool)
        both = np.ones(len(cost) + 1, dtype=bool)
        for side, walked in walked_from_the_ends(problem, plain, confidence).items():
            reached = np.zeros(len(cost) + 1, dtype=bool)
            reached[walked] = True
            entered &= reached[:-1] if side > 0 else reached[1:]
            both &= reached
        costs = problem.costs(plain.counts)
        best = float(costs[torch.from_numpy(both)].min()) if both.any() else float("inf")
        return entered & (cost.numpy() <= best + EQUAL), cost.numpy(), best

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


def _is_bounded_by_corners(quantity: Quantity) -> bool:
    """Whether the best value in a box of counts is at a corner, as for rates and for the metrics of setpoint."""
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
