"""The results of one solver on several splits, and whether they differ from cross-entropy by more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy

from setpoint.run.run import Run

#: The probability that any solver is called different from cross-entropy although none is.
LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
    """The results of one solver, one value per split.

    Attributes:
        solver: The name of the solver.
        shipped: The objective on the test rows at the threshold that the model ships with.
        held: Whether the bounds hold on the test rows at that threshold.
        certified: Whether that threshold has a certificate.
        bare: The objective on the test rows at the bare cut of the calibration rows, which is the shipped threshold
            where that has no certificate.
        best: The objective at the best threshold of the test rows; None where no threshold meets the bounds.
        seconds: The time of the training.
        differences: `shipped` less that of plain cross-entropy on the same split; `bare` less `bare` where only one of
            both has a certificate.
        bare_splits: The number of splits where that was so.
        standard_error: The standard error of the mean difference; None below two splits.
        margin: The half-width of the interval of the mean difference; None below two splits.
        hidden: The margin that all planned splits would have with the same spread: the size of the differences that
            their noise hides; None below two splits.
        stopped: Whether the solver was stopped early, because the splits that were left could not change the verdict.

    Example:
        >>> from setpoint.run.standing import Standing
        >>> both = (True, True)
        >>> fnr = (0.3, 0.2)
        >>> Standing("auto", fnr, both, both, fnr, fnr, (1.0, 1.0), (-0.1, -0.1), 0, 0.0, 0.01).is_clear
        True
    """

    solver: str
    shipped: tuple[float, ...]
    held: tuple[bool, ...]
    certified: tuple[bool, ...]
    bare: tuple[float, ...]
    best: tuple[float | None, ...]
    seconds: tuple[float, ...]
    differences: tuple[float, ...] = ()
    bare_splits: int = 0
    standard_error: float | None = None
    margin: float | None = None
    hidden: float | None = None
    stopped: bool = False

    @property
    def trials(self) -> int:
        """The number of splits that the solver was trained on."""
        return len(self.shipped)

    @property
    def mean_shipped(self) -> float:
        return statistics.fmean(self.shipped)

    @property
    def mean_best(self) -> float | None:
        known = [value for value in self.best if value is not None]
        return statistics.fmean(known) if known else None

    @property
    def difference(self) -> float | None:
        return statistics.fmean(self.differences) if self.differences else None

    @property
    def is_clear(self) -> bool:
        """Whether the mean difference is larger than its margin."""
        return self.margin is not None and self.difference is not None and abs(self.difference) > self.margin

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "solver": self.solver,
            "trials": self.trials,
            "stopped": self.stopped,
            "shipped_on_test": list(self.shipped),
            "mean_shipped_on_test": self.mean_shipped,
            "held": list(self.held),
            "share_held": sum(self.held) / len(self.held),
            "share_certified": sum(self.certified) / len(self.certified),
            "bare_on_test": list(self.bare),
            "best_on_test": list(self.best),
            "mean_best_on_test": self.mean_best,
            "seconds": [round(value, 3) for value in self.seconds],
            "differences": list(self.differences),
            "splits_at_bare_cuts": self.bare_splits,
            "difference": self.difference,
            "standard_error": self.standard_error,
            "margin": self.margin,
            "hidden": self.hidden,
            "clear": self.is_clear,
        }


@dataclass(frozen=True)
class Noise:
    """The rule that calls a mean difference over random splits more than noise.

    A difference is clear if its mean is larger than `reach(n)` standard deviations of the n differences.

    Args:
        trials: The number of splits that are planned.
        compared: The number of solvers. The level is divided by it, so that one of many does not win by luck.
        overlap: The number of test rows by that of all other rows of a split.

    Example:
        >>> from setpoint.run.standing import Noise
        >>> noise = Noise(trials=5, compared=1, overlap=0.25)
        >>> noise.is_settled([0.01, -0.02]), noise.is_settled([0.01, 0.012])
        (True, False)
    """

    trials: int
    compared: int
    overlap: float

    def reach(self, trials: int) -> float:
        """The margin of the mean over so many splits, in standard deviations of a difference."""
        return self.error(trials) * float(scipy.special.stdtrit(trials - 1, 1 - LEVEL / self.compared / 2))

    def error(self, trials: int) -> float:
        """The standard error of the mean over so many splits, in standard deviations: sqrt(1 / n + overlap).

        The second term (Nadeau and Bengio, 2003) is for the overlap: splits of one table differ less than new tables
        would.
        """
        return math.sqrt(1 / trials + self.overlap)

    def is_settled(self, differences: Sequence[float]) -> bool:
        """Whether the planned splits will not call the difference clear, whatever those that are left will give.

        Of n differences with the sum A and the sum of squares Q, the mean is clear if A^2 / (n Q) is larger than a
        limit. If m of them are still to come, A^2 / Q is at most m more than that of the others, by the inequality of
        Cauchy and Schwarz. A clear difference is never settled: one odd split can undo it.
        """
        ran, left = len(differences), self.trials - len(differences)
        if left < 1 or ran < 2:
            return False
        squares = math.fsum(value**2 for value in differences)
        agreement = math.fsum(differences) ** 2 / squares if squares > 0 else 0.0
        bound = self.trials * self.reach(self.trials) ** 2
        limit = self.trials * bound / (self.trials - 1 + bound)
        return agreement + left < limit * (1 - 1e-9)


def standing_of(name: str, runs: Sequence[Run]) -> Standing:
    """The results of the runs of one solver, one per split."""
    best, judged = [run.best("test") for run in runs], [run.judged("test") for run in runs]
    return Standing(
        name,
        tuple(point.objective for point in judged),
        tuple(point.feasible for point in judged),
        tuple(point.certificate is not None for point in judged),
        tuple(run.uncertified.judged("test").objective for run in runs),
        tuple(point.objective if point.feasible else None for point in best),
        tuple(run.seconds for run in runs),
    )


def held_against(standing: Standing, plain: Standing, noise: Noise) -> Standing:
    """The results beside those of plain cross-entropy on the same splits, on equal terms (`Run.on_equal_terms`)."""
    unequal = [ours != theirs for ours, theirs in zip(standing.certified, plain.certified)]
    differences = tuple(
        bare - plain_bare if odd else shipped - plain_shipped
        for odd, bare, plain_bare, shipped, plain_shipped in zip(
            unequal, standing.bare, plain.bare, standing.shipped, plain.shipped
        )
    )
    standing = replace(standing, differences=differences, bare_splits=sum(unequal))
    if len(differences) < 2:
        return standing
    spread, ran = statistics.stdev(differences), len(differences)
    return replace(
        standing,
        standard_error=spread * noise.error(ran),
        margin=spread * noise.reach(ran),
        hidden=spread * noise.reach(noise.trials),
    )
