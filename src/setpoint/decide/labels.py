"""The best thresholds of several labels, and the certified ones: valid for all labels at once.

Each label is decided by itself on the rows of which it is known. For a certificate the labels share the error
probability: with L labels that have bounds, each is certified at 1 - (1 - confidence) / L. By the union bound all
bounds of all labels then hold together with probability `confidence`, however the labels depend on one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from setpoint.decide.certify import certify
from setpoint.decide.cut import find
from setpoint.decide.samples_needed import allowed_share, needed
from setpoint.errors import BadProblem, SetpointError, TooFewSamples
from setpoint.measure.constraint import Constraint, percent
from setpoint.measure.labels import of_label
from setpoint.measure.sample import Sample
from setpoint.problem.certificate import Certificate
from setpoint.problem.labels import LabelProblem
from setpoint.problem.per_label import PerLabel
from setpoint.problem.problem import Problem


def find_labels(problem: Problem, sample: Sample, names: Sequence[str] | None = None) -> PerLabel:
    """The best threshold of each label, on the rows of which it is known."""
    return _each(problem, lambda own, place: find(own, of_label(sample, place)).thresholds)


def certify_labels(
    problem: Problem, sample: Sample, confidence: float, names: Sequence[str] | None = None
) -> tuple[PerLabel, Certificate]:
    """The best threshold of each label at which all bounds of all labels hold with probability `confidence`.

    Raises:
        TooFewSamples: If the bounds of some label cannot be certified; the message names the label.
        BadProblem: If no number of samples could certify the bounds of some label.
    """
    assert isinstance(problem, LabelProblem)
    level, samples = share_of_level(problem, confidence), []

    def cut(own: Problem, place: int) -> Tensor:
        known = of_label(sample, place)
        if not own.constraints:
            return find(own, known).thresholds
        try:
            found, certificate = certify(own, known, level)
        except (TooFewSamples, BadProblem) as cause:
            raise _of_label(problem, place, confidence, cause) from cause
        samples.append(certificate.samples)
        return found

    cuts = _each(problem, cut)
    each = percent(round(level, 6))
    method = f"{problem.n_bounded} labels share the error probability: each is certified by itself at {each}"
    return cuts, Certificate(problem.promise, confidence, min(samples), method)


def needed_for_labels(problem: Problem, bound: Constraint, confidence: float) -> int:
    """The fewest samples with which a bound of one label can be certified beside those of the others."""
    assert isinstance(problem, LabelProblem)
    return needed(allowed_share(bound), share_of_level(problem, confidence))


def share_of_level(problem: LabelProblem, confidence: float) -> float:
    """The confidence for each label, at which the bounds of all labels hold together with that confidence."""
    return 1 - (1 - confidence) / max(problem.n_bounded, 1)


def _each(problem: Problem, cut: Callable[[Problem, int], Tensor]) -> PerLabel:
    assert isinstance(problem, LabelProblem)
    cuts = [float(cut(own, place)[0]) for place, own in enumerate(problem.each.values())]
    return PerLabel(problem.labels, tuple(cuts))


def _of_label(problem: LabelProblem, place: int, confidence: float, cause: SetpointError) -> SetpointError:
    shared = ""
    if isinstance(cause, TooFewSamples) and problem.n_bounded > 1:
        shared = f" (the {problem.n_bounded} labels share the error probability of confidence {confidence:g})"
    return type(cause)(f"label {problem.labels[place]!r}: {cause}{shared}")
