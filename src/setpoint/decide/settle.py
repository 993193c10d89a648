"""The point to ship: certified where a certificate is wanted and the rows allow one, else the bare cut and why."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from setpoint.decide.calibrate import calibrate
from setpoint.decide.certify import is_certifiable
from setpoint.decide.order import worth
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadProblem, BadSetting, NotCertified, TooFewSamples
from setpoint.problem.certificate import AUTO
from setpoint.problem.evidence import is_testable
from setpoint.problem.point import OperatingPoint
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem

#: The confidence that nobody has named: `USUAL` where the rows suffice, else no certificate.
USUAL = 0.95
USELESS = "is certified only where all calibration rows are flagged or none; more calibration rows allow a better cut"
_NO_BETTER = "is certified only where flagging all rows or none does as well; more calibration rows allow a better cut"
#: A number demands a certificate, `AUTO` takes one where the rows suffice, None wants none.
Confidence = float | str | None


@dataclass(frozen=True)
class Settled:
    """The operating point to ship, and how it came to have a certificate or none.

    Attributes:
        point: The point to run at.
        refusal: The reason why there is no certificate, where one was wanted.
        bare: The best cut of the same rows without a certificate, where `point` has one.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.decide.settle import settle
        >>> scores = torch.linspace(0, 1, 1000)
        >>> settled = settle(sp.ask("minimize fnr where fpr <= 1%"), scores, torch.arange(1000) % 3 == 0, "auto")
        >>> settled.point.certificate.confidence, round(settled.cost, 3)
        (0.95, 0.006)
    """

    point: OperatingPoint
    refusal: str | None = None
    bare: OperatingPoint | None = None

    @property
    def cost(self) -> float | None:
        """How much better the objective is at the bare cut than at the certified point, on the same rows."""
        return cost_of_certificate(self.point, self.bare)


def cost_of_certificate(point: OperatingPoint, bare: OperatingPoint | None) -> float | None:
    """How much better the objective is at the bare cut, on the rows of both; None without a certificate."""
    return None if bare is None else worth(point.problem, bare.objective) - worth(point.problem, point.objective)


def read_confidence(confidence: Confidence) -> Confidence:
    """A confidence as it is, if it is a number between 0 and 1, "auto" or None."""
    if isinstance(confidence, str):
        if confidence != AUTO:
            raise BadSetting(f"confidence must be a number such as 0.95, 'auto' or None, got {confidence!r}")
    elif confidence is not None:
        refuse_confidence(confidence)
    return confidence


def demanded(confidence: Confidence) -> float | None:
    """The confidence that was named as a number; None where a certificate is not demanded."""
    return None if isinstance(confidence, str) else confidence


def settle(
    problem: Problem,
    scores: Any,
    labels: Any,
    confidence: Confidence,
    *,
    weights: Any = None,
    groups: Any = None,
    classes: Sequence[str] | None = None,
    lists: Any = None,
    clusters: Any = None,
) -> Settled:
    """Calibrate with a certificate if the rows allow one; otherwise without one, and say why in a sentence.

    So a trained model is not lost when it cannot be certified. With "auto" nothing is said of asks without bounds and
    of bounds that no data can certify (areas, F-scores, equalities).
    """
    rows: dict[str, Any] = {"weights": weights, "groups": groups, "classes": classes, "lists": lists}
    bare = calibrate(problem, scores, labels, **rows)
    if confidence is None or (confidence == AUTO and not is_certifiable(problem)):
        return Settled(bare)
    level = USUAL if isinstance(confidence, str) else confidence
    try:
        point = calibrate(problem, scores, labels, confidence=level, clusters=clusters, **rows)
    except (TooFewSamples, BadProblem) as cause:
        return Settled(bare, str(cause))
    if point.certificate is not None:
        if confidence == AUTO and decides_nothing(point) and not decides_nothing(bare):
            return Settled(bare, f"{problem.promise} {USELESS}")
        if confidence == AUTO and problem.group is not None and _is_no_better_than_nothing(point, labels, weights):
            return Settled(bare, f"{problem.promise} {_NO_BETTER}")
        return Settled(point, None, bare)
    untested = [str(constraint) for constraint in problem.constraints if not is_testable(constraint)]
    return Settled(point, f"no exact test of {untested[0]} is known, so no data can certify it" if untested else None)


def decides_nothing(point: OperatingPoint) -> bool:
    """Whether a point flags all rows that it was set on, or none, or leaves all of them to be reviewed.

    One of several classes that is given to every row is nothing decided, too, and so is a label that all rows are
    given, or none.
    """
    if point.labels:
        return any(value in (0.0, 1.0) for name, value in point.rates.items() if name.startswith("flagged of label"))
    if point.classes:
        return any(name.startswith("coverage of class") and value == 1.0 for name, value in point.rates.items())
    flagged = point.rates.get("flagged")
    return point.rates.get("review", flagged) == 1.0 or flagged in (0.0, 1.0)


def _is_no_better_than_nothing(point: OperatingPoint, labels: Any, weights: Any) -> bool:
    """Whether flagging all rows or none keeps the bounds, too, with an objective that is as good."""
    problem, positive = point.problem, torch.as_tensor(labels).double()
    weights = weights.weights if isinstance(weights, PopulationWeights) else weights
    heavy = torch.ones_like(positive) if weights is None else torch.as_tensor(weights).double()
    there, lacking = float((heavy * positive).sum()), float((heavy * (1 - positive)).sum())
    # Counts as those of one group: where all groups are treated alike, nothing differs between them.
    trivial = torch.tensor([[[[0, 0, there, lacking]]], [[[there, lacking, 0, 0]]]], dtype=torch.float64)
    cost = -point.objective if problem.maximize else point.objective
    return any(problem.holds(counts) and float(problem.cost(counts)) <= cost for counts in trivial)


def warn_of_refusal(refusal: str | None) -> None:
    """Warn that a threshold has no certificate, if there is a sentence that says why."""
    if refusal is not None:
        warnings.warn(f"{refusal}; the threshold is set without a certificate", NotCertified, stacklevel=3)
