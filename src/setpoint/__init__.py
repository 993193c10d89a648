"""setpoint: train the model for the operating point it will be judged at.

import setpoint as sp

problem = sp.minimize(sp.fnr, sp.fpr <= 0.01)
result = sp.fit(model, problem, train=loader, held_out=loader)
result.point.threshold, result.point.rates
"""

from typing import TYPE_CHECKING

from setpoint.lazy import lazy_names

if TYPE_CHECKING:
    from setpoint import lp
    from setpoint.data.batch import Batches
    from setpoint.data.index import with_index
    from setpoint.decide.calibrate import calibrate, evaluate
    from setpoint.decide.shift_point import ShiftPoint, evaluate_shifts
    from setpoint.decide.tally import ScoreTally
    from setpoint.errors import SetpointError
    from setpoint.estimator import SetpointClassifier as SetpointClassifier
    from setpoint.estimator import Tuned as Tuned
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
    from setpoint.measure.step import HardStep, HingeStep, SigmoidStep, SoftplusStep
    from setpoint.problem.certificate import Certificate, Estimate
    from setpoint.problem.check import Check
    from setpoint.problem.language import ask
    from setpoint.problem.point import OperatingPoint
    from setpoint.problem.problem import Problem, maximize, minimize
    from setpoint.run.fit import FitResult, fit
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
    from setpoint.solve.sample_prices import ByArea, ByAsk, Growth
    from setpoint.solve.shifts import ImplicitShifts
    from setpoint.solve.solver import Solver
    from setpoint.solve.top_k import ImplicitTopK
    from setpoint.solve.with_anchor import WithAnchor
    from setpoint.train.accumulate import accumulate
    from setpoint.train.auto import Auto
    from setpoint.train.checkpoint import Checkpoint
    from setpoint.train.correct import correct
    from setpoint.train.ensemble import Ensemble
    from setpoint.train.head import head_features
    from setpoint.train.recipes import Anchored, Ridge
    from setpoint.train.splits import Splits
    from setpoint.train.trial import Trial

__version__ = "0.1.0"

#: Where each public name lives. It is loaded when it is first asked for; the imports above say the same to
#: editors and type checkers, and a test holds the two together.
_HOMES = {
    "errors": "SetpointError",
    "measure.classes": "Macro Micro OfClass",
    "measure.constraint": "Constraint",
    "measure.rate": "Metric Rate accuracy error f_score flagged fnr fpr g_mean jaccard kappa mcc precision recall tnr",
    "measure.step": "HardStep HingeStep SigmoidStep SoftplusStep",
    "problem.check": "Check",
    "problem.language": "ask",
    "problem.certificate": "Certificate Estimate",
    "problem.point": "OperatingPoint",
    "problem.problem": "Problem maximize minimize",
    "solve.ascent": "NuPI",
    "solve.augmented": "AugmentedLagrangian PerNegative PerPositive",
    "solve.augmented_multiclass": "AugmentedMulticlass EveryOutput OwnOutput",
    "solve.baseline": "CrossEntropy",
    "solve.correction": "Correction Slack",
    "solve.implicit": "ImplicitThreshold",
    "solve.lagrangian": "Lagrangian",
    "solve.last_layer": "ImplicitLastLayer",
    "solve.losses": "LDAM ClassBalanced ClassCrossEntropy Focal Margin MiniBatchAUC",
    "solve.mixture": "Mixture best_mixture",
    "solve.multilabel": "OneVsRest",
    "solve.pairwise": "PairwiseArea",
    "solve.penalty": "Penalty",
    "solve.program": "AUCLoss FScoreLoss JaccardLoss MulticlassAUCLoss PrecisionAtRecallLoss RecallAtPrecisionLoss",
    "solve.proxy": "ProxyLagrangian",
    "solve.sample_prices": "ByArea ByAsk Growth",
    "decide.shift_point": "ShiftPoint evaluate_shifts",
    "solve.shifts": "ImplicitShifts",
    "solve.solver": "Solver",
    "solve.top_k": "ImplicitTopK",
    "solve.with_anchor": "WithAnchor",
    "train.accumulate": "accumulate",
    "data.batch": "Batches",
    "decide.calibrate": "calibrate evaluate",
    "train.correct": "correct",
    "train.ensemble": "Ensemble",
    "train.head": "head_features",
    "data.index": "with_index",
    "run.fit": "FitResult fit",
    "train.checkpoint": "Checkpoint",
    "train.auto": "Auto",
    "train.recipes": "Anchored Ridge",
    "train.splits": "Splits",
    "decide.tally": "ScoreTally",
    "train.trial": "Trial",
}
#: Names of extras: not in `__all__`, since `import *` must work without scikit-learn.
_EXTRAS = {"estimator": "SetpointClassifier Tuned"}
_ROOMS = ("data", "decide", "errors", "lp", "measure", "problem", "run", "solve", "train")

__all__ = [
    "LDAM",
    "AUCLoss",
    "Anchored",
    "AugmentedLagrangian",
    "AugmentedMulticlass",
    "Auto",
    "Batches",
    "ByArea",
    "ByAsk",
    "Certificate",
    "Check",
    "Checkpoint",
    "ClassBalanced",
    "ClassCrossEntropy",
    "Constraint",
    "Correction",
    "CrossEntropy",
    "Ensemble",
    "Estimate",
    "EveryOutput",
    "FScoreLoss",
    "FitResult",
    "Focal",
    "Growth",
    "HardStep",
    "HingeStep",
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
    "ScoreTally",
    "SetpointError",
    "ShiftPoint",
    "SigmoidStep",
    "Slack",
    "SoftplusStep",
    "Solver",
    "Splits",
    "Trial",
    "WithAnchor",
    "accumulate",
    "accuracy",
    "ask",
    "best_mixture",
    "calibrate",
    "correct",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {name: f"setpoint.{home}" for home, names in (*_HOMES.items(), *_EXTRAS.items()) for name in names.split()},
    _ROOMS,
)
