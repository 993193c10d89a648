"""A rate less its bound, and its slope by each of the four counts, in plain numbers.

At one threshold there are four counts, and plain numbers are quicker than arrays or tensors of four of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem

Four = Sequence[float]


@dataclass(frozen=True)
class Ratio:
    """A rate less its bound, times a sign, as a function of the four counts at one threshold."""

    part: tuple[float, ...]
    whole: tuple[float, ...]
    sign: float
    bound: float = 0.0
    fixed: bool = False

    @staticmethod
    def of(rate: Rate, sign: float = 1.0, bound: float = 0.0) -> Ratio:
        return Ratio(tuple(map(float, rate.part)), tuple(map(float, rate.whole)), sign, bound, rate.has_fixed_whole)

    def at(self, counts: Four, sizes: Four | None = None) -> tuple[float, tuple[float, ...]]:
        """The value, and its slope by each count; a share of nothing is 0 and stays 0.

        `sizes` are those of both classes, under a step whose shares above and below do not add up to 1.
        """
        tp, fp, fn, tn = counts
        a, b, c, d = self.part
        e, f, g, h = self.whole
        known = sizes is not None and self.fixed
        size = e * sizes[0] + f * sizes[1] if known else e * tp + f * fp + g * fn + h * tn  # type: ignore[index]
        if size <= 0:
            return -self.sign * self.bound, (0.0, 0.0, 0.0, 0.0)
        value, over = (a * tp + b * fp + c * fn + d * tn) / size, self.sign / size
        bend = 0.0 if known else value
        slopes = (over * (a - bend * e), over * (b - bend * f), over * (c - bend * g), over * (d - bend * h))
        return self.sign * (value - self.bound), slopes


def ratios_of(problem: Problem) -> list[Ratio]:
    """The objective of a problem and its bounds, as far as they are rates."""
    signed = [(problem.objective, -1.0 if problem.maximize else 1.0, 0.0)]
    signed += [(c.quantity, -1.0 if c.relation == ">=" else 1.0, c.bound) for c in problem.constraints]
    return [Ratio.of(rate, sign, bound) for rate, sign, bound in signed if isinstance(rate, Rate)]
