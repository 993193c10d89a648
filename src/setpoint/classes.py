"""Several classes or labels: rates of classes, shifts per class and the solvers that learn them."""

from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.over_classes import ClassGap, Proportional
from setpoint.solve.augmented_multiclass import AugmentedMulticlass, EveryOutput, OwnOutput
from setpoint.solve.multilabel import OneVsRest
from setpoint.solve.shifts import ImplicitShifts

__all__ = [
    "AugmentedMulticlass",
    "ClassGap",
    "EveryOutput",
    "ImplicitShifts",
    "Macro",
    "Micro",
    "OfClass",
    "OneVsRest",
    "OwnOutput",
    "Proportional",
]
