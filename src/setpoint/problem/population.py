"""Weights by which rows stand for another population than that which they were drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadSetting, BadWeights

#: Weights that differ in more than so many ways are rounded at random.
_MOST_KINDS = 64


@dataclass(frozen=True)
class PopulationWeights:
    """Weights that make the samples stand for another population, so that a bound can be certified there.

    A row of weight 2 stands for twice as many rows of the population as one of weight 1. Under a known shift the weight
    is the ratio of the two densities; for labels drawn by a design it is 1 / the probability of being drawn.

    Args:
        weights: One weight per sample.
        most: The largest weight that any row of the population may have; it must be known, not found from the samples.
        most_flagged: The largest weight of rows that are flagged, if it is known to be smaller; tests gain by it.

    `sp.calibrate` certifies with such weights, and `point.check` and `watch.update` test with them.

    Raises:
        BadSetting: If `most` is not a number above 0.
        BadWeights: If there are no weights.

    Example:
        >>> import setpoint as sp, torch
        >>> scores, labels = torch.linspace(0, 1, 3000), torch.arange(3000) % 3 == 0
        >>> weights = sp.PopulationWeights(1 + (torch.arange(3000) % 2), most=2)
        >>> point = sp.calibrate("minimize fnr where fpr <= 5%", scores, labels, weights=weights, confidence=0.95)
        >>> print(point.certificate.statement)
        fpr <= 5%, for rows as their weights count them
    """

    weights: Any
    most: float
    most_flagged: float | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            raise BadWeights(
                "PopulationWeights takes one weight per sample, but got None; leave it out without weights"
            )
        for name, most in (
            ("most", self.most),
            ("most_flagged", self.most if self.most_flagged is None else self.most_flagged),
        ):
            number = isinstance(most, int | float) and not isinstance(most, bool)
            if not number or not math.isfinite(most) or not 0 < most <= self.most:
                raise BadSetting(f"{name} is the largest weight of the population, a number above 0, got {most!r}")

    @property
    def flagged_share(self) -> float:
        """The largest weight of flagged rows, as a share of the largest of all."""
        return 1.0 if self.most_flagged is None else self.most_flagged / self.most

    def shares(self, rows: int, seed: int) -> NDArray[np.float64]:
        """The weight of each row as a share of the largest one, of a few values.

        Many values are rounded at random to one of two neighbours on a grid, so that each share is right on average
        and a test that uses it is as valid as with the weights themselves.

        Args:
            rows: The number of rows.
            seed: The seed of the rounding.

        Raises:
            BadWeights: If there is not one weight per row, from 0 to `most`.
        """
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise BadWeights(f"give one weight of 0 or more for each of the {rows} rows")
        if rows and weights.max() > self.most:
            raise BadWeights(
                f"a weight of {weights.max():g} is above most={self.most:g}; give the largest weight that can occur"
            )
        shares: NDArray[np.float64] = weights / self.most
        if len(np.unique(shares)) <= _MOST_KINDS:
            return shares
        scaled = shares * (_MOST_KINDS - 1)
        up = np.random.default_rng(seed).random(rows) < scaled - np.floor(scaled)
        return np.asarray((np.floor(scaled) + up) / (_MOST_KINDS - 1))
