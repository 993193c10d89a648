"""The number of samples that a certificate needs, and the message when there are too few."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from setpoint.decide.rate_window import p_window_breaks
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.classes import OfClass
from setpoint.measure.constraint import Constraint, percent
from setpoint.measure.labels import OfLabel
from setpoint.measure.rate import Gap, Rate, rate_within
from setpoint.measure.worth import plain_of
from setpoint.problem.binomial import at_most
from setpoint.problem.evidence import p_if_broken, p_if_gap_exceeds, trials
from setpoint.problem.problem import Problem

Counts = NDArray[np.float64]
#: The samples that a rate is a share of, by its weights on (tp, fp, fn, tn), and for a band on reviewed rows too.
WHOLES: dict[tuple[float, ...], str] = {
    (0, 1, 0, 1): "negatives",
    (1, 0, 1, 0): "positives",
    (1, 1, 1, 1): "samples",
    (1, 1, 0, 0): "flagged",
    (0, 0, 1, 1): "not flagged",
    (0, 1, 0, 1, 0, 1): "negatives",
    (1, 0, 1, 0, 1, 0): "positives",
    (1, 1, 1, 1, 1, 1): "samples",
    (1, 1, 0, 0, 0, 0): "flagged",
    (0, 0, 1, 1, 0, 0): "not flagged",
}
#: Beyond two to this power no number of samples is named.
_MOST = 24


def needed(allowed: float, confidence: float, wrong: int = 0) -> int:
    """The fewest samples of the class with which a share of `allowed` can be certified: 299 for 1 % at 95 %.

    So many of them may be on the `wrong` side.
    """
    fewest = math.ceil(math.log(1 - confidence) / math.log1p(-allowed)) if allowed < 1 else 1
    if not wrong:
        return fewest

    def passes(size: int) -> bool:
        return float(at_most(wrong, size, allowed)) <= 1 - confidence

    most = next(fewest * 2**power for power in range(64) if passes(fewest * 2**power))
    return bisect_left(range(most), True, lo=fewest, key=passes)


def allowed_share(constraint: Constraint) -> float:
    """The share that may fall on the wrong side: 1 % for `fpr <= 1%` and for `recall >= 99%`."""
    return constraint.bound if constraint.relation == "<=" else 1 - constraint.bound


def safe_side(constraint: Constraint) -> int:
    """+1 if a higher threshold can only help the bound, -1 if a lower one, 0 if either may break it."""
    rate = plain_of(constraint.quantity)
    rate = rate.rate if isinstance(rate, OfClass) else rate
    direction = rate.direction if isinstance(rate, Rate) else 0
    return direction if constraint.relation == "<=" else -direction


def counted(constraint: Constraint) -> str:
    """The samples that the bound is a share of, in a word."""
    kind = WHOLES.get(tuple(int(weight > 0) for weight in rate_within(plain_of(constraint.quantity)).whole), "samples")
    if isinstance(constraint.quantity, OfClass):
        name = constraint.quantity.label
        own = {"negatives": f"samples of other classes than {name}", "positives": f"samples of class {name}"}
        return own.get(kind, f"samples predicted as class {name}" if kind == "flagged" else "samples")
    return {"flagged": "flagged samples", "not flagged": "samples that are not flagged"}.get(kind, kind)


def whole_of(constraint: Constraint) -> str:
    """The samples that the bounded rate is a share of; empty where these are no plain count of samples."""
    rate = plain_of(constraint.quantity)
    rate = rate.rate if isinstance(rate, OfLabel) else rate
    return WHOLES.get(rate.whole, "") if isinstance(rate, Rate) else ""


def refuse_confidence(confidence: float) -> None:
    """Refuse a confidence that is not strictly between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise BadSetting(f"confidence must lie between 0 and 1, such as 0.95, got {confidence!r}")


def refuse_the_impossible(problem: Problem) -> None:
    """Refuse bounds that no number of samples can show to hold."""
    for constraint in problem.constraints:
        if constraint.relation == "==":
            raise BadProblem(f"no data can show that {constraint} holds exactly; certify <= or >= instead")
        if allowed_share(constraint) <= 0:
            raise BadProblem(f"no number of samples can certify {constraint}; leave a little room, such as 0.1%")


def refusal(problem: Problem, counts: Counts, confidence: float, level: float) -> str:
    """The message for counts `(4,)` that certify no bound: how many are needed, and what these could certify."""
    constraint = max(problem.constraints, key=lambda c: float(p_if_broken(c, counts)))
    size, asked = int(trials(constraint, counts)), f"{constraint} at confidence {100 * confidence:.6g}%"
    if safe_side(constraint):
        enough = needed(allowed_share(constraint), 1 - level)
        if size < enough:
            could = _could(constraint, counts, level)
            return f"{asked} needs {enough:,} {counted(constraint)}, but there are {size:,}{could}"
    return f"{asked} is not certified: {_seen(constraint, counts, [''], level)}"


def refusal_of_gap(problem: Problem, tested: Counts, everything: Counts, names: list[str], confidence: float) -> str:
    """The message for groups that are compared, from counts `(G, 4)` of the tested samples and of all samples.

    It names each group with too few samples, and how many samples of that group are needed.
    """
    level = 1 - confidence
    constraint = max(problem.constraints, key=lambda c: float(p_if_broken(c, problem.seen_by(c, tested))))
    if not isinstance(constraint.quantity, Gap):
        return refusal(replace(problem, constraints=(constraint,)), tested.sum(0), confidence, level)
    sizes, there = trials(constraint, tested), trials(constraint, everything)
    enough = _enough_of_each(constraint, tested, level)
    if enough is None or (sizes >= enough).all():
        named = [f" of group {name!r}" for name in names]
        asked = f"{constraint} at confidence {100 * confidence:.6g}%"
        return f"{asked} is not certified: {_seen(constraint, tested, named, level)}"
    short = {names[g]: int(there[g]) for g in np.flatnonzero(sizes < enough)}
    # More than half of the samples test.
    return _of_each_group(constraint, confidence, math.ceil(2 * enough), short, _could(constraint, tested, level))


def refusal_of_window(
    constraint: Constraint, sizes: tuple[list[int], list[int]], names: list[str], confidence: float, share: float
) -> str:
    """The message for a gap of groups that are too small even where all samples of every group pass, or none.

    `sizes` are those of the groups among the samples that make the window, a `share` of all, and among all samples.
    """
    rest, there = sizes
    enough = fewest_of_each(constraint.bound, 1 - confidence, rest)
    short = {name: all_ for name, own, all_ in zip(names, rest, there) if own < enough}
    return _of_each_group(constraint, confidence, math.ceil(enough / share), short)


def fewest_of_each(bound: float, level: float, sizes: Sequence[int]) -> int:
    """The fewest samples that each group needs for a gap; a group that has more samples keeps them."""

    def passes(fewest: int) -> bool:
        return p_window_breaks(0.0, 0.0, [max(size, fewest) for size in sizes], bound) <= level

    most = next(2**power for power in range(1024) if passes(2**power))
    return bisect_left(range(most), True, lo=most // 2, key=passes)


def _of_each_group(
    constraint: Constraint, confidence: float, enough: int, short: dict[str, int], could: str = ""
) -> str:
    # The samples are drawn at random: two standard errors of the drawing more.
    asked_for, kind = math.ceil(enough + 2 * math.sqrt(enough)), counted(constraint)
    those = "that group" if len(short) == 1 else "those groups"
    there = " and ".join(f"{size:,} of group {name!r}" for name, size in short.items())
    return (
        f"{constraint} at confidence {100 * confidence:.6g}% needs about {asked_for:,} {kind} of each group, but there "
        f"are {there}{could}; bring more {kind} of {those}, others do not help"
    )


def _enough_of_each(constraint: Constraint, counts: Counts, level: float) -> int | None:
    """The fewest samples that each group needs if all groups have the same rate; None if there are too many.

    A group that has more samples keeps them.
    """
    assert isinstance(constraint.quantity, Gap)
    sizes, share = trials(constraint, counts), float(constraint.quantity.rate(torch.from_numpy(counts.sum(0))))

    def passes(fewest: int) -> bool:
        # Of groups that are alike the two smallest are the hardest to compare.
        whole = np.sort(np.maximum(sizes, fewest))[:2]
        return p_if_gap_exceeds(np.rint(share * whole), whole, constraint.bound) <= level

    high = next((2**power for power in range(_MOST) if passes(2**power)), None)
    if high is None:
        return None
    return bisect_left(range(high), True, lo=high // 2 + 1, key=passes)


def _seen(constraint: Constraint, counts: Counts, of: list[str], level: float) -> str:
    kind, sizes = counted(constraint), np.atleast_1d(trials(constraint, counts)).astype(int).tolist()
    times = next((m for m in 1.25 ** np.arange(1, 20) if p_if_broken(constraint, np.rint(m * counts)) <= level), None)
    more = f"some {times:.2g} times as many would do" if times else "there it is broken, so ask for less"
    there = " and ".join(f"{size} {kind}{group}" for size, group in zip(sizes, of))
    where = "shifts" if isinstance(constraint.quantity, OfClass) else "threshold"
    return f"at the most promising {where} there are {there} to judge it by; {more}{_could(constraint, counts, level)}"


def _could(constraint: Constraint, counts: Counts, level: float) -> str:
    """A weaker bound that these counts do certify, if there is one worth naming."""
    strictest = _strictest(constraint, counts, level)
    if strictest == (1 if constraint.relation == "<=" else 0):
        return ""
    return f"; they could certify {constraint.quantity} {constraint.relation} {percent(strictest)}"


def _strictest(constraint: Constraint, counts: Counts, level: float) -> float:
    """The strictest bound that these counts certify, rounded to the loose side."""
    upper = constraint.relation == "<="
    loose, strict = (1.0, 0.0) if upper else (0.0, 1.0)
    for _ in range(20):
        middle = (loose + strict) / 2
        keeps = float(p_if_broken(replace(constraint, bound=middle), counts)) <= level
        loose, strict = (middle, strict) if keeps else (loose, middle)
    return (math.ceil(loose * 1e4) if upper else math.floor(loose * 1e4)) / 1e4
