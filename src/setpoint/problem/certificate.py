"""Promises and estimates that an operating point carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setpoint.measure.constraint import percent
from setpoint.plain import brief, number, share, text, whole_number
from setpoint.problem.problem import Problem

#: In place of a confidence: a certificate where the rows suffice for one.
AUTO = "auto"


@dataclass(frozen=True)
class Certificate:
    """With probability `confidence` over the drawing of `samples` calibration points, `statement` is true.

    Args:
        statement: the bounds that are promised, such as `fpr <= 1%`.
        confidence: the probability that the statement is true, between 0 and 1.
        samples: how many calibration samples the certificate rests on.
        method: the test that the certificate comes from.

    Example:
        >>> from setpoint.problem.certificate import Certificate
        >>> str(Certificate("fpr <= 1%", 0.95, 300, "exact"))
        'fpr <= 1% with confidence 95%, from 300 samples (exact)'
    """

    statement: str
    confidence: float
    samples: int
    method: str = "order statistic of the calibration scores"

    def __str__(self) -> str:
        return (
            f"{self.statement} with confidence {percent(self.confidence)}, from {self.samples} samples ({self.method})"
        )


@dataclass(frozen=True)
class Estimate:
    """An interval for `quantity` that is right about `confidence` of the time: no promise, since `method` is not exact.

    With weights of which a few outweigh the rest the interval is right less often; `method` then says how many equal
    weights they are worth.

    Args:
        quantity: the name of the rate or metric.
        value: the quantity as measured.
        low: the lower end of the interval.
        high: the upper end of the interval.
        confidence: the share of such intervals that hold the true value, about.
        samples: how many samples the estimate rests on.
        method: the way the interval was made.

    Example:
        >>> from setpoint.problem.certificate import Estimate
        >>> str(Estimate("f1", 0.5, 0.4, 0.6, 0.95, 200, "bootstrap"))
        'f1 0.5, between 0.4 and 0.6 with confidence 95%: an estimate (bootstrap), not a certificate'
    """

    quantity: str
    value: float
    low: float
    high: float
    confidence: float
    samples: int
    method: str

    def __str__(self) -> str:
        return (
            f"{self.quantity} {self.value:.4g}, between {self.low:.4g} and {self.high:.4g} with confidence "
            f"{percent(self.confidence)}: an estimate ({self.method}), not a certificate"
        )


def read_certificate(data: Any, problem: Problem) -> Certificate | None:
    """The certificate in plain data, or None where there is none; a TypeError if it promises something else."""
    if data is None:
        return None
    promised = problem.promise
    statement = text(data["statement"])
    if not promised or not statement.startswith(promised):
        raise TypeError(f"its certificate says {brief(statement)}, which is not what was asked")
    return Certificate(statement, share(data["confidence"]), whole_number(data["samples"], 1), text(data["method"]))


def read_estimate(data: Any) -> Estimate:
    """The estimate in plain data; a TypeError if its ends do not make an interval."""
    low, high = number(data["low"]), number(data["high"])
    if low > high:
        raise TypeError(f"expected an interval, found {low:g} to {high:g}")
    quantity, method = text(data["quantity"]), text(data["method"])
    value, samples = number(data["value"]), whole_number(data["samples"], 1)
    return Estimate(quantity, value, low, high, share(data["confidence"]), samples, method)
