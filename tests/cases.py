"""Hypothesis strategies: scores with ties, huge and saturated values, weights, one class, one sample."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from setpoint.measure.sample import Sample

LEVELS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10, 10, allow_nan=False),
    st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, 1.0, 1.0 + 2**-52]),
)


@dataclass(frozen=True)
class Case:
    scores: Tensor
    labels: Tensor
    weights: Tensor | None

    @property
    def sample(self) -> Sample:
        return Sample(self.scores, self.labels, self.weights)

    @property
    def lists(self) -> tuple[list[float], list[float], list[float]]:
        weights = torch.ones_like(self.scores) if self.weights is None else self.weights
        return self.scores.tolist(), self.labels.tolist(), weights.tolist()


@st.composite
def cases(draw: st.DrawFn, both_classes: bool = False, max_size: int = 25) -> Case:
    size = draw(st.integers(2 if both_classes else 1, max_size))
    pool = draw(st.lists(LEVELS, min_size=1, max_size=size))
    scores = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    labels = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size))
    weight = st.sampled_from([0.0, 0.25, 1.0, 2.0, 3.5])
    weights = draw(st.one_of(st.none(), st.lists(weight, min_size=size, max_size=size)))
    if both_classes:
        labels[0], labels[1] = 0.0, 1.0
        if weights is not None:
            weights[0], weights[1] = 1.0, 0.5
    elif weights is not None and not any(weights):
        weights[0] = 1.0
    return Case(
        torch.tensor(scores, dtype=torch.float64),
        torch.tensor(labels, dtype=torch.float64),
        None if weights is None else torch.tensor(weights, dtype=torch.float64),
    )
