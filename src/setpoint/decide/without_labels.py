"""The rates of rows that have no labels yet, from the share of them that is flagged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem


@dataclass(frozen=True)
class Unlabelled:
    """One rate of rows without labels.

    Attributes:
        rate: The name of the rate.
        estimate: Its value if only the share of positives has changed (label shift): positives and negatives are
            flagged as often as at calibration.
        low: Its least value if the share of positives is that of calibration, whatever else has changed.
        high: Its largest value under the same assumption.

    Example:
        >>> from setpoint.decide.without_labels import Unlabelled
        >>> Unlabelled("fpr", estimate=0.01, low=0.0, high=0.03).high
        0.03
    """

    rate: str
    estimate: float
    low: float
    high: float


def rates_without_labels(problem: Problem, calibrated: Sequence[float], flagged: float) -> list[Unlabelled]:
    """The bounded rates and the objective of rows of which a share is flagged, as far as they can be known.

    Args:
        problem: The problem, of which plain rates are estimated.
        calibrated: The counts (tp, fp, fn, tn) of the calibration rows at the threshold.
        flagged: The share of the new rows that is flagged.

    Returns:
        One entry per rate; none if the calibration rows do not tell positives from negatives.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.decide.without_labels import rates_without_labels
        >>> rates_without_labels(sp.ask("maximize recall where precision >= 50%"), [90, 10, 10, 890], 0.2)[1]
        Unlabelled(rate='precision', estimate=0.956..., low=0.0, high=0.5)
    """
    tp, fp, fn, tn = map(float, calibrated)
    positives, negatives = tp + fn, fp + tn
    if min(positives, negatives) <= 0 or tp / positives <= fp / negatives:
        return []
    found, alarms = tp / positives, fp / negatives
    share = min(max((flagged - alarms) / (found - alarms), 0.0), 1.0)
    shifted = [share * found, (1 - share) * alarms, share * (1 - found), (1 - share) * (1 - alarms)]
    before = positives / (positives + negatives)
    # A rate is a quotient of two linear functions of tp here, so that it is largest and least at the ends.
    ends = [
        [hit, flagged - hit, before - hit, 1 - before - flagged + hit]
        for hit in (max(0.0, flagged + before - 1), min(flagged, before))
    ]
    answers = []
    for quantity in problem.quantities:
        if isinstance(quantity, Rate) and len(quantity.part) == 4:
            estimate, *both = (
                float(quantity(torch.tensor(counts, dtype=torch.float64))) for counts in (shifted, *ends)
            )
            answers.append(Unlabelled(str(quantity), estimate, min(both), max(both)))
    return answers
