"""setpoint: train the model for the operating point it will be judged at.

import setpoint as sp

problem = sp.minimize(sp.fnr, sp.fpr <= 0.01)
result = sp.fit(model, problem, train=loader, held_out=loader)
result.point.threshold, result.point.rates
"""

from setpoint.lazy import lazy_names

__version__ = "0.2.0"
__getattr__, __dir__ = lazy_names(__name__, __file__)

# `SetpointClassifier`, `Tuned`, `load_run` and `export_onnx` are public too, but `import *` must work without
# scikit-learn, polars and onnx.
__all__ = [
    "Anchored", "AugmentedLagrangian", "Auto", "Batches", "Checkpoint", "CrossEntropy", "ImplicitThreshold",
    "Lagrangian", "Metric", "OperatingPoint", "PopulationWeights", "Problem", "Rate", "Ridge", "ScoreTally",
    "SetpointError", "Watch", "accuracy", "ask", "calibrate", "classes", "cost", "error", "evaluate", "f_score", "fit",
    "flagged", "fnr", "fpr", "g_mean", "jaccard", "kappa", "losses", "lp", "maximize", "mcc", "methods", "minimize",
    "npv", "precision", "rates", "recall", "report", "steps", "tnr",
]  # fmt: skip
