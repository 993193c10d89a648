"""The answer: where to run a model, the true rates there, and whether the bounds hold."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from setpoint.errors import BadFile, BadProblem, BadWeights
from setpoint.files import write_whole
from setpoint.measure.constraint import Quantity
from setpoint.measure.curve import curve, mean_over
from setpoint.measure.in_first import LISTS
from setpoint.measure.rate import Gap, Metric
from setpoint.measure.sample import Sample, check_scores
from setpoint.on_use import is_tensor, torch
from setpoint.plain import brief, listed, named, number, read_json, reason, truth
from setpoint.problem.certificate import Certificate, Estimate, read_certificate, read_estimate
from setpoint.problem.check import Check, check_clusters, check_counts, check_weighted
from setpoint.problem.clusters import ClusterCounts
from setpoint.problem.per_label import PerLabel
from setpoint.problem.population import PopulationWeights
from setpoint.problem.problem import Problem
from setpoint.problem.read_decision import read_decision
from setpoint.problem.read_sample import belonging, read_sample, refuse_absent
from setpoint.problem.read_thresholds import as_thresholds
from setpoint.problem.shifts import Shifts
from setpoint.problem.shown_rates import rates_by_class, rates_by_group, rates_by_label, shown_quantities
from setpoint.problem.thresholds import Threshold, Thresholds, heaviest_of
from setpoint.problem.watch import Watch
from setpoint.problem.weighted import count_by_weight, refuse_with_clusters
from setpoint.shown import html_of

if TYPE_CHECKING:
    pass

FORMAT = 1


@dataclass(frozen=True)
class OperatingPoint:
    """Where to run a model, and the rates that this brings.

    Args:
        problem: the question that the point answers.
        thresholds: a score passes when it is strictly above its threshold; for K classes a shift per class, subtracted
            from its scores before the largest is chosen. A plain value (a number, a tuple with one number per bound of
            an area, a dict with one number per group or class) is taken too. When no threshold meets the bounds, these
            break the bounds least.
        objective: the true (hard) value on the data that the point was found on.
        rates: the true rates on the same data by name, those of a group as `recall[a]`. A group without samples to
            count a rate among (no positives, for recall) has no such rate.
        feasible: whether all bounds hold on the same data.
        violation: how far the worst bound is broken.
        certificate: the promise that the bounds hold on new data, if there is one.
        estimates: intervals of what cannot be promised.

    Example:
        >>> import setpoint as sp
        >>> ask = "minimize fnr where fpr <= 25%"
        >>> point = sp.calibrate(ask, [0.1, 0.2, 0.3, 0.6, 0.4, 0.8], [0, 0, 0, 0, 1, 1])
        >>> point.threshold, point.rates["fpr"], point.feasible
        (0.35, 0.25, True)
        >>> point.predict([0.35, 0.4]).tolist()
        [0, 1]
    """

    problem: Problem
    thresholds: Thresholds
    objective: float
    rates: dict[str, float]
    feasible: bool
    violation: float
    certificate: Certificate | None = None
    estimates: tuple[Estimate, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "thresholds", as_thresholds(self.thresholds, self.problem))

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def threshold(self) -> Threshold:
        """The thresholds as a plain value: a number, one per bound of an area, or one per group or class by name."""
        return self.thresholds.plain

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their numbers; empty where rows are flagged or not."""
        return self.thresholds.names if isinstance(self.thresholds, Shifts) else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, where each row has several; empty elsewhere."""
        return self.thresholds.names if isinstance(self.thresholds, PerLabel) else ()

    @property
    def limit(self) -> float | None:
        """The value that the objective cannot pass on the rows of the point, whatever the shifts, if it is known."""
        return self.thresholds.limit if isinstance(self.thresholds, Shifts) else None

    @property
    def outcome(self) -> str:
        """`feasible`, or `infeasible` with the bounds that no threshold meets and the nearest values.

        Several bounds are named together, since each of them alone may well be met.
        """
        if self.feasible:
            return "feasible"
        bounds = self.problem.constraints
        together = " together" if len(bounds) > 1 else ""
        names = [f"{c.quantity} " if together else "" for c in bounds]
        nearest = ", ".join(f"{name}{self.rates[str(c.quantity)]:.6g}" for name, c in zip(names, bounds))
        none = self.thresholds.fails or f"no {self.thresholds.noun} meets"
        return f"infeasible: {none} {' and '.join(map(str, bounds))}{together} (nearest: {nearest})"

    def predict(self, scores: Any, groups: Any = None, *, lists: Any = None) -> Any:
        """Decide each row: 1 where the score is strictly above the threshold, else 0; -1 for a row to review.

        For K classes the decision is the number of the class; `classes` has their names. For L labels there is one
        decision per label, `(n, L)`. For lists it is 1 for the first k rows of each list; rows with tied scores keep
        their order in the list.

        Args:
            scores: one score per row, or K scores per row.
            groups: the group of each row, where each group has its own threshold.
            lists: the list of each row, where the ask is about lists; each list must be whole.

        Returns:
            One decision per row; for areas one column per threshold. A tensor for a tensor, else a NumPy array.

        Raises:
            BadGroups: groups are needed and missing, or a group has no threshold.
        """
        belongs = belonging(self.problem, groups, lists)
        answer = self.thresholds.decide(check_scores(scores).detach().double(), belongs)
        return answer if is_tensor(scores) else answer.numpy()

    @classmethod
    def at(
        cls, problem: Problem, thresholds: Thresholds, sample: Sample, certificate: Certificate | None = None
    ) -> OperatingPoint:
        """The true rates of a sample at the given thresholds."""
        counts = thresholds.count(sample)
        pooled = counts.sum(-2) if thresholds.by_group else counts
        heaviest = heaviest_of(sample)
        if problem.over is None:
            objective = float(problem.objective(pooled)[0])
            quantities = dict.fromkeys([*problem.quantities, *shown_quantities(problem)])
            rates = {str(q): float(q(counts if isinstance(q, Gap) else pooled)[0]) for q in quantities}
            rates |= rates_by_group(problem, thresholds, counts) | rates_by_class(thresholds, counts)
            rates |= rates_by_label(problem, counts)
        else:
            over = problem.over
            objective = float(mean_over(curve(sample.scores, sample.labels, sample.weights), problem.objective, over))
            rates = {
                f"{quantity} at {over.rate} {bound:.6g}": float(value)
                for quantity in (problem.objective, over.rate)
                for bound, value in zip(over.bounds, quantity(pooled))
            }
        feasible, violation = problem.holds(counts, heaviest), max(problem.violations(counts), default=0.0)
        return cls(problem, thresholds, objective, rates, feasible, violation, certificate)

    def judge(
        self, scores: Any, labels: Any, *, weights: Any = None, groups: Any = None, lists: Any = None
    ) -> OperatingPoint:
        """The same thresholds on other data.

        Args:
            scores: one score per row, or K scores per row.
            labels: 0 or 1 per row; for K classes the number or the name of the class.
            weights: one weight per row, if rows do not all count the same.
            groups: the group of each row, where each group has its own threshold.
            lists: the list of each row, where the ask is about lists.

        Returns:
            A point with the true rates of these data. For areas its objective is the exact area of these data.

        Raises:
            MissingClass: the data have no row of a class that a rate is a share of.
        """
        sample = self._sample(scores, labels, weights, belonging(self.problem, groups, lists))
        return OperatingPoint.at(self.problem, self.thresholds, sample, self.certificate)

    def check(
        self, scores: Any, labels: Any, *, weights: Any = None, groups: Any = None, lists: Any = None,
        clusters: Any = None, level: float = 0.05,
    ) -> Check:  # fmt: skip
        """Test whether the bounds still hold on a later batch, each bound exactly, and all of them together.

        A promise that is kept is called broken with probability `level` at most per look. Twelve looks at a level of
        0.05 are twelve chances of a false alarm: for twelve looks together use level=0.05 / 12. `weights` are the
        values of the columns that the ask names, if it does, or `sp.PopulationWeights`, whose p-values hold for any
        number of rows and are 1 / evidence; other weights are not tested. `clusters` name the cluster of each row, such
        as the patient, where rows of one cluster depend on each other: a rate is then that of a random row of a random
        cluster, and its p-value is 1 / evidence, too.
        """
        self.problem.refuse_rows()
        if self.problem.over is not None:
            return check_counts(self.problem, torch.zeros(4), level=level)
        refuse_with_clusters(self.problem, clusters, weights)
        if isinstance(weights, PopulationWeights):
            sample = read_sample(self.problem, scores, labels)
            counts, shares = count_by_weight(self.problem, self.thresholds, sample, weights)
            return check_weighted(self.problem, counts, shares, weights.flagged_share, level)
        if not self.problem.columns and weights is not None:
            raise BadWeights(
                "an exact test counts rows, so it takes no weights; leave them out, or pass sp.PopulationWeights("
                "weights, most=...) if they make up for how rows were drawn"
            )
        belongs = belonging(self.problem, groups, lists)
        sample = self._sample(scores, labels, weights, belongs, [c.quantity for c in self.problem.bounds])
        true, names = self.thresholds.count(sample)[0], self.thresholds.by_group
        if clusters is None or self.labels:
            return check_counts(self.problem, true, names, level=level)
        by_cluster = ClusterCounts.of(self.thresholds, sample, clusters)
        return check_clusters(self.problem, true, by_cluster, names, level=level)

    def watch(self, level: float = 0.05) -> Watch:
        """Watch the bounds over time: any number of looks, in any batches, with one level for all of them together.

        Args:
            level: the probability of ever calling a promise broken that is kept.

        Returns:
            A watch without looks; `update` adds them.

        Raises:
            BadProblem: the point has no bound that can be watched.
        """
        return Watch(self.problem, self.thresholds, self.to_dict(), level)

    def _sample(
        self, scores: Any, labels: Any, weights: Any, groups: Any, asked: Sequence[Quantity] | None = None
    ) -> Sample:
        """Other data as a sample, with groups where each group has its own threshold, or with lists."""
        places = groups if self.problem.kind == LISTS else self.thresholds.places(groups)
        sample = read_sample(self.problem, scores, labels, weights, places, self.classes)
        refuse_absent(self.problem, sample, asked)
        return replace(sample, n_groups=len(self.thresholds.by_group) or None)

    def __str__(self) -> str:
        amounts = {str(quantity) for quantity in self.problem.quantities if not quantity.is_share}
        shares = {
            name: f"{value:.4g}" if name in amounts else f"{100 * value:.4g}%" for name, value in self.rates.items()
        }
        shown = ", ".join(f"{name} {value}" for name, value in shares.items())
        if self.problem.kind == LISTS:
            return f"{self.problem}: {self.outcome}, {self.thresholds.describe()} of each list, {shown}"
        kind = "shifts" if self.classes else "threshold"
        most = "" if self.limit is None else f" (no shifts pass {100 * self.limit:.4g}% on these rows)"
        return f"{self.problem}: {self.outcome}, {kind} {self.thresholds.describe()}, {shown}{most}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "format": FORMAT,
            "ask": str(self.problem),
            "threshold": self.thresholds.stored(),
            **({"classes": list(self.classes), "limit": self.limit} if self.classes else {}),
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
            found = brief(data["format"])
            raise BadFile(f"operating point of format {found}, this version reads {FORMAT}; upgrade setpoint")
        try:
            problem, thresholds = read_decision(data, metrics)
            rates = named(data["rates"], number)
            for bound in problem.constraints:
                rates[str(bound.quantity)]
            return cls(
                problem=problem,
                thresholds=thresholds,
                objective=number(data["objective"]),
                rates=rates,
                feasible=truth(data["feasible"]),
                violation=number(data["violation"]),
                certificate=read_certificate(data["certificate"], problem),
                estimates=tuple(listed(data.get("estimates", []), read_estimate, 1000)),
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
