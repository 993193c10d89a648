"""The class weight that a network is trained under when no solver is named."""

from __future__ import annotations

from setpoint.measure.rate import Rate, fpr
from setpoint.problem.problem import Problem
from setpoint.train.linear import deciding_bound

#: Of the positives, where few negatives may pass.
LOWERED = 0.5
#: How few: the largest share of negatives for which it was thought of.
FEW = 0.05


def lean_weight(problem: Problem) -> float | None:
    """A half for the positives where a bound of 5 % or less on the negatives that pass decides, else none.

    The negatives nearest to such a threshold are what a network has to tell apart, and they are few among many that are
    easy. The study of networks found more weight on negatives to be better over all its sets together, by points on
    some; with a quarter in place of a half it gained more on some and lost more than a point on others. For bounds on
    positives it was tried on a few splits only, and gained nothing.
    """
    bound = None if problem.group is not None else deciding_bound(problem)
    if bound is None or not isinstance(bound.quantity, Rate) or bound.quantity.whole != fpr.whole:
        return None
    return LOWERED if round(min(bound.bound, 1 - bound.bound), 9) <= FEW else None
