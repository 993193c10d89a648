"""Linear programs with gradients, and the metrics that are linear programs."""

from setpoint.lp import closed, forms
from setpoint.lp.arrow import Arrow
from setpoint.lp.factorize import Factorization, factorize
from setpoint.lp.gradient import ActiveSet, BurnIn, Envelope, Gradient, Unrolled
from setpoint.lp.highs import Highs
from setpoint.lp.layer import Engine, solve
from setpoint.lp.newton import Newton
from setpoint.lp.penalty import ExteriorPenalty
from setpoint.lp.program import Entries, LinearProgram, Operator
from setpoint.lp.reduce import Reduction, random_directions, sliced_inverse_directions, solve_reduced
from setpoint.lp.solution import OptimalityProof, Solution, Status
from setpoint.lp.structure import Dense, Iterative

__all__ = [
    "ActiveSet", "Arrow", "BurnIn", "Dense", "Engine", "Entries", "Envelope", "ExteriorPenalty", "Factorization",
    "Gradient", "Highs", "Iterative", "LinearProgram", "Newton", "Operator", "OptimalityProof", "Reduction",
    "Solution", "Status", "Unrolled", "closed", "factorize", "forms", "random_directions",
    "sliced_inverse_directions", "solve", "solve_reduced",
]  # fmt: skip
