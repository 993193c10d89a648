"""The best mixture of snapshots: a small linear program over the objective and the violations of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.measure.constraint import SLACK

#: A snapshot that the program gives less is left out.
_NOTHING = 1e-7


@dataclass(frozen=True)
class Mixture:
    """The snapshots to draw from and how often, and the one to take if only one may be used.

    Attributes:
        weights: Share of each snapshot in use, by its number; at most m + 1 of them.
        objective: Mean objective of the mixture.
        violations: Mean violation of each bound.
        feasible: Whether no mean violation is positive.
        single: Number of the feasible snapshot of the lowest objective; if none is feasible, of the one whose largest
            violation is the smallest.

    Example:
        >>> import setpoint as sp
        >>> sp.losses.best_mixture([0.3, 0.2], [[-0.01], [0.01]]).single
        0
    """

    weights: dict[int, float]
    objective: float
    violations: tuple[float, ...]
    feasible: bool
    single: int


def best_mixture(objectives: Any, violations: Any) -> Mixture:
    """Find the mixture of T snapshots with the lowest mean objective whose mean violations are not positive.

    If no mixture is feasible, the largest violation is first made as small as it can be. A vertex of the linear program
    is taken, which uses at most m + 1 snapshots.

    Args:
        objectives: Objective of each snapshot, to be minimised, `(T,)`.
        violations: Violation of each bound by each snapshot, positive where broken, `(T, m)`. An equality comes as two
            columns, excess and -excess.

    Returns:
        The shares of the snapshots, and what the mixture reaches.

    Raises:
        ShapeMismatch: If the shapes do not fit.
        BadSetting: If there is no snapshot, or a number is not finite.

    Example:
        >>> import setpoint as sp
        >>> mixture = sp.losses.best_mixture([0.3, 0.2], [[-0.01], [0.01]])
        >>> mixture.weights, mixture.feasible
        ({0: 0.5, 1: 0.5}, True)
    """
    costs, broken = np.asarray(objectives, dtype=float), np.asarray(violations, dtype=float)
    if costs.ndim != 1 or broken.ndim != 2 or len(costs) != len(broken):
        raise ShapeMismatch(f"objectives {costs.shape} must be (T,) and violations {broken.shape} (T, m)")
    if len(costs) == 0:
        raise BadSetting("no snapshots to mix; keep at least one")
    if not np.isfinite(costs).all() or not np.isfinite(broken).all():
        raise BadSetting("objectives and violations of snapshots must be finite; drop those that diverged")
    least = _least_violation(broken)
    shares = _vertex(costs, broken, least)
    kept = {int(place): float(shares[place]) for place in np.flatnonzero(shares > 0)}
    mean = tuple(float(v) for v in shares @ broken)
    return Mixture(kept, float(shares @ costs), mean, max(mean, default=0.0) <= SLACK, _single(costs, broken))


def _least_violation(broken: NDArray[np.float64]) -> float:
    """The smallest largest violation of any mixture, and 0 when the bounds can be met."""
    snapshots, bounds = broken.shape
    rows = np.column_stack([broken.T, -np.ones(bounds)])
    worst = _linprog(np.append(np.zeros(snapshots), 1.0), rows, np.zeros(bounds), np.append(np.ones(snapshots), 0.0))
    return max(float(worst[-1]), 0.0) if bounds else 0.0


def _vertex(costs: NDArray[np.float64], broken: NDArray[np.float64], allowed: float) -> NDArray[np.float64]:
    # The solver's own tolerance must not turn the best mixture of an infeasible set into no mixture.
    found = _linprog(costs, broken.T, np.full(broken.shape[1], allowed * (1 + 1e-9)), np.ones(len(costs)))
    shares: NDArray[np.float64] = np.where(found > _NOTHING, found, 0.0)
    shares /= shares.sum()
    return shares


def _linprog(costs: Any, rows: Any, limits: Any, whole: Any) -> NDArray[np.float64]:
    """A vertex of: minimise costs . x where rows x <= limits, whole . x = 1 and x >= 0."""
    answer = scipy.optimize.linprog(costs, rows, limits, whole[None], [1.0], method="highs-ds")
    if answer.x is None:
        raise BadSetting("objectives or violations differ too much in size to be mixed; drop snapshots that diverged")
    found: NDArray[np.float64] = answer.x
    return found


def _single(costs: NDArray[np.float64], broken: NDArray[np.float64]) -> int:
    worst = broken.max(1, initial=0.0)
    feasible = worst <= SLACK
    if feasible.any():
        return int(np.where(feasible, costs, np.inf).argmin())
    return int(np.lexsort((costs, worst))[0])
