"""The log-loss of K classes, as the scores are or after the best rescaling of them."""

from __future__ import annotations

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from setpoint.measure.sample import Sample


@torch.no_grad()
def class_losses(sample: Sample, *, rescaled: bool = True) -> Tensor:
    """The log-loss of each row `(n,)`, times its weight, in float64.

    If `rescaled`, the scores are multiplied by the number (0 or more) and shifted by the numbers per class at which the
    sum is least: shifts are set afterwards and adapt to any others.
    """
    scores, labels = sample.scores.detach().cpu().double(), sample.labels.cpu().long()
    weights = torch.ones(len(labels), dtype=torch.float64) if sample.weights is None else sample.weights.cpu().double()
    if rescaled and bool(scores.isfinite().all()) and len(scores):
        scores = _rescaled(scores, labels, weights)
    return weights * F.cross_entropy(scores, labels, reduction="none")


def _rescaled(scores: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    unit = (scores - scores.mean(-1, keepdim=True)).square().mean().sqrt().clamp(min=1e-12)
    scores = scores / unit
    total = weights.sum()

    def cost(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        factor, shifts = float(at[0]), torch.from_numpy(at[1:])
        logits = factor * scores + shifts
        share = torch.softmax(logits, -1)
        value = (weights * F.cross_entropy(logits, labels, reduction="none")).sum() / total
        share[torch.arange(len(labels)), labels] -= 1
        slope = weights.unsqueeze(-1) * share / total
        # A little pull: a class that no row has must not be shifted to infinity.
        slopes = np.concatenate([[float((slope * scores).sum())], (slope.sum(0) + 1e-6 * shifts).numpy()])
        return float(value + 5e-7 * shifts.square().sum()), slopes

    start = np.concatenate([[float(unit)], np.zeros(scores.shape[1])])
    bounds = [(0.0, 1e4), *[(None, None)] * scores.shape[1]]
    found = scipy.optimize.minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]) * scores + torch.from_numpy(np.asarray(found[1:]))
