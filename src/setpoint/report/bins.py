"""Scores by bin: how each class is spread, and whether the scores are probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.measure.sample import Sample
from setpoint.problem.evidence import interval


@dataclass(frozen=True)
class Histogram:
    """Rows of either class by score. `beyond` rows lie outside the edges and stand in the first and the last bin."""

    low: float
    high: float
    positives: list[int]
    negatives: list[int]
    beyond: int


def histogram(sample: Sample, own: list[float], bins: int = 48) -> Histogram:
    """Bins of equal width over all but the outermost scores, wide enough to show the run's own thresholds."""
    scores = sample.scores
    ends = torch.quantile(_few(scores), torch.tensor([0.001, 0.999], dtype=torch.float64))
    low, high = min(float(ends[0]), *own), max(float(ends[1]), *own)
    width = (high - low) or max(abs(high), 1.0)
    low, high = low - 0.02 * width, high + 0.02 * width
    places = ((scores - low) / (high - low) * bins).floor().clamp(0, bins - 1).long()
    each = [torch.bincount(places[sample.labels == label], minlength=bins).tolist() for label in (1, 0)]
    return Histogram(low, high, each[0], each[1], int(((scores < low) | (scores > high)).sum()))


def _few(scores: Tensor, most: int = 1_000_000) -> Tensor:
    """Every k-th of the sorted scores: `torch.quantile` takes no more than 16 million."""
    return scores.sort().values[:: max(1, len(scores) // most)]


def reliability(sample: Sample, bins: int = 10) -> list[dict[str, Any]]:
    """By bin of sigmoid(score): the mean of it, the observed share of positives with its interval, and the count."""
    chance = sample.scores.sigmoid()
    places = (chance * bins).floor().clamp(max=bins - 1).long()
    rows = []
    for place in range(bins):
        inside = places == place
        n, k = int(inside.sum()), int(sample.labels[inside].sum())
        if n:
            low, high = map(float, interval(k, n, 0.95))
            rows.append({"mean": float(chance[inside].mean()), "share": k / n, "n": n, "low": low, "high": high})
    return rows
