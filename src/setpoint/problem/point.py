"""The answer: a threshold, the true rates there, and whether the bounds hold."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadFile, BadGroups, BadProblem, BadScores, BadSetting, BadWeights, MissingClass
from setpoint.files import write_whole
from setpoint.measure.area import mean_over
from setpoint.measure.constraint import Quantity, percent
from setpoint.measure.count import count, count_sorted
from setpoint.measure.curve import curve
from setpoint.measure.rate import Gap, Metric, Rate, accuracy, error, flagged, fnr, fpr, precision, recall, tnr
from setpoint.measure.sample import Sample, check_sample, check_scores, name_groups
from setpoint.plain import brief, listed, named, number, read_json, reason, share, text, truth, whole_number
from setpoint.problem.check import Check, check_bound
from setpoint.problem.language import ask
from setpoint.problem.problem import Problem

FORMAT = 1
#: More thresholds than this are read from no file.
MOST_THRESHOLDS = 100_000
_SHOWN: tuple[Rate, ...] = (fpr, fnr, recall, tnr, precision, flagged, accuracy, error)
Threshold = float | tuple[float, ...] | dict[str, float]


@dataclass(frozen=True)
class Certificate:
    """With probability `confidence` over the drawing of `samples` calibration points, `statement` is true."""

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

    With weights of which a few outweigh the rest it is right less often; `method` says how many equal ones they are
    worth.
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


@dataclass(frozen=True)
class OperatingPoint:
    """Where to run a model, and what that brings.

    `threshold` is a float, one a point of the stretch for areas, or one a group; a score passes when strictly
    above it. `objective` and `rates` are true (hard) values on the data that the point was found on. When no
    threshold meets the bounds, `feasible` is False and the threshold is the one that breaks them least.
    """

    problem: Problem
    threshold: Threshold
    objective: float
    rates: dict[str, float]
    feasible: bool
    violation: float
    certificate: Certificate | None = None
    estimates: tuple[Estimate, ...] = ()

    @property
    def outcome(self) -> str:
        """`feasible`, or `infeasible` with the bounds that no threshold meets and the nearest values.

        Of several bounds each may well be met alone, so that all are named together.
        """
        if self.feasible:
            return "feasible"
        bounds = self.problem.constraints
        together = " together" if len(bounds) > 1 else ""
        nearest = [
            f"{c.quantity} {self.rates[str(c.quantity)]:.6g}" if together else f"{self.rates[str(c.quantity)]:.6g}"
            for c in bounds
        ]
        return (
            f"infeasible: no threshold meets {' and '.join(map(str, bounds))}{together} (nearest: {', '.join(nearest)})"
        )

    def predict(self, scores: Any, groups: Any = None) -> Any:
        """1 where the score is strictly above the threshold, else 0; one column a threshold for areas.

        A tensor gives a tensor, anything else a NumPy array.
        """
        values = check_scores(scores).detach().double()
        limits = self._limits(groups).to(values.device)
        passed = (values.unsqueeze(-1) if isinstance(self.threshold, tuple) else values) > limits
        answer = passed.long()
        return answer if isinstance(scores, Tensor) else answer.numpy()

    @classmethod
    def at(
        cls,
        problem: Problem,
        thresholds: Tensor,
        sample: Sample,
        group_names: list[str] | None = None,
        certificate: Certificate | None = None,
    ) -> OperatingPoint:
        """The true rates of a sample at the given thresholds, `(m,)` or one a group `(1, G)`."""
        grouped = thresholds.dim() == 2
        if grouped or len(thresholds) == 1:
            counts = count(
                sample.scores, sample.labels, thresholds, weights=sample.weights,
                groups=sample.groups if grouped else None, n_groups=sample.n_groups,
            )  # fmt: skip
        else:
            counts = count_sorted(sample.scores, sample.labels, thresholds, sample.weights)
        pooled = counts.sum(-2) if grouped else counts
        heaviest = 1.0 if sample.weights is None or not len(sample.weights) else float(sample.weights.max())
        if problem.over is None:
            objective = float(problem.objective(pooled)[0])
            quantities = dict.fromkeys([problem.objective, *(c.quantity for c in problem.constraints), *_SHOWN])
            rates = {str(q): float(q(counts if isinstance(q, Gap) else pooled)[0]) for q in quantities}
        else:
            over = problem.over
            objective = float(mean_over(curve(sample.scores, sample.labels, sample.weights), problem.objective, over))
            rates = {
                f"{quantity} at {over.rate} {bound:.6g}": float(value)
                for quantity in (problem.objective, over.rate)
                for bound, value in zip(over.bounds, quantity(pooled))
            }
        threshold: Threshold = float(thresholds.flatten()[0])
        if problem.over is not None:
            threshold = tuple(thresholds.tolist())
        elif grouped:
            threshold = dict(zip(group_names or map(str, range(thresholds.shape[1])), thresholds[0].tolist()))
            for quantity in (c.quantity for c in problem.constraints):
                own = quantity.rate if isinstance(quantity, Gap) else quantity
                if isinstance(quantity, Gap) or problem.group is None:
                    rates.update({f"{own}[{n}]": v for n, v in zip(threshold, own(counts)[0].tolist())})
        return cls(
            problem=problem,
            threshold=threshold,
            objective=objective,
            rates=rates,
            feasible=problem.holds(counts, heaviest),
            violation=max(problem.violations(counts), default=0.0),
            certificate=certificate,
        )

    def judge(self, scores: Any, labels: Any, *, weights: Any = None, groups: Any = None) -> OperatingPoint:
        """The same thresholds on other data. For areas the objective is the exact area of those data."""
        sample, thresholds, names = self._meet(scores, labels, weights, groups)
        return OperatingPoint.at(self.problem, thresholds, sample, names, self.certificate)

    def check(self, scores: Any, labels: Any, *, groups: Any = None, level: float = 0.05) -> Check:
        """Whether the bounds still hold on a later batch: an exact test of each, and of all of them together.

        A promise that is kept is called broken with probability `level` at most per look. Twelve looks at a level of
        0.05 are twelve chances of a false alarm: for twelve looks together use level=0.05 / 12.
        """
        self.problem.refuse_rows()
        if self.problem.over is not None:
            return self.check_counts(torch.zeros(4), level=level)
        bounds_only = [c.quantity for c in self.problem.bounds]
        sample, thresholds, names = self._meet(scores, labels, None, groups, bounds_only)
        each = count(
            sample.scores, sample.labels, thresholds, groups=None if names is None else sample.groups,
            n_groups=sample.n_groups,
        )[0]  # fmt: skip
        return self.check_counts(each, names, level=level)

    def check_counts(self, each: Tensor, names: list[str] | None = None, *, level: float = 0.05) -> Check:
        """The same from true counts at the threshold `(4,)`, or in each group of those names `(G, 4)`."""
        if isinstance(level, bool) or not 0 < level < 1:
            raise BadSetting(f"level must lie between 0 and 1, such as 0.05, got {level!r}")
        if self.problem.over is not None:
            return Check((), level)
        rows = []
        for constraint in self.problem.constraints:
            compared = isinstance(constraint.quantity, Gap)
            if names is None or compared or self.problem.group is not None:
                seen = each if names is None or compared else each.sum(0)
                value, of = float(constraint.quantity(seen)), (names or ()) if compared else ()
                rows.append(check_bound(constraint, seen.numpy(), value, names=of))
            else:
                rates = constraint.quantity(each).tolist()
                rows += [check_bound(constraint, own.numpy(), r, n) for n, own, r in zip(names, each, rates)]
        return Check(tuple(rows), level)

    def _meet(
        self, scores: Any, labels: Any, weights: Any, groups: Any, asked: Sequence[Quantity] | None = None
    ) -> tuple[Sample, Tensor, list[str] | None]:
        """Other data as a sample, the thresholds as a tensor, and the names of the groups if each has its own."""
        names = list(self.threshold) if isinstance(self.threshold, dict) else None
        codes = None if names is None else self._codes(groups)
        sample = check_sample(scores, labels, weights, codes).double()
        refuse_absent_classes(self.problem, sample, asked)
        if names is not None:
            sample = replace(sample, n_groups=len(names))
        values = list(self.threshold.values()) if isinstance(self.threshold, dict) else self.threshold
        thresholds = torch.tensor(values, dtype=torch.float64, device=sample.scores.device)
        return sample, thresholds.reshape((1, -1) if names else (-1,)), names

    def _limits(self, groups: Any) -> Tensor:
        if not isinstance(self.threshold, dict):
            return torch.tensor(self.threshold, dtype=torch.float64)
        return torch.tensor(list(self.threshold.values()), dtype=torch.float64)[self._codes(groups)]

    def _codes(self, groups: Any) -> Tensor:
        """The place of each sample's group among the thresholds."""
        assert isinstance(self.threshold, dict)
        if groups is None:
            raise BadGroups(f"this point has one threshold a {self.problem.group or 'group'}; pass groups=")
        codes, names = name_groups(groups)
        places = {name: place for place, name in enumerate(self.threshold)}
        for name in names:
            if name not in places:
                kind = self.problem.group or "group"
                raise BadGroups(f"no threshold for {kind} {name!r}; known are {', '.join(places)}")
        return torch.tensor([places[name] for name in names], dtype=torch.long)[codes]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in self.rates.items())
        return f"{self.problem}: {self.outcome}, threshold {self.threshold}, {shown}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        threshold = list(self.threshold) if isinstance(self.threshold, tuple) else self.threshold
        return {
            "format": FORMAT,
            "ask": str(self.problem),
            "threshold": threshold,
            "objective": self.objective,
            "rates": self.rates,
            "feasible": self.feasible,
            "violation": self.violation,
            "certificate": asdict(self.certificate) if self.certificate else None,
            "estimates": [asdict(estimate) for estimate in self.estimates],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], metrics: Iterable[Metric] = ()) -> OperatingPoint:
        """The point that `to_dict` wrote; metrics of your own are handed over in `metrics`."""
        if not isinstance(data, Mapping) or "format" not in data:
            raise BadFile("not an operating point: the key 'format' is missing")
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            raise BadFile(
                f"operating point of format {brief(data['format'])}, this version reads {FORMAT}; upgrade setpoint"
            )
        try:
            problem = ask(text(data["ask"]), metrics)
            threshold = read_threshold(data["threshold"], problem)
            rates = named(data["rates"], number)
            for bound in problem.constraints:
                rates[str(bound.quantity)]
            return cls(
                problem=problem,
                threshold=threshold,
                objective=number(data["objective"]),
                rates=rates,
                feasible=truth(data["feasible"]),
                violation=number(data["violation"]),
                certificate=None if data["certificate"] is None else _read_certificate(data["certificate"], problem),
                estimates=tuple(listed(data.get("estimates", []), _read_estimate, 1000)),
            )
        except BadProblem as cause:
            raise BadFile(
                f"the operating point asks what cannot be read: {reason(cause)}; hand metrics of your own over"
            ) from cause
        except (KeyError, TypeError, AttributeError, OverflowError) as cause:
            raise BadFile(f"damaged operating point: {reason(cause)}") from cause

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as JSON; a reader never sees half a file."""
        write_whole(path, (json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str], metrics: Iterable[Metric] = ()) -> OperatingPoint:
        """Read what `save` wrote."""
        try:
            data = read_json(path)
        except OSError as cause:
            raise BadFile(f"no operating point at {path}: {cause.strerror or cause}") from cause
        except ValueError as cause:
            raise BadFile(f"{path} is not JSON: {cause}") from cause
        return cls.from_dict(data, metrics)


def refuse_absent_classes(problem: Problem, sample: Sample, asked: Sequence[Quantity] | None = None) -> None:
    """A rate of a class that has no samples, or none with weight, is no rate: of those `asked`, or all."""
    if len(sample.scores) == 0:
        raise BadScores("no scores to judge; pass at least one sample of each class")
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
    positives, everything = float((weights * sample.labels).sum()), float(weights.sum())
    if everything <= 0:
        raise BadWeights("all weights are 0, so that nothing is left to count; give some samples a weight above 0")
    # Flag nothing: then all positives are missed and all negatives passed over.
    counts = torch.tensor([0.0, 0.0, positives, everything - positives], dtype=torch.float64)
    asked = [problem.objective, *(c.quantity for c in problem.bounds)] if asked is None else asked
    for quantity in (q.rate if isinstance(q, Gap) else q for q in asked):
        if isinstance(quantity, Rate) and quantity.has_fixed_whole and float(quantity.size(counts)) <= 0:
            kind = "positive" if positives <= 0 else "negative"
            raise MissingClass(
                f"{quantity} needs {kind} samples, but these {len(sample.scores)} hold none; add some of that class"
            )


def read_threshold(value: Any, problem: Problem) -> Threshold:
    """A threshold from plain data: one a point of the stretch for areas, else one or one a group."""
    if problem.over is not None:
        if problem.n_thresholds > MOST_THRESHOLDS or not isinstance(value, list) or len(value) != problem.n_thresholds:
            raise TypeError(f"expected {problem.n_thresholds} thresholds, found {brief(value)}")
        return tuple(listed(value, number))
    if isinstance(value, dict) and value:
        return named(value, number, MOST_THRESHOLDS)
    return number(value)


def _read_certificate(data: Any, problem: Problem) -> Certificate:
    promised = " and ".join(map(str, problem.constraints))
    statement = text(data["statement"])
    if not promised or not statement.startswith(promised):
        raise TypeError(f"its certificate says {brief(statement)}, which is not what was asked")
    return Certificate(statement, share(data["confidence"]), whole_number(data["samples"], 1), text(data["method"]))


def _read_estimate(data: Any) -> Estimate:
    low, high = number(data["low"]), number(data["high"])
    if low > high:
        raise TypeError(f"expected an interval, found {low:g} to {high:g}")
    quantity, method = text(data["quantity"]), text(data["method"])
    value, samples = number(data["value"]), whole_number(data["samples"], 1)
    return Estimate(quantity, value, low, high, share(data["confidence"]), samples, method)
