"""The first rows of lists: nothing is chosen, since the ask says how many; bounds on means over lists are certified.

All lists stand for themselves, so that every bound is tested on all of them. If a bound is broken, its own test passes
with probability `1 - confidence` at most, and so do all tests together: several bounds need no correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from setpoint.decide.certify import unweighted
from setpoint.decide.samples_needed import refuse_the_impossible
from setpoint.errors import TooFewSamples
from setpoint.measure.constraint import Constraint, Quantity, percent
from setpoint.measure.in_first import InFirst
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate, Estimate
from setpoint.problem.evidence_of_lists import BETTING, BINOMIAL, Numbers, is_hit, lists_needed, p_beyond
from setpoint.problem.first_of_list import FirstOfList
from setpoint.problem.problem import Problem
from setpoint.problem.read_thresholds import first_rows

#: Repeats of the same lists that are tried, to say how many more would do.
_TIMES = (2, 3, 5, 10, 20, 50)


def find_first(problem: Problem, sample: Sample, names: Sequence[str] | None = None) -> FirstOfList:
    """The first rows of each list, as many as the objective looks at."""
    return first_rows(problem)


def values_of(quantity: Quantity, first: FirstOfList, sample: Sample) -> Numbers:
    """The value of a quantity in each list."""
    assert isinstance(quantity, InFirst)
    return np.asarray(quantity.of_each(first.count(sample)[0]).numpy())


def certify_lists(
    problem: Problem, sample: Sample, confidence: float, names: Sequence[str] | None = None
) -> tuple[FirstOfList, Certificate]:
    """The first rows of each list, with a certificate that all bounds hold with probability `confidence`.

    Raises:
        TooFewSamples: If a bound is not certified; the message says how many lists are needed.
    """
    first, sample = first_rows(problem), unweighted(sample)
    lists = len(values_of(problem.objective, first, sample))
    refuse_few_lists(problem, lists, confidence)
    for constraint in problem.constraints:
        values = values_of(constraint.quantity, first, sample)
        if p_beyond(constraint, values, constraint.relation) > 1 - confidence:
            raise TooFewSamples(_refusal(constraint, values, confidence))
    methods = dict.fromkeys(BINOMIAL if is_hit(constraint) else BETTING for constraint in problem.constraints)
    return first, Certificate(problem.promise, confidence, lists, " and ".join(methods))


def refuse_few_lists(problem: Problem, lists: int, confidence: float) -> None:
    """Refuse bounds that so many lists cannot certify, whatever their values."""
    refuse_the_impossible(problem)
    for constraint in problem.constraints:
        enough = lists_needed(constraint, confidence)
        if enough is None or lists < enough:
            asked = f"{constraint} at confidence {100 * confidence:.6g}%"
            raise TooFewSamples(
                f"{asked} needs {f'{enough:,}' if enough else 'more than 8 million'} lists, but there are {lists:,}"
            )


def needed_lists(problem: Problem, constraint: Constraint, confidence: float) -> int:
    """The fewest lists with which a bound can be certified: each of them has the best value."""
    return lists_needed(constraint, confidence) or 0


def _refusal(constraint: Constraint, values: Numbers, confidence: float) -> str:
    asked, size = f"{constraint} at confidence {100 * confidence:.6g}%", len(values)
    mean = float(values.mean())
    if constraint.violation_at(mean) >= 0:
        return f"{asked} is not certified: over {size} lists it is {percent(round(mean, 4))}; ask for less"
    more = (m for m in _TIMES if p_beyond(constraint, np.tile(values, m), constraint.relation) <= 1 - confidence)
    times = next(more, None)
    much = f"some {times} times as many lists would do" if times else "ask for less"
    could = _strictest(constraint, values, confidence)
    weaker = f"; they could certify {constraint.quantity} {constraint.relation} {percent(could)}" if could else ""
    return f"{asked} is not certified: over {size} lists it is {percent(round(mean, 4))}; {much}{weaker}"


def _strictest(constraint: Constraint, values: Numbers, confidence: float) -> float | None:
    """The strictest bound that these lists certify, rounded to the loose side; None if it says nothing."""
    upper = constraint.relation == "<="
    loose, strict = (1.0, 0.0) if upper else (0.0, 1.0)
    for _ in range(20):
        middle = (loose + strict) / 2
        keeps = p_beyond(replace(constraint, bound=middle), values, constraint.relation) <= 1 - confidence
        loose, strict = (middle, strict) if keeps else (loose, middle)
    found = (math.ceil(loose * 1e3) if upper else math.floor(loose * 1e3)) / 1e3
    return found if 0 < found < 1 else None


def estimate_lists(problem: Problem, sample: Sample, confidence: float) -> tuple[Estimate, ...]:
    """An estimate of the objective, from the values of the lists."""
    first = first_rows(problem)
    counts = first.count(sample)[0]
    values, weights = values_of(problem.objective, first, sample), counts[0, :, -1].numpy()
    size, value = len(values), float(weights @ values / weights.sum())
    # Half a list of each extreme: without it nothing is known of values that were not seen.
    values, weights = np.append(values, [0.0, 1.0]), np.append(weights, [weights.mean() / 2] * 2)
    share = weights / weights.sum()
    middle = float(share @ values)
    error = float(np.sqrt((share**2) @ (values - middle) ** 2 * size / max(size - 1, 1)))
    error *= float(scipy.special.stdtrit(max(size - 1, 1), (1 + confidence) / 2)) / (middle * (1 - middle))
    odds = scipy.special.logit(middle)
    low, high = (float(scipy.special.expit(odds + side * error)) for side in (-1, 1))
    method = "Student's t over lists"
    return (Estimate(str(problem.objective), value, min(low, value), max(high, value), confidence, size, method),)
