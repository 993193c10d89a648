"""Losses and solvers beside those at the top of `setpoint`, and their settings: `sp.losses.Focal()`."""

from setpoint.solve.ascent import Climb, NuPI
from setpoint.solve.augmented import PerNegative, PerPositive
from setpoint.solve.correction import Correction, Slack
from setpoint.solve.in_lists import ImplicitLists
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.losses import LDAM, ClassBalanced, ClassCrossEntropy, Focal, Margin, MiniBatchAUC
from setpoint.solve.mixture import Mixture, best_mixture
from setpoint.solve.pairwise import PairwiseArea
from setpoint.solve.penalty import Penalty
from setpoint.solve.price import Damping
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
from setpoint.solve.solver import Solver
from setpoint.solve.top_k import ImplicitTopK
from setpoint.solve.with_anchor import WithAnchor

__all__ = [
    "LDAM",
    "AUCLoss",
    "ByArea",
    "ByAsk",
    "ClassBalanced",
    "ClassCrossEntropy",
    "Climb",
    "Correction",
    "Damping",
    "FScoreLoss",
    "Focal",
    "Growth",
    "ImplicitLastLayer",
    "ImplicitLists",
    "ImplicitTopK",
    "JaccardLoss",
    "Margin",
    "MiniBatchAUC",
    "Mixture",
    "MulticlassAUCLoss",
    "NuPI",
    "PairwiseArea",
    "Penalty",
    "PerNegative",
    "PerPositive",
    "PrecisionAtRecallLoss",
    "ProxyLagrangian",
    "RecallAtPrecisionLoss",
    "Slack",
    "Solver",
    "WithAnchor",
    "best_mixture",
]
