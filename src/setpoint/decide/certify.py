"""Certified thresholds: every bound holds on new data with a given probability, whatever the distribution.

The walk starts at a threshold that the labels did not choose and goes on, cut by cut, as long as the exact test of each
bound rejects "it is broken". The best of all cuts passed may then be chosen freely: to reach a broken cut, the walk
must pass the first broken one, whose test errs with probability 1 - confidence.

For bounds that are kept by flagging less (fpr, flagged) or by flagging more (recall, fnr) the walk starts at the end
that keeps them, where nothing or everything is flagged; this is the order statistic of the binomial tail. With bounds
of both kinds each kind gets half of the error probability. Either end may break other bounds (precision): the walk then
starts at a threshold of which a fifth of the samples, set aside, are most certain that all bounds hold, or, for a bound
on precision alone, at a fixed number of flagged samples. docs/certificates.md has the proof for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.decide.by_rank import EQUAL
from setpoint.decide.samples_needed import (
    allowed_share,
    needed,
    refusal,
    refuse_the_impossible,
    safe_side,
    whole_of,
)
from setpoint.errors import BadProblem, TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import Curve, curve
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.evidence import is_testable, p_if_broken, trials
from setpoint.problem.problem import Problem

BY_RANK = "order statistic of the calibration scores"
#: The share of the samples that choose where the walk starts, when neither end will do; half of it where 400 remain.
SET_ASIDE, _PLENTY = 0.2, 400
#: The walk starts at this share of the way to the cut of which they are most certain, since that cut is optimistic.
_SHORT = 0.8
#: The way of a walk from the end where none of the samples is there that a bound is a share of.
_ENDS = {"flagged": 1, "not flagged": -1}


def is_certifiable(problem: Problem) -> bool:
    """Whether each bound can be certified; if not, its rate can only be estimated."""
    return bool(problem.constraints) and all(is_testable(c) and c.relation != "==" for c in problem.constraints)


def certify(problem: Problem, sample: Sample, confidence: float) -> tuple[Tensor, Certificate]:
    """The best threshold `(1,)` at which all bounds hold with probability `confidence`."""
    refuse_the_impossible(problem)
    return _chosen(problem, certified_cuts(problem, sample, confidence), confidence)


@dataclass(frozen=True)
class Certified:
    """The cuts, by their places on a curve, at which all bounds hold with the confidence that was asked for.

    `start` is the place where a walk began and the threshold that samples set aside chose for it. The proof covers that
    threshold and those beyond it, and not all others between the same two samples.
    """

    cuts: Curve
    places: NDArray[np.int64]
    method: str
    start: tuple[int, Tensor] | None = None

    def thresholds(self, places: Tensor) -> Tensor:
        """The threshold of each of these cuts."""
        found = self.cuts.thresholds(places)
        return found if self.start is None else torch.where(places == self.start[0], self.start[1].to(found), found)


def certified_cuts(problem: Problem, sample: Sample, confidence: float, walks: int = 1) -> Certified:
    """All cuts at which the bounds hold: with probability `confidence` at all of them at once.

    With several `walks`, each on bounds of its own, the error probability is shared among them.
    """
    tested = unweighted(sample)
    sides = {safe_side(c) for c in problem.constraints}
    if 0 not in sides:
        cuts = curve(tested.scores, tested.labels)
        return Certified(cuts, _from_the_ends(problem, cuts, confidence, walks), BY_RANK)
    share = min(SET_ASIDE, max(SET_ASIDE / 2, _PLENTY / max(1, len(tested.scores))))
    aside, tested = drawn_apart(tested, share)
    cuts, steps = curve(tested.scores, tested.labels), _ways(problem)
    level = (1 - confidence) / len(steps) / walks
    fewest = _enough(problem, aside, steps, level, len(tested.scores))
    if fewest is not None:
        counts, flagged = _one_by_one(tested), (cuts.tp + cuts.fp).numpy().astype(np.int64)
        enough = np.flatnonzero(trials(problem.constraints[0], counts) >= fewest)
        start = int(enough[0 if steps[0] > 0 else -1])
        walked = _walk(problem.constraints, counts, start, steps[0], level)
        # Where a walk ends within a tie, the last threshold is the one before the tie.
        certified = np.flatnonzero(np.isin(flagged, walked))[:: steps[0]]
        found = Certified(cuts, certified, "fixed-sequence test from the first cut with enough samples")
    else:
        counts, threshold = cuts.counts.numpy(), _most_certain(problem, aside, steps)
        start = int((cuts.values > threshold).sum())
        certified = np.concatenate([_walk(problem.constraints, counts, start, step, level) for step in steps])
        method = f"fixed-sequence test, started by {len(aside.scores)} samples set aside"
        found = Certified(cuts, certified, method, (start, threshold))
    if len(certified) == 0:
        raise TooFewSamples(refusal(problem, counts[start], confidence, level))
    return found


def certify_among(problem: Problem, cuts: Curve, confidence: float) -> tuple[Tensor, Certificate]:
    """The best of the given cuts at which all bounds hold with that confidence; one end must keep each bound."""
    refuse_the_impossible(problem)
    return _chosen(problem, Certified(cuts, _from_the_ends(problem, cuts, confidence), BY_RANK), confidence)


def _from_the_ends(problem: Problem, cuts: Curve, confidence: float, walks: int = 1) -> NDArray[np.int64]:
    level = (1 - confidence) / walks
    certified = reduce(np.intersect1d, walked_from_the_ends(problem, cuts, 1 - level).values())
    if len(certified) == 0:
        counts, sides = cuts.counts.numpy(), {safe_side(c) for c in problem.constraints}
        start = int(_doubt(problem.constraints, counts).argmin())
        raise TooFewSamples(refusal(problem, counts[start], confidence, level / len(sides)))
    return certified


def walked_from_the_ends(problem: Problem, cuts: Curve, confidence: float) -> dict[int, NDArray[np.int64]]:
    """For each way of flagging more (1) or less (-1), the cuts at which the bounds kept by its start are certain."""
    sides = {safe_side(c) for c in problem.constraints}
    counts, level = cuts.counts.numpy(), (1 - confidence) / len(sides)
    ends = {1: 0, -1: len(counts) - 1}
    kinds = {side: [c for c in problem.constraints if safe_side(c) == side] for side in sides}
    return {side: _walk(kind, counts, ends[side], side, level) for side, kind in kinds.items()}


def _chosen(problem: Problem, found: Certified, confidence: float) -> tuple[Tensor, Certificate]:
    """The best of the certified cuts, with its certificate."""
    cost = problem.costs(found.cuts.counts[found.places.copy()])
    # Among equals the last, which is nearest to the bound.
    best = int(found.places[(cost <= cost.min() + EQUAL).nonzero()[-1]])
    counts = found.cuts.counts[best].numpy()
    only = problem.constraints[0] if len(problem.constraints) == 1 else None
    samples = int(counts.sum()) if only is None else int(trials(only, counts))
    return found.thresholds(torch.tensor([best])), Certificate(problem.promise, confidence, samples, found.method)


def unweighted(sample: Sample) -> Sample:
    """The samples without their weights, which must be equal; samples of weight 0 are dropped."""
    if sample.weights is None:
        return sample
    there = sample.weights > 0
    weights = sample.weights[there]
    if len(weights) and bool((weights != weights[0]).any()):
        raise BadProblem(
            "a certificate counts samples that each stand for one, so unequal weights cannot be certified as they are; "
            "drop the weights, or pass sp.PopulationWeights(weights, most=...) if they make up for a known shift or "
            "for how the samples were drawn"
        )
    return replace(sample.take(there), weights=None)


def drawn_apart(sample: Sample, share: float) -> tuple[Sample, Sample]:
    """Two random parts; the same samples in the same order always give the same two."""
    order = torch.randperm(len(sample.scores), generator=torch.Generator().manual_seed(0))
    size = max(1, round(share * len(order)))
    return sample.take(order[:size]), sample.take(order[size:])


def _walk(
    bounds: Sequence[Constraint], counts: NDArray[np.float64], start: int, step: int, level: float
) -> NDArray[np.int64]:
    """The cuts from the start on, flagging more (1) or less (-1), until the first whose test does not reject."""
    way = np.arange(start, len(counts)) if step > 0 else np.arange(start, -1, -1)
    failed = np.flatnonzero(_doubt(bounds, counts[way]) > level)
    return way[: failed[0]] if len(failed) else way


def _doubt(bounds: Sequence[Constraint], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The p-value of "one of the bounds is broken" at each cut."""
    worst: NDArray[np.float64] = np.max([p_if_broken(c, counts) for c in bounds], axis=0)
    return worst


def _ways(problem: Problem) -> tuple[int, ...]:
    """The way of the walk that betters the objective: 1 flags more, -1 less; both if neither always does."""
    direction = problem.objective.direction if isinstance(problem.objective, Rate) else 0
    wanted = direction if problem.maximize else -direction
    return (wanted,) if wanted else (1, -1)


def _enough(problem: Problem, aside: Sample, steps: tuple[int, ...], level: float, size: int) -> int | None:
    """The number of samples at which the walk starts, since the samples set aside point to no better place.

    That is for a share of the flagged samples, or of those that are not flagged: so many that the test passes with one
    on the wrong side. None if these are more than a quarter of all samples, among which too many would be wrong, and
    for other bounds. The number does not depend on the samples that are tested.
    """
    (bound, *others) = problem.constraints
    if others or steps != (_ENDS.get(whole_of(bound)),):
        return None
    if float(_doubt([bound], curve(aside.scores, aside.labels).counts.numpy()).min()) <= 2 * level:
        return None
    fewest = needed(allowed_share(bound), 1 - level, wrong=1)
    return fewest if fewest <= size / 4 else None


def _one_by_one(sample: Sample) -> NDArray[np.float64]:
    """The counts where the first k samples are flagged, `(n + 1, 4)`; tied samples stand in a random order."""
    mixed = torch.randperm(len(sample.scores), generator=torch.Generator().manual_seed(1))
    order = mixed[torch.sort(sample.scores[mixed], descending=True, stable=True).indices]
    ranks = -torch.arange(len(order), dtype=torch.float64)
    return curve(ranks, sample.labels[order]).counts.numpy()


def _most_certain(problem: Problem, sample: Sample, steps: tuple[int, ...]) -> Tensor:
    """A threshold near the cut of these samples with the smallest p-value."""
    cuts = curve(sample.scores, sample.labels)
    doubt = _doubt(problem.constraints, cuts.counts.numpy())
    cut, last = int(doubt.argmin()), len(doubt) - 1
    if not any(safe_side(c) == -steps[0] for c in problem.constraints) and len(steps) == 1:
        cut = round(_SHORT * cut) if steps[0] > 0 else last - round(_SHORT * (last - cut))
    return cuts.thresholds(torch.tensor([cut]))
