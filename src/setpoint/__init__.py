"""setpoint: train the model for the operating point it will be judged at.

import setpoint as sp

problem = sp.minimize(sp.fnr, sp.fpr <= 0.01)
result = sp.fit(model, problem, train=loader, held_out=loader)
result.point.threshold, result.point.rates
"""

from setpoint import lp
from setpoint.errors import SetpointError
from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import (
    Metric,
    Rate,
    accuracy,
    error,
    f_score,
    flagged,
    fnr,
    fpr,
    g_mean,
    jaccard,
    kappa,
    mcc,
    precision,
    recall,
    tnr,
)
from setpoint.measure.step import HardStep, SigmoidStep, SoftplusStep
from setpoint.problem.language import ask
from setpoint.problem.point import Certificate, OperatingPoint
from setpoint.problem.problem import Problem, maximize, minimize
from setpoint.solve.ascent import NuPI
from setpoint.solve.augmented import AugmentedLagrangian, PerNegative, PerPositive
from setpoint.solve.augmented_multiclass import AugmentedMulticlass, EveryOutput, OwnOutput
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.correction import Correction, Slack
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.lagrangian import Lagrangian
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.losses import LDAM, ClassBalanced, ClassCrossEntropy, Focal, Margin, MiniBatchAUC
from setpoint.solve.mixture import Mixture, best_mixture
from setpoint.solve.multilabel import OneVsRest
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.penalty import Penalty
from setpoint.solve.program import (
    AUCLoss,
    FScoreLoss,
    JaccardLoss,
    MulticlassAUCLoss,
    PrecisionAtRecallLoss,
    RecallAtPrecisionLoss,
)
from setpoint.solve.proxy import ProxyLagrangian
from setpoint.solve.sample_prices import Growth
from setpoint.solve.shift_point import ShiftPoint, evaluate_shifts
from setpoint.solve.shifts import ImplicitShifts
from setpoint.solve.solver import Solver
from setpoint.solve.top_k import ImplicitTopK
from setpoint.solve.with_anchor import WithAnchor
from setpoint.train.anchored import Anchored, Ridge
from setpoint.train.auto import Auto
from setpoint.train.batch import Batches
from setpoint.train.calibrate import calibrate, evaluate
from setpoint.train.ensemble import Ensemble
from setpoint.train.head import head_features
from setpoint.train.index import with_index
from setpoint.train.loop import FitResult, fit
from setpoint.train.trial import Trial

__version__ = "0.1.0"

__all__ = [
    "LDAM",
    "AUCLoss",
    "Anchored",
    "AugmentedLagrangian",
    "AugmentedMulticlass",
    "Auto",
    "Batches",
    "Certificate",
    "ClassBalanced",
    "ClassCrossEntropy",
    "Constraint",
    "Correction",
    "CrossEntropy",
    "Ensemble",
    "EveryOutput",
    "FScoreLoss",
    "FitResult",
    "Focal",
    "Growth",
    "HardStep",
    "ImplicitLastLayer",
    "ImplicitShifts",
    "ImplicitThreshold",
    "ImplicitTopK",
    "JaccardLoss",
    "Lagrangian",
    "Macro",
    "Margin",
    "Metric",
    "Micro",
    "MiniBatchAUC",
    "Mixture",
    "MulticlassAUCLoss",
    "NuPI",
    "OfClass",
    "OneVsRest",
    "OperatingPoint",
    "OwnOutput",
    "PairwiseArea",
    "Penalty",
    "PerNegative",
    "PerPositive",
    "PrecisionAtRecallLoss",
    "Problem",
    "ProxyLagrangian",
    "Rate",
    "RecallAtPrecisionLoss",
    "Ridge",
    "SetpointError",
    "ShiftPoint",
    "SigmoidStep",
    "Slack",
    "SoftplusStep",
    "Solver",
    "Trial",
    "WithAnchor",
    "accuracy",
    "ask",
    "best_mixture",
    "calibrate",
    "error",
    "evaluate",
    "evaluate_shifts",
    "f_score",
    "fit",
    "flagged",
    "fnr",
    "fpr",
    "g_mean",
    "head_features",
    "jaccard",
    "kappa",
    "lp",
    "maximize",
    "mcc",
    "minimize",
    "precision",
    "recall",
    "tnr",
    "with_index",
]
