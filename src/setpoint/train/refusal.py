"""What a promise needs, and the sentence that says so when it cannot be made."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.constraint import Constraint, percent
from setpoint.measure.rate import Gap, Rate
from setpoint.problem.evidence import p_if_broken, trials
from setpoint.problem.problem import Problem

Counts = NDArray[np.float64]


def needed(allowed: float, confidence: float) -> int:
    """The fewest samples of the class with which a share of `allowed` can be certified: 299 for 1 % at 95 %."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-allowed)) if allowed < 1 else 1


def allowed_share(constraint: Constraint) -> float:
    """The share that may fall on the wrong side: 1 % for `fpr <= 1%` and for `recall >= 99%`."""
    return constraint.bound if constraint.relation == "<=" else 1 - constraint.bound


def safe_side(constraint: Constraint) -> int:
    """+1 if a higher threshold can only help the bound, -1 if a lower one, 0 if either may break it."""
    direction = constraint.quantity.direction if isinstance(constraint.quantity, Rate) else 0
    return direction if constraint.relation == "<=" else -direction


def counted(constraint: Constraint) -> str:
    """The samples that the bound is a share of, in a word."""
    rate = constraint.quantity.rate if isinstance(constraint.quantity, Gap) else constraint.quantity
    assert isinstance(rate, Rate)
    tp, fp, fn, tn = map(bool, rate.whole)
    return "positives" if tp and fn and not fp else "negatives" if fp and tn and not tp else "samples"


def refuse_confidence(confidence: float) -> None:
    """A confidence is a probability short of certainty."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise BadSetting(f"confidence must lie between 0 and 1, such as 0.95, got {confidence!r}")


def refuse_the_impossible(problem: Problem) -> None:
    """Bounds that no number of samples can show to hold."""
    for constraint in problem.constraints:
        if constraint.relation == "==":
            raise BadProblem(f"no data can show that {constraint} holds exactly; certify <= or >= instead")
        if allowed_share(constraint) <= 0:
            raise BadProblem(f"no number of samples can certify {constraint}; leave a little room, such as 0.1%")


def refusal(problem: Problem, counts: Counts, confidence: float, level: float) -> str:
    """What the samples at the most promising threshold lack: how many are needed, and what they could certify.

    Counts `(4,)`, or by group `(G, 4)`.
    """
    seen = [(c, counts if isinstance(c.quantity, Gap) else counts.reshape(-1, 4).sum(0)) for c in problem.constraints]
    constraint, at = max(seen, key=lambda pair: float(p_if_broken(*pair)))
    could = (
        f"they could certify {constraint.quantity} {constraint.relation} {percent(_strictest(constraint, at, level))}"
    )
    sizes = np.atleast_1d(trials(constraint, at)).astype(int).tolist()
    kind, asked = counted(constraint), f"{constraint} at confidence {confidence:g}"
    if safe_side(constraint):
        enough = needed(allowed_share(constraint), 1 - level)
        if sizes[0] < enough:
            return f"{asked} needs {enough} {kind}, but there are {sizes[0]}; {could}"
    times = next((m for m in 1.25 ** np.arange(1, 20) if p_if_broken(constraint, np.rint(m * at)) <= level), None)
    more = f"some {times:.2g} times as many would do" if times else "there it is broken, so ask for less"
    where = f"at the most promising threshold there are {' and '.join(map(str, sizes))} {kind} to judge it by"
    return f"{asked} is not certified: {where}; {more}; {could}"


def _strictest(constraint: Constraint, counts: Counts, level: float) -> float:
    """The strictest bound that these counts certify, rounded to the loose side."""
    upper = constraint.relation == "<="
    loose, strict = (1.0, 0.0) if upper else (0.0, 1.0)
    for _ in range(40):
        middle = (loose + strict) / 2
        keeps = float(p_if_broken(replace(constraint, bound=middle), counts)) <= level
        loose, strict = (middle, strict) if keeps else (loose, middle)
    return (math.ceil(loose * 1e4) if upper else math.floor(loose * 1e4)) / 1e4
