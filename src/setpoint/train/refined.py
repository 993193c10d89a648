"""What scores tell apart, however sure of it they are: the loss by which the training of a network is stopped.

A network goes on to rank better after its cross-entropy on new rows has begun to rise, for it grows too sure of itself
first. The threshold is set afterwards, and takes any scale and shift of the scores: so does the judgement.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.measure.sample import Sample
from setpoint.train.linear import cross_entropy


@torch.no_grad()
def refined_loss(sample: Sample) -> float:
    """The mean cross-entropy of scores at their best scale, not below 0, and shift; inf if training has run away."""
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
    # Scores the wrong way round tell no more than a guess.
    fitted = F.binary_cross_entropy_with_logits(scaled @ theta, labels, weights, reduction="sum") / weights.sum()
    return guess if theta[0] <= 0 else min(float(fitted), guess)
