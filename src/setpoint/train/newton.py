"""Cross-entropy with a ridge by Newton's method: sum a_i CE_i + ridge / 2 |theta|^2, the bias (the last one) free."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.data.standardise import AT_ONCE

#: From a slope to the Newton step: the inverse of a curvature.
Undo = Callable[[Tensor], Tensor]


def newton(
    rows: Rows,
    weights: Tensor,
    start: Tensor | None,
    undo: Undo | None = None,
    *,
    ridge: float | None = None,
    products: Tensor | None = None,
    tolerance: float = 1e-10,
    pace: float = float("inf"),
) -> tuple[Tensor, Undo]:
    """The minimum of sum a_i CE_i + ridge / 2 |theta|^2, and the inverse of the last curvature.

    A given inverse `undo` is used for the first step. A curvature, the costly part of a step, is used again as long as
    each step shrinks what is left to gain by the factor `pace`. The ridge is the mean of the weights if none is given.
    """
    ridge = float(weights.mean()) if ridge is None else ridge
    pull = torch.full((rows.x.shape[1],), ridge, dtype=torch.float64)
    pull[-1] = 1e-9
    theta = torch.zeros_like(pull) if start is None else start.clone()

    def cost(scores: Tensor, at: Tensor) -> Tensor:
        return (weights * (F.softplus(scores) - rows.labels * scores)).sum() + ridge * (at[:-1] @ at[:-1]) / 2

    scores = rows.x @ theta
    value, left = cost(scores, theta), float("inf")
    for _ in range(60):
        passed = torch.sigmoid(scores)
        slope = rows.x.T @ (weights * (passed - rows.labels)) + pull * theta
        move = slope if undo is None else undo(slope)
        gain = float(slope @ move)
        if undo is not None and gain <= tolerance * float(value.abs()):
            # So near the minimum the last curvature is good enough.
            return theta - move, undo
        if undo is None or not gain * pace <= left:
            undo = invert_curvature(rows.x, weights * passed * (1 - passed), pull, products)
            move = undo(slope)
            gain = float(slope @ move)
        left = gain
        length, moved = 1.0, rows.x @ move
        while (
            float(after := cost(scores - length * moved, theta - length * move)) > value - 1e-4 * length * gain
            and length > 1e-6
        ):
            length /= 2
        theta, scores = theta - length * move, scores - length * moved
        if float(value - after) <= tolerance * float(value.abs()):
            break
        value = after
    assert undo is not None
    return theta, undo


def products_of(x: Tensor) -> Tensor | None:
    """The products of all rows with one another, if they are fewer than their features; None otherwise."""
    return x[:, :-1] @ x[:, :-1].T if len(x) < x.shape[1] - 1 else None


def invert_curvature(x: Tensor, weights: Tensor, pull: Tensor, products: Tensor | None) -> Undo:
    """The inverse of the curvature x' diag(weights) x + diag(pull)."""
    if products is None:
        curvature = squares(x, weights)
        curvature.diagonal().add_(pull)
        factors = torch.linalg.lu_factor(curvature)
        return lambda slope: torch.linalg.lu_solve(*factors, slope.unsqueeze(-1)).squeeze(-1)
    # The matrix inversion lemma, with the bias as a border: a matrix of rows by rows instead of features by features.
    root, ridge = weights.sqrt(), float(pull[0])
    small = root.unsqueeze(-1) * products * root
    small.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(small)

    def inner(slope: Tensor) -> Tensor:
        within = torch.cholesky_solve((root * (x[:, :-1] @ slope)).unsqueeze(-1), factor).squeeze(-1)
        return (slope - x[:, :-1].T @ (root * within)) / ridge

    border = x[:, :-1].T @ weights
    across = inner(border)
    corner = weights.sum() + pull[-1] - border @ across

    def undo(slope: Tensor) -> Tensor:
        move = inner(slope[:-1])
        bias = (slope[-1] - border @ move) / corner
        return torch.cat([move - bias * across, bias.unsqueeze(0)])

    return undo


def leave_one_out(rows: Rows, weights: Tensor, theta: Tensor, ridge: float, products: Tensor | None = None) -> Tensor:
    """The score of each row by the model of all other rows, up to the accuracy of one Newton step from the minimum.

    Leaving a row out moves its own score by r g / (1 - b r), where r = x' H^-1 x is the reach of the row in the
    curvature H of all rows, and g and b are the slope and the curvature of its own loss. The bias stays as it is:
    without a positive it would fall for that row alone, which is no property of the features.

    Args:
        rows: The rows.
        weights: Their weights.
        theta: The minimum of the loss on all rows, under the ridge.
        ridge: The strength of the ridge.
        products: The products of the rows (see `products_of`), if they are fewer than their features.
    """
    scores = rows.x @ theta
    passed = torch.sigmoid(scores)
    bend = weights * passed * (1 - passed)
    reach = _reach(rows.x, bend, ridge, products)
    moved: Tensor = scores + reach * weights * (passed - rows.labels) / (1 - bend * reach).clamp(min=1e-9)
    return moved


def _reach(x: Tensor, bend: Tensor, ridge: float, products: Tensor | None) -> Tensor:
    """x_i' H^-1 x_i of each row, with H = x' diag(bend) x + ridge, without the bias."""
    if products is None:
        curvature = squares(x, bend)[:-1, :-1]
        curvature.diagonal().add_(ridge)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(curvature))
        return torch.cat([(own @ inverse).mul_(own).sum(1) for own in x[:, :-1].split(AT_ONCE)])
    # The matrix inversion lemma, as in `invert_curvature`.
    root = bend.sqrt()
    small = root.unsqueeze(-1) * products * root
    small.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(small)
    across: Tensor = torch.linalg.solve_triangular(factor, root.unsqueeze(-1) * products, upper=False)
    return products.diagonal().sub(across.square().sum(0)).div(ridge)


def squares(x: Tensor, weights: Tensor) -> Tensor:
    """x' diag(weights) x, computed in blocks of rows that fit into the cache, without a second copy of x."""
    parts = zip(x.split(AT_ONCE), weights.split(AT_ONCE))
    total = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
    for rows, own in parts:
        total.addmm_(rows.T, own.unsqueeze(-1) * rows)
    return total
