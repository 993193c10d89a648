"""Cross-entropy after the best rescaling of the scores; the early-stopping criterion of networks.

A network becomes overconfident first: its cross-entropy on new rows rises while its order of the rows still improves.
The threshold is set afterwards and adapts to any scale and shift of the scores, so the criterion ignores both.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.measure.labels import of_label
from setpoint.measure.sample import Sample
from setpoint.train.class_loss import class_losses
from setpoint.train.linear import cross_entropy


@torch.no_grad()
def refined_loss(sample: Sample) -> float:
    """The mean cross-entropy at the best scale (0 or more) and shift of the scores; inf if scores are not finite."""
    if sample.labels.dim() == 2:
        return sum(refined_loss(of_label(sample, place)) for place in range(sample.labels.shape[1]))
    if sample.scores.dim() == 2:
        losses = class_losses(sample)
        total = losses.sum() / (len(losses) if sample.weights is None else sample.weights.sum().clamp(min=1e-300))
        return float(total) if bool(total.isfinite()) else math.inf
    scores, labels = sample.scores.detach().cpu().double(), sample.labels.cpu().double()
    if not bool(scores.isfinite().all()):
        return math.inf
    weights = torch.ones_like(labels) if sample.weights is None else sample.weights.cpu().double()
    share = float((weights * labels).sum() / weights.sum())
    if not 0 < share < 1:
        return 0.0
    guess = -share * math.log(share) - (1 - share) * math.log(1 - share)
    scaled = Standardiser.of(scores.unsqueeze(-1), weights).with_ones(scores.unsqueeze(-1))
    theta = cross_entropy(Rows(scaled, labels, weights), weights)
    # Scores in the wrong order are worth no more than a guess.
    fitted = F.binary_cross_entropy_with_logits(scaled @ theta, labels, weights, reduction="sum") / weights.sum()
    return guess if theta[0] <= 0 else min(float(fitted), guess)
