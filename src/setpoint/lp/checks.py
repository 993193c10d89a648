"""Scores, labels, weights and settings of a metric's program, checked once at its border."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint.errors import BadLabels, BadScores, BadSetting, ShapeMismatch
from setpoint.measure.sample import refuse_huge_scores, refuse_odd_weights


def check_binary(
    scores: Tensor, labels: Tensor, weights: Tensor | None, *, batches: bool = False
) -> tuple[Tensor, Tensor]:
    """A mask of the positive samples, and the weights in float64; with `batches` leading dimensions are allowed."""
    if labels.shape != scores.shape or scores.dim() == 0 or (scores.dim() > 1 and not batches):
        raise ShapeMismatch(f"scores {tuple(scores.shape)} and labels {tuple(labels.shape)} must be equal vectors")
    positive = labels == 1
    if not torch.equal(positive.to(labels.dtype), labels):
        raise BadLabels("labels must be 0 or 1")
    _check_scores(scores)
    return positive, _check_weights(scores, weights)


def check_classes(scores: Tensor, labels: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Whole-number labels within the columns of the scores, and the weights in float64."""
    if scores.dim() != 2 or labels.shape != scores.shape[:1]:
        raise ShapeMismatch(
            f"scores {tuple(scores.shape)} must hold one row per sample and one column per class, labels "
            f"{tuple(labels.shape)} one class per row"
        )
    whole = labels.long()
    if not bool((whole == labels).all()) or not bool(((whole >= 0) & (whole < scores.shape[1])).all()):
        raise BadLabels(f"labels must be whole numbers from 0 to {scores.shape[1] - 1}")
    _check_scores(scores)
    return whole, _check_weights(scores[:, 0], weights)


def _check_scores(scores: Tensor) -> None:
    # A finite sum of floats needs no closer look at each of them.
    finite = scores.is_floating_point() and (
        math.isfinite(float(scores.detach().sum())) or bool(scores.detach().isfinite().all())
    )
    if not finite:
        raise BadScores("scores must be finite floating-point numbers; look for nan, inf or whole numbers in them")
    refuse_huge_scores(scores)


def _check_weights(scores: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return torch.ones_like(scores, dtype=torch.float64)
    if weights.shape != scores.shape:
        raise ShapeMismatch(f"weights {tuple(weights.shape)} must have one entry per sample: {tuple(scores.shape)}")
    refuse_odd_weights(weights)
    return weights.double()


def check_share(name: str, share: float) -> float:
    if not 0 <= share <= 1:
        raise BadSetting(f"{name} is {share}; it must lie between 0 and 1")
    return share


def check_price(shortfall: float) -> float:
    if not shortfall > 0:
        raise BadSetting(f"shortfall is {shortfall}; a bound whose breach costs nothing is no bound")
    if shortfall > 1e12:
        raise BadSetting(
            f"shortfall is {shortfall}; a price beyond 1e12 leaves nothing of the rest, give a smaller one"
        )
    return shortfall


def check_beta(beta: float) -> float:
    if not 1e-6 <= beta <= 1e6:
        raise BadSetting(f"beta is {beta}; it must lie between 1e-6 and 1e6")
    return beta


def check_margin(margin: float, least: float = 1e-300) -> float:
    if not margin >= least:
        raise BadSetting(f"margin is {margin}; it must be positive")
    return float(margin)


def check_squash_margin(margin: float) -> None:
    if not 0 <= margin <= 0.5:
        raise BadSetting(f"margin is {margin}; the share flagged of a sample needs one between 0 and 0.5")
