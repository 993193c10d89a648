"""Cross-entropy under an elastic net: sum a_i CE_i + lasso |theta|_1 + ridge / 2 |theta|^2, bias free.

Newton's method in which each quadratic model keeps its |theta|_1. The model is minimised exactly by searching for the
signs of the parameters (Lee, Battle, Raina and Ng, 2006). Only columns that can differ from 0 take part: those that do,
and those whose slope is steeper than the penalty.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.rows import Rows

Array = NDArray[np.float64]

#: Added to the diagonal of each quadratic model, for columns that repeat one another.
SLIGHT = 1e-8
#: At most so many columns, and twice those that take part already, begin to take part in a step.
MOST_NEW = 20
#: The tolerance of minima that are only started from.
LOOSE = 1e-4
#: The search for the signs ends after so many solved systems. Any point on the way is lower than the start, so the next
#: Newton step goes on from there; without this limit, rows of noise could take minutes.
MOST_SOLVED = 100


def elastic_net(
    rows: Rows, weights: Tensor, lasso: float, ridge: float = 0.0, start: Tensor | None = None, tolerance: float = 1e-10
) -> Tensor:
    """The minimum, to a relative `tolerance` of the loss; the last parameter is the bias.

    Without a start it comes from minima under stronger penalties.
    """
    x, labels = rows.x, rows.labels
    width = x.shape[1]
    theta = torch.zeros(width, dtype=torch.float64) if start is None else start.clone()
    if start is None and lasso < float((x[:, :-1].T @ (weights * labels)).abs().max()):
        theta = elastic_net(rows, weights, 2 * lasso, ridge, tolerance=LOOSE)
    cost = torch.full_like(theta, lasso)
    squared = torch.full_like(theta, ridge)
    cost[-1] = squared[-1] = 0.0

    def total(scores: Tensor, at: Tensor) -> float:
        entropy = (weights * (F.softplus(scores) - labels * scores)).sum()
        return float(entropy + cost @ at.abs() + squared @ at.square() / 2)

    scores = x @ theta
    value = total(scores, theta)
    for _ in range(100):
        passed = torch.sigmoid(scores)
        slope = x.T @ (weights * (passed - labels)) + squared * theta
        excess = torch.where(theta != 0, torch.inf, slope.abs() - cost)
        # The columns that pull hardest; most of the others no longer pull once these take part.
        size = min(int((excess > 0).sum()), 2 * int((theta != 0).sum()) + MOST_NEW)
        taking = excess.topk(size).indices.sort().values
        own = x[:, taking]
        curvature = own.T @ ((weights * passed * (1 - passed)).unsqueeze(-1) * own)
        curvature.diagonal().add_(squared[taking] + SLIGHT)
        target = curvature @ theta[taking] - slope[taking]
        aim = _quadratic(*(one.numpy() for one in (curvature, target, cost[taking], theta[taking])))
        move = torch.zeros_like(theta)
        move[taking] = torch.from_numpy(aim) - theta[taking]
        promised = float(slope @ move + cost @ ((theta + move).abs() - theta.abs()))
        if promised >= -tolerance * abs(value):
            return theta + move
        length, moved = 1.0, own @ move[taking]
        while (after := total(scores + length * moved, theta + length * move)) > value + 1e-4 * length * promised:
            length /= 2
            if length < 1e-6:
                return theta
        theta, scores, value = theta + length * move, scores + length * moved, after
    return theta


def _quadratic(curvature: Array, target: Array, cost: Array, z: Array) -> Array:
    """The minimum of 1/2 z'Hz - t'z + sum c_j |z_j|, or a lower point than the start, by the search for the signs of z.

    In NumPy, whose small operations take less time than those of torch.
    """
    sign, free = np.sign(z), cost == 0
    entered = np.zeros(0, dtype=np.int64)
    for _ in range(MOST_SOLVED):
        inside = ((sign != 0) | free).nonzero()[0]
        aim = np.zeros_like(z)
        aim[inside] = np.linalg.solve(curvature[inside[:, None], inside], (target - cost * sign)[inside])
        # The minimum for these signs, or the best of the points on the way to it at which a parameter meets 0.
        step, slope = aim - z, curvature @ z - target
        meets = ((z * aim < 0) & ~free).nonzero()[0]
        lengths = np.concatenate([[1.0], z[meets] / (z[meets] - aim[meets])])
        points = z + lengths[:, None] * step
        gains = lengths * (slope @ step) + lengths**2 * (step @ curvature @ step) / 2
        gains = gains + np.abs(points) @ cost - np.abs(z) @ cost
        best = int(gains.argmin())
        if not gains[best] < 0 and len(entered) > 1:
            # Too many at once: only the one that pulls hardest.
            sign[entered[1:]] = 0.0
            entered = entered[:1]
            continue
        if not gains[best] < 0 and len(entered):
            # Only rounding is left to gain.
            return z
        z = points[best]
        z[meets[best - 1 : best]] = 0.0
        sign, entered = np.sign(z), entered[:0]
        if best == 0 and not len(meets):
            # Optimal for its signs: parameters at 0 that pull harder than their cost are next.
            slope = curvature @ z - target
            excess = np.where(sign == 0, np.abs(slope) - cost, -np.inf)
            entered = np.argsort(-excess)[: int((excess > 1e-9 * cost).sum())]
            if not len(entered):
                return z
            sign[entered] = -np.sign(slope[entered])
    return z
