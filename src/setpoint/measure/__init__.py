"""Measuring: steps, counts, rates, curves and areas at a threshold, computed on tensors alone."""
