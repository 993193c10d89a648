"""Curves of scores at given places, as steps: precision over recall, recall over the share of negatives that pass."""

from __future__ import annotations

import numpy as np
from torch import Tensor


def precision_at(scores: Tensor, labels: Tensor, recalls: np.ndarray) -> np.ndarray:
    """Precision where a recall is first reached, from the top of the list."""
    high, low = split_scores(scores, labels)
    hits = np.maximum(np.ceil(recalls * len(high) - 1e-9).astype(int), 1)
    alarms = len(low) - np.searchsorted(low, high[::-1][hits - 1], "left")
    return hits / (hits + alarms)


def recall_at(scores: Tensor, labels: Tensor, rates: np.ndarray) -> np.ndarray:
    """Recall above the lowest cut that at most such a share of the negatives passes."""
    high, low = split_scores(scores, labels)
    passing = np.floor(rates * len(low) + 1e-9).astype(int)
    cuts = np.append(low[::-1], -np.inf)[passing]
    return 1 - np.searchsorted(high, cuts, "right") / len(high)


def split_scores(scores: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The scores of positives and of negatives, each from low to high."""
    values, positive = scores.detach().numpy().astype(np.float64), labels.numpy() > 0
    return np.sort(values[positive]), np.sort(values[~positive])
