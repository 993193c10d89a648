"""Which rows to label: a plan that draws more of the rows that tell most about the bounds, with the weights it needs.

The error of a weighted rate is smallest if rows are drawn in proportion to the size that their part of the sum has on
average (Neyman 1934): for recall these are the rows that may be positive, most of all missed ones, for precision the
flagged rows. Scores are cut into strata that are narrower the closer they lie to the threshold. How likely a row is to
be positive in each stratum is taken from rows whose labels are known; if that has changed since, the plan saves fewer
labels, but its weights stay right, since the chance of each row is known whatever its label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadProblem, BadSetting, MissingClass
from setpoint.measure.sample import Sample
from setpoint.problem.evidence import is_testable, of_trials
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem
from setpoint.problem.thresholds import Thresholds
from setpoint.problem.weighted import refuse_weights

Numbers = NDArray[np.float64]
#: The most strata on each side of the threshold; each is half as large as the next one away from it.
_STRATA = 6
#: The fewest known rows per stratum.
_FEWEST = 20
#: No chance is smaller than this part of that of a random sample of the same size.
_FLOOR = 0.05


@dataclass(frozen=True)
class LabelPlan:
    """The chance of each row to be drawn for labelling, by its score.

    `watch.plan` makes a plan. Rows are drawn independently, so the number of drawn rows is random; it is the
    number that was asked for on average, if scores are distributed as those that made the plan.

    Attributes:
        threshold: The threshold of the point, which is one of the edges.
        edges: The scores between strata, in ascending order; a stratum holds scores above its lower edge.
        chances: The chance of a row of each stratum, from the lowest scores to the highest.

    Example:
        >>> import setpoint as sp, torch
        >>> scores = torch.linspace(0, 1, 2000)
        >>> labels = (scores > 0.9) & (torch.arange(2000) % 2 == 0)
        >>> watch = sp.calibrate("minimize fpr where recall >= 90%", scores, labels).watch()
        >>> plan = watch.plan(scores, labels, share=0.1)
        >>> rows, weights = plan.draw(scores, seed=0)
        >>> watch = watch.update(scores[rows], labels[rows], weights=weights)
        >>> plan.chances[0] < 0.1 < plan.chances[-1]
        True
    """

    threshold: float
    edges: tuple[float, ...]
    chances: tuple[float, ...]

    @property
    def most(self) -> float:
        """The largest weight: the number of rows that a row of the least likely stratum stands for."""
        return 1 / min(self.chances)

    @property
    def most_flagged(self) -> float:
        """The largest weight of flagged rows."""
        above = [c for edge, c in zip((*self.edges, np.inf), self.chances) if edge > self.threshold]
        return 1 / min(above)

    def weights(self, weights: Any) -> PopulationWeights:
        """The weights of drawn rows, with the largest ones that the plan gives."""
        return PopulationWeights(weights, most=self.most, most_flagged=self.most_flagged)

    def strata(self, scores: Any) -> NDArray[np.int64]:
        """The number of the stratum of each score."""
        return np.searchsorted(np.array(self.edges), np.asarray(scores, dtype=np.float64), side="left")

    def draw(self, scores: Any, seed: int) -> tuple[NDArray[np.int64], PopulationWeights]:
        """Draw the rows to label.

        Args:
            scores: One score per row.
            seed: The seed of the drawing. Draw once: a drawing that was chosen among several is no fair one.

        Returns:
            The numbers of the drawn rows, in ascending order, and their weights.
        """
        chances = np.array(self.chances)[self.strata(scores)]
        rows = np.flatnonzero(np.random.default_rng(seed).random(len(chances)) < chances)
        return rows, self.weights(1 / chances[rows])


def plan_labels(problem: Problem, thresholds: Thresholds, known: Sample, share: float) -> LabelPlan:
    """The plan that labels a share of the rows on average and tells most about the bounds, by rows with labels.

    Raises:
        BadSetting: If the share does not lie between 0 and 1.
        BadProblem: If no bound can be tested.
        BadWeights: If the point has no single threshold, or a bound is no plain rate.
        MissingClass: If fewer than 40 rows are known, or they are all of one class.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise BadSetting(f"share is the part of the rows to label, above 0 and at most 1, got {share!r}")
    refuse_weights(problem, thresholds)
    tested = [constraint for constraint in problem.constraints if is_testable(constraint)]
    if not tested:
        raise BadProblem(f"'{problem}' has no bound that can be tested, so no rows need labels for it")
    scores, positive = known.scores.detach().cpu().double().numpy(), known.labels.cpu().numpy() == 1
    if len(scores) < 2 * _FEWEST or positive.all() or not positive.any():
        raise MissingClass(f"a plan needs {2 * _FEWEST} rows or more with known labels of both classes")
    assert thresholds.single is not None
    edges = _edges(scores, thresholds.single)
    of = np.searchsorted(edges, scores, side="left")
    size, right = (np.bincount(of, kept, len(edges) + 1) for kept in (np.ones(len(scores)), positive))
    chance = (right + 0.5) / (size + 1)
    above = np.append(edges, np.inf) > thresholds.single
    zero = np.zeros_like(chance)
    cells = np.where(above[:, None], np.stack([chance, 1 - chance, zero, zero], 1),
                     np.stack([zero, zero, chance, 1 - chance], 1))  # fmt: skip
    spread = zero
    for constraint in tested:
        part, whole = (np.array(value) for value in zip(*(of_trials(constraint, cell) for cell in np.eye(4))))
        own = cells @ (part - constraint.bound * whole) ** 2
        # Where no known row tells about a bound, such as flagged <= 0% where none is flagged, all rows are alike to it.
        spread = spread + (own / (size @ own) if size @ own > 0 else 1 / len(scores))
    chances = _scaled(np.sqrt(spread), size / size.sum(), float(share))
    return LabelPlan(thresholds.single, tuple(edges.tolist()), tuple(chances.tolist()))


def _edges(scores: Numbers, threshold: float) -> Numbers:
    """Scores that cut each side of the threshold into parts of 1/2, 1/4, 1/8, ... of its rows, and the threshold."""
    found = [threshold]
    for own, way in ((np.sort(scores[scores <= threshold]), 1), (np.sort(scores[scores > threshold])[::-1], -1)):
        places = [len(own) - len(own) // 2**step for step in range(1, _STRATA)]
        found += [float(own[p - (way > 0)]) for p in places if len(own) - p >= _FEWEST]
    return np.unique(found)


def _scaled(sizes: Numbers, rows: Numbers, share: float) -> Numbers:
    """Chances in proportion to the sizes, from a floor to 1, that draw this share of the rows."""
    low, high = 0.0, 1 / max(float(sizes.min()), 1e-12)
    for _ in range(100):
        middle = (low + high) / 2
        drawn = float(rows @ np.clip(middle * sizes, _FLOOR * share, 1.0))
        low, high = (middle, high) if drawn < share else (low, middle)
    return np.clip(high * sizes, _FLOOR * share, 1.0)


def plan_words(plan: LabelPlan, strata: Sequence[int], drawn: Sequence[int]) -> list[list[str]]:
    """One line per stratum: its scores, its rows, the drawn ones, and the number of rows that each stands for."""
    ends = ["", *(f"{edge:.4g}" for edge in plan.edges), ""]
    return [
        [f"{low or 'lowest'} ... {high or 'highest'}", f"{rows:,}", f"{own:,}", f"{1 / chance:.3g}"]
        for low, high, rows, own, chance in zip(ends, ends[1:], strata, drawn, plan.chances)
    ][::-1]
