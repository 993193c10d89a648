"""Rates beyond those at the top: weighted by a column, in the first places of lists, and rarer ones of two classes."""

from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.rate import balanced_accuracy, false_omission, fdr, lift
from setpoint.measure.worth import Cost, Weighted

__all__ = ["Cost", "InFirst", "Weighted", "balanced_accuracy", "false_omission", "fdr", "hit", "lift"]
