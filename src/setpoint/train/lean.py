"""The default class weight of networks."""

from __future__ import annotations

from setpoint.measure.rate import Rate, fpr
from setpoint.problem.problem import Problem
from setpoint.train.linear import deciding_bound

#: The weight of the positives where few negatives may pass.
LOWERED = 0.5
#: The largest share of negatives that may pass for that weight.
FEW = 0.05


def lean_weight(problem: Problem) -> float | None:
    """The weight of positives: a half where a bound lets at most 5 % of the negatives pass, else None.

    With such a bound the negatives nearest to the threshold matter most, and they are few among many easy ones. In the
    study of networks, less weight on positives was better over all data sets together, and by points on some. A weight
    of a quarter gained more on some sets and lost more than a point on others. For bounds on positives it was tried on
    a few splits only, and gained nothing.
    """
    bound = None if problem.group is not None else deciding_bound(problem)
    if bound is None or not isinstance(bound.quantity, Rate) or bound.quantity.whole != fpr.whole:
        return None
    return LOWERED if round(min(bound.bound, 1 - bound.bound), 9) <= FEW else None
