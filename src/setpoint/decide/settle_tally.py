"""The point to ship, from tallies of scores that are too many to sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from setpoint.decide.certify import is_certifiable
from setpoint.decide.settle import USELESS, USUAL, Confidence, Settled, decides_nothing
from setpoint.decide.tally import ScoreTally
from setpoint.errors import BadProblem, TooFewSamples
from setpoint.problem.certificate import AUTO
from setpoint.problem.problem import Problem

#: Counts the same scores again, once for each set of windows.
Again = Callable[[Sequence[NDArray[np.bool_]]], Sequence[ScoreTally]]


def settle_tally(problem: Problem, first: ScoreTally, again: Again, confidence: Confidence) -> Settled:
    """As `settle` on all scores at once, from two looks at them.

    Args:
        problem: A problem with one threshold.
        first: The tally of the first look.
        again: A function that takes the second look, for one or two sets of windows.
        confidence: A number demands a certificate, "auto" takes one where the scores suffice, None wants none.

    Returns:
        The point, the bare cut beside it, and why there is no certificate where one was wanted.
    """
    level = USUAL if isinstance(confidence, str) else confidence
    refusal, windows = None, [first.around(problem).windows]
    if level is not None and not (confidence == AUTO and not is_certifiable(problem)):
        try:
            windows.append(first.around(problem, level).windows)
        except (TooFewSamples, BadProblem) as cause:
            refusal = str(cause)
    tallies = again(windows)
    bare = tallies[0].calibrate(problem)
    if len(windows) == 1:
        return Settled(bare, refusal)
    try:
        point = tallies[1].calibrate(problem, level)
    except (TooFewSamples, BadProblem) as cause:
        return Settled(bare, str(cause))
    if confidence == AUTO and decides_nothing(point) and not decides_nothing(bare):
        return Settled(bare, f"{problem.promise} {USELESS}")
    return Settled(point, None, bare)
