"""The difference of two models on the same rows, each at its own thresholds, with an interval.

A rate whose whole is the same at every threshold (fnr, fpr, recall, flagged, error) differs only by the rows that the
two models decide differently. Among the n rows of the whole these are binomial with the share d; and among them the
rows that count for the first model alone are binomial with the share p. The difference is d (2 p - 1). Exact intervals
of d and p (Clopper and Pearson), a fifth and four fifths of the error probability, give an interval that holds the true
difference at least as often as it says.

Other quantities (precision, F-scores) have a Bayesian bootstrap: each row is of one of eight kinds (its class, and
whether each model flags it), the shares of the kinds are drawn from a Dirichlet distribution with half a row added to
each kind, and the interval is that of the percentiles of the differences. Areas have a bootstrap of the rows, and asks
about lists one of the lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.decide.order import worth
from setpoint.measure.constraint import CUT
from setpoint.measure.curve import curve, mean_over
from setpoint.measure.in_first import InFirst
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.evidence import interval
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import read_sample

#: The part of the error probability that is spent on how many rows are decided differently.
_SPENT = 0.2
_DRAWS = 4000
#: An area is computed anew in each draw: fewer draws of more rows, within this many rows in all.
_WORK, _FEWEST, _MOST = 4_000_000, 100, 400


@dataclass(frozen=True)
class Difference:
    """The objective of one model less that of another on the same rows, each at its own thresholds.

    Attributes:
        problem: The problem whose objective is compared.
        ours: The objective of the first model.
        theirs: The objective of the second model.
        low: The lower end of the interval of the difference.
        high: The upper end of the interval of the difference.
        confidence: The share of such intervals that hold the true difference.
        rows: The number of rows.
        method: The way the interval was made.
        bare: Whether both were taken at bare cuts, since only one of them has a certificate.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.decide.paired import difference
        >>> labels = torch.arange(400) % 2
        >>> scores = labels + torch.linspace(0, 1.2, 400), torch.linspace(0, 1, 400)
        >>> points = [sp.evaluate("minimize fnr where fpr <= 10%", each, labels) for each in scores]
        >>> found = difference(*points, scores, labels)
        >>> found.is_clear, found.is_better, round(found.value, 2)
        (True, True, -0.83)
    """

    problem: Problem
    ours: float
    theirs: float
    low: float
    high: float
    confidence: float
    rows: int
    method: str
    bare: bool = False

    @property
    def value(self) -> float:
        """The objective of the first model less that of the second."""
        return self.ours - self.theirs

    @property
    def is_clear(self) -> bool:
        """Whether the difference is beyond noise: the interval does not hold 0."""
        return not self.low <= 0 <= self.high

    @property
    def is_better(self) -> bool:
        """Whether the first model has the better objective."""
        return worth(self.problem, self.ours) > worth(self.problem, self.theirs)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "ours": self.ours,
            "theirs": self.theirs,
            "difference": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "rows": self.rows,
            "clear": self.is_clear,
            "better": self.is_better,
            "method": self.method,
            "at_bare_cuts": self.bare,
        }


def difference(
    ours: OperatingPoint,
    theirs: OperatingPoint,
    scores: Sequence[Any],
    labels: Any,
    *,
    groups: Any = None,
    values: Tensor | None = None,
    lists: Any = None,
    confidence: float = 0.95,
) -> Difference:
    """The difference of two points that were judged on the same rows, with an interval.

    Args:
        ours: The first point, judged on these rows.
        theirs: The second point, judged on these rows.
        scores: The scores of the first model and those of the second.
        labels: 0 or 1 per row.
        groups: The group of each row, where each group has its own threshold.
        values: The values of the columns that the ask names, `(n, C)`.
        lists: The list of each row, where the ask is about lists.
        confidence: The share of such intervals that hold the true difference.

    Returns:
        The difference and its interval.
    """
    problem, value = ours.problem, ours.objective - theirs.objective
    given = None if values is None else dict(zip(problem.columns, values.unbind(1)))
    samples = [read_sample(problem, each, labels, given, lists, ours.classes) for each in scores]
    truth = samples[0].labels > 0
    if isinstance(problem.objective, InFirst):
        low, high, method = _of_lists(problem.objective, [ours.thresholds.count(one)[0] for one in samples], confidence)
    elif problem.kind != CUT:
        low, high, method = _of_rows((ours, theirs), samples, confidence)
    elif problem.over is not None:
        low, high, method = _of_area(problem, [each.scores for each in samples], truth, confidence)
    else:
        each = zip((ours, theirs), samples)
        flags = [point.thresholds.passes(sample.scores, groups).reshape(-1) for point, sample in each]
        kinds = torch.bincount(4 * truth + 2 * flags[0] + flags[1], minlength=8).double()
        objective = problem.objective
        if isinstance(objective, Rate) and objective.has_fixed_whole and _counts_rows(objective):
            low, high, method = _of_counts(objective, kinds, confidence)
        else:
            low, high, method = _of_kinds(problem, kinds, confidence)
    low, high = min(low, value), max(high, value)
    return Difference(problem, ours.objective, theirs.objective, low, high, confidence, len(truth), method)


def _counts_rows(rate: Rate) -> bool:
    return rate.is_share and set(rate.part + rate.whole) <= {0, 1}


def _both_counts(kinds: Tensor) -> tuple[Tensor, Tensor]:
    """Counts (tp, fp, fn, tn) of both models, `(..., 4)`, from rows by kind: 4 positive + 2 flagged + 1 flagged."""
    n = kinds.unbind(-1)
    first = torch.stack([n[6] + n[7], n[2] + n[3], n[4] + n[5], n[0] + n[1]], dim=-1)
    second = torch.stack([n[5] + n[7], n[1] + n[3], n[4] + n[6], n[0] + n[2]], dim=-1)
    return first, second


def _of_counts(rate: Rate, kinds: Tensor, confidence: float) -> tuple[float, float, str]:
    """The exact interval for a rate of counts with a fixed whole."""
    only_first = only_second = 0.0
    tp, fp, fn, tn = rate.part
    # A row that the first model alone flags counts as flagged for the first and as passed over for the second.
    for flagged, passed, first, second in ((tp, fn, kinds[6], kinds[5]), (fp, tn, kinds[2], kinds[1])):
        if flagged > passed:
            only_first, only_second = only_first + float(first), only_second + float(second)
        elif flagged < passed:
            only_first, only_second = only_first + float(second), only_second + float(first)
    whole = float(rate.size(_both_counts(kinds)[0]))
    differ, error = only_first + only_second, 1 - confidence
    least, most = map(float, interval(differ, whole, 1 - _SPENT * error))
    low, high = (2 * float(end) - 1 for end in interval(only_first, differ, 1 - (1 - _SPENT) * error))
    # Whether more rows that are decided differently widen an end depends on its sign.
    low, high = low * (most if low < 0 else least), high * (most if high > 0 else least)
    return low, high, f"exact, paired: {differ:.0f} of {whole:.0f} rows are decided differently"


def _of_kinds(problem: Problem, kinds: Tensor, confidence: float) -> tuple[float, float, str]:
    """The Bayesian bootstrap for any objective of the counts."""
    draw = np.random.default_rng((0x5E7, int(kinds.sum())))
    shares = torch.from_numpy(draw.dirichlet((kinds + 0.5).numpy(), _DRAWS)) * float(kinds.sum())
    first, second = (problem.objective(counts) for counts in _both_counts(shares))
    low, high = np.quantile((first - second).numpy(), [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return low, high, f"percentiles of {_DRAWS} paired Bayesian bootstraps of the rows"


def _of_rows(points: Sequence[OperatingPoint], samples: list[Sample], confidence: float) -> tuple[float, float, str]:
    """The Bayesian bootstrap of the rows, for decisions of any kind."""
    size = len(samples[0].labels)
    draws, draw, values = min(_MOST, max(_FEWEST, _WORK // size)), np.random.default_rng((0x5E7, size)), []
    for _ in range(draws):
        weights = torch.from_numpy(draw.exponential(size=size))
        each = (point.thresholds.count(replace(one, weights=weights)) for point, one in zip(points, samples))
        first, second = (float(points[0].problem.objective(counts)[0]) for counts in each)
        values.append(first - second)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return low, high, f"percentiles of {draws} paired Bayesian bootstraps of the rows"


def _of_lists(objective: InFirst, counts: list[Tensor], confidence: float) -> tuple[float, float, str]:
    """The Bayesian bootstrap of the lists."""
    first, second = (objective.of_each(each).numpy() for each in counts)
    draws, size = max(_FEWEST, min(_DRAWS, _WORK // len(first))), len(first)
    weights = np.random.default_rng((0x5E7, size)).exponential(size=(draws, size))
    values = weights @ (first - second) / weights.sum(1)
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return low, high, f"percentiles of {draws} paired Bayesian bootstraps of the {size} lists"


def _of_area(problem: Problem, scores: list[Tensor], truth: Tensor, confidence: float) -> tuple[float, float, str]:
    """The bootstrap of the rows for an area."""
    size, labels = len(truth), truth.double()
    assert problem.over is not None
    draws = min(_MOST, max(_FEWEST, _WORK // size))
    draw, values = np.random.default_rng((0x5E7, size)), []
    for _ in range(draws):
        weights = torch.from_numpy(draw.multinomial(size, np.full(size, 1 / size))).double()
        # A draw without one of the classes has no area.
        if 0 < float(weights @ labels) < size:
            areas = [mean_over(curve(each, labels, weights), problem.objective, problem.over) for each in scores]
            values.append(float(areas[0] - areas[1]))
    low, high = np.quantile(values or [0.0], [(1 - confidence) / 2, (1 + confidence) / 2]).tolist()
    return low, high, f"percentiles of {draws} paired bootstraps of the rows"
