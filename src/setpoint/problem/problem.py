"""The question: an objective, its direction, and the bounds or the stretch under which it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadProblem, BadScores, BadWeights, MissingClass
from setpoint.measure.constraint import SLACK, Constraint, Quantity
from setpoint.measure.looks import constant_like
from setpoint.measure.rate import Gap, Range, Rate, flagged
from setpoint.measure.rows import Rows
from setpoint.measure.sample import Sample


@dataclass(frozen=True)
class Problem:
    """Minimise or maximise `objective` under `constraints`, or on average `over` a stretch of a rate.

    Counts handed to a problem have one row a threshold, `(m, 4)`, and are split by group, `(m, G, 4)`, when a
    constraint compares groups (`group` is then the name of the column).
    """

    objective: Quantity
    maximize: bool
    constraints: tuple[Constraint, ...] = ()
    over: Range | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Quantity) or isinstance(self.objective, Gap | Rows):
            raise BadProblem(f"the objective must be a rate such as sp.fnr or a metric, got {self.objective!r}")
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise BadProblem(f"expected a constraint such as sp.fpr <= 0.01, but got {constraint!r}")
        if self.over is not None:
            if not isinstance(self.over, Range):
                raise BadProblem(f"over= expects a range such as sp.fpr.between(0, 0.05), got {self.over!r}")
            if self.constraints:
                raise BadProblem(f"an area over {self.over.rate} takes no further bound; drop one of the two")
            if bool(self.over.rate == self.objective):
                raise BadProblem(f"the area of {self.objective} over itself says nothing; choose another rate")
        if len(self._group_names()) > 1:
            names = ", ".join(sorted(self._group_names()))
            raise BadProblem(f"a problem compares groups of one column, but this one names {names}")
        self._refuse_contradictions()

    def _group_names(self) -> set[str]:
        return {c.quantity.group for c in self.constraints if isinstance(c.quantity, Gap)}

    def _refuse_contradictions(self) -> None:
        """Two bounds on one rate, or on a rate and its complement (recall and fnr), that leave nothing between."""
        for low in (c for c in self.constraints if c.relation in (">=", "==")):
            for high in self.constraints:
                limit = _upper_limit(high, low.quantity)
                if limit is not None and low.bound > limit + SLACK:
                    raise BadProblem(f"{low} and {high} contradict each other; drop one")

    def __str__(self) -> str:
        """The ask, in words that `ask` reads back."""
        text = f"{'maximize' if self.maximize else 'minimize'} {self.objective}"
        if self.over is not None:
            text += f" over {self.over}"
        if self.constraints:
            text += " where " + " and ".join(map(str, self.constraints))
        return text

    @property
    def group(self) -> str | None:
        """The column whose groups are compared, if any."""
        return next(iter(self._group_names()), None)

    @property
    def n_thresholds(self) -> int:
        """One, or one a point of the stretch."""
        return 1 if self.over is None else self.over.points

    @property
    def bounds(self) -> tuple[Constraint, ...]:
        """The constraints, or for an area one equality a point of the stretch."""
        if self.over is None:
            return self.constraints
        return tuple(Constraint(self.over.rate, "==", bound) for bound in self.over.bounds)

    @property
    def tightest(self) -> float | None:
        """The smallest share that a bound allows (1 % for `fpr <= 1%` and for `recall >= 99%`), if any."""
        shares = [min(c.bound, 1 - c.bound) for c in self.bounds if c.quantity.is_share]
        return min((share for share in shares if share > 0), default=None)

    def among(self, rows: int) -> Problem:
        """The same problem with bounds in rows as shares of so many rows: `flagged == 100 rows` of 10,000 is 1 %.

        Args:
            rows: How many rows the threshold is to be run on at a time.

        Raises:
            BadProblem: If a bound asks for more rows than there are, or there are none.

        Example:
            >>> import setpoint as sp
            >>> print(sp.ask("maximize precision where flagged == 100 rows").among(10_000))
            maximize precision where flagged == 1%
        """
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise BadProblem(f"problem.among takes a whole number of rows from 1 up, got {rows!r}")
        for c in self.constraints:
            if isinstance(c.quantity, Rows) and c.bound > rows:
                raise BadProblem(f"{c} asks for more than the {rows} rows that there are")
        bounds = [
            Constraint(flagged, c.relation, c.bound / rows) if isinstance(c.quantity, Rows) else c
            for c in self.constraints
        ]
        return replace(self, constraints=tuple(bounds))

    def refuse_rows(self) -> None:
        """A bound in rows has a meaning for the rows at hand alone."""
        for c in self.constraints:
            if isinstance(c.quantity, Rows):
                raise BadProblem(
                    f"{c} is about the rows at hand, which sp.evaluate judges; elsewhere write a share, such as "
                    "flagged == 1%, or say of how many rows with problem.among(10_000)"
                )

    def refuse_absent_classes(self, sample: Sample, asked: Sequence[Quantity] | None = None) -> None:
        """Refuse a sample without weight in a class that a rate is a share of: a rate that is `asked`, or any."""
        if len(sample.scores) == 0:
            raise BadScores("no scores to judge; pass at least one sample of each class")
        weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights
        positives, everything = float((weights * sample.labels).sum()), float(weights.sum())
        if everything <= 0:
            raise BadWeights("all weights are 0, so that nothing is left to count; give some samples a weight above 0")
        # Flag nothing: then all positives are missed and all negatives passed over.
        counts = torch.tensor([0.0, 0.0, positives, everything - positives], dtype=torch.float64)
        asked = [self.objective, *(c.quantity for c in self.bounds)] if asked is None else asked
        for quantity in (q.rate if isinstance(q, Gap) else q for q in asked):
            if isinstance(quantity, Rate) and quantity.has_fixed_whole and float(quantity.size(counts)) <= 0:
                kind = "positive" if positives <= 0 else "negative"
                raise MissingClass(
                    f"{quantity} needs {kind} samples, but these {len(sample.scores)} hold none; add some of that class"
                )

    def pool(self, counts: Tensor) -> Tensor:
        """Counts of all groups together, `(m, 4)`."""
        return counts.sum(-2) if self.group is not None else counts

    def costs(self, counts: Tensor) -> Tensor:
        """What each threshold adds to the cost, `(m,)`: its share of the objective, with the sign of a loss."""
        return self.objective(self.pool(counts)) / (-self.n_thresholds if self.maximize else self.n_thresholds)

    def cost(self, counts: Tensor) -> Tensor:
        """What is to be minimised: the objective, averaged over the thresholds, with the sign of a loss."""
        return self.costs(counts).sum()

    def excesses(self, counts: Tensor) -> Tensor:
        """One number a bound, positive when it is broken: `(k,)`."""
        pooled = self.pool(counts)
        if self.over is not None:
            return self.over.rate(pooled) - constant_like(tuple(self.over.bounds), pooled)
        if not self.constraints:
            return pooled.new_zeros(0)
        return torch.stack([c.excess(self.seen_by(c, counts))[0] for c in self.constraints])

    def seen_by(self, constraint: Constraint, counts: Tensor) -> Tensor:
        """The counts that a bound is about: of each group for a gap, else of all together."""
        return counts if isinstance(constraint.quantity, Gap) else self.pool(counts)

    def holds(self, counts: Tensor, heaviest: float | Tensor = 1.0) -> bool:
        """Whether every constraint is met by true counts; the points of an area always are."""
        return bool(self.holding(counts, heaviest))

    def holding(self, counts: Tensor, heaviest: float | Tensor = 1.0) -> Tensor:
        """The same as a truth value where the counts are, at which nobody has looked yet."""
        held = [c.holds(self.seen_by(c, counts), heaviest).all() for c in self.constraints]
        return torch.stack(held).all() if held else torch.ones((), dtype=torch.bool, device=counts.device)

    def violations(self, counts: Tensor) -> list[float]:
        """How far each constraint is broken by true counts, in the worst group if each has its own threshold."""
        return [float(c.violation(self.seen_by(c, counts)).max()) for c in self.constraints]

    def better(self, value: float, than: float) -> bool:
        """Whether one value of the objective beats another."""
        return value > than if self.maximize else value < than


def _upper_limit(constraint: Constraint, quantity: Quantity) -> float | None:
    """The most that a constraint allows a quantity, if it is about that one or its complement."""
    other = constraint.quantity
    if constraint.relation in ("<=", "==") and bool(other == quantity):
        return constraint.bound
    if constraint.relation in (">=", "==") and isinstance(other, Rate) and isinstance(quantity, Rate):
        parts = zip(other.part, quantity.part, quantity.whole)
        if other.whole == quantity.whole and all(one + rest == whole for one, rest, whole in parts):
            return 1 - constraint.bound
    return None


def minimize(objective: Quantity, *constraints: Constraint, over: Range | None = None) -> Problem:
    """`minimize(fnr, fpr <= 0.01)`: the question whose answer has the smallest objective."""
    return _problem(objective, False, constraints, over)


def maximize(objective: Quantity, *constraints: Constraint, over: Range | None = None) -> Problem:
    """`maximize(precision, recall >= 0.95)`: the question whose answer has the largest objective."""
    return _problem(objective, True, constraints, over)


def _problem(objective: Any, maximize: bool, constraints: tuple[Any, ...], over: Range | None) -> Problem:
    if callable(objective) and not isinstance(objective, Quantity):
        name = getattr(objective, "__name__", "objective")
        raise BadProblem(f"{name} is a function, not a rate; call it first, as in {name}(1)")
    return Problem(objective, maximize, constraints, over)
