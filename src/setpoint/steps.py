"""Steps from score minus threshold to "flagged": the hard one, and the smooth ones that have a gradient."""

from setpoint.measure.step import HardStep, HingeStep, SigmoidStep, SoftplusStep

__all__ = ["HardStep", "HingeStep", "SigmoidStep", "SoftplusStep"]
