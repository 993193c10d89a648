"""How to make the question differentiable: thresholds found, prices solved, and the baselines."""
