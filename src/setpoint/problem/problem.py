"""Problems: an objective to minimise or maximise, under bounds or on average over a range of a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import BadProblem, BadScores, BadWeights, MissingClass
from setpoint.measure.classes import as_class_quantity
from setpoint.measure.constraint import CUT, SLACK, Constraint, FlaggedRows, Quantity
from setpoint.measure.in_first import InFirst
from setpoint.measure.looks import constant_like
from setpoint.measure.over_classes import ClassGap
from setpoint.measure.rate import Gap, Range, Rate, accuracy, error, flagged
from setpoint.measure.sample import Sample
from setpoint.measure.worth import Worth
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

#: Counts are tensors or, in tests of bounds, arrays.
Counts = TypeVar("Counts", "Tensor", NDArray[np.float64])


@dataclass(frozen=True)
class Problem:
    """An objective to minimise or maximise, under constraints or on average over a range of a rate.

    `sp.minimize`, `sp.maximize` and `sp.ask` make problems; `str(problem)` is the ask. Counts passed to the methods
    have one row per threshold, `(m, 4)`, or per threshold and group, `(m, G, 4)`, when a constraint compares groups.

    Args:
        objective: The rate or metric to minimise or maximise.
        maximize: Whether larger values of the objective are better.
        constraints: The bounds that must hold, such as `sp.fpr <= 0.01`.
        over: A range such as `sp.fpr.between(0, 0.05)`, over which the objective is averaged; it excludes constraints.
        class_names: The names of all classes, in the order of their numbers, where `resolved` was told them.

    Raises:
        BadProblem: If the parts do not fit together or the bounds contradict each other.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.minimize(sp.fnr, sp.fpr <= 0.01)
        >>> print(problem)
        minimize fnr where fpr <= 1%
        >>> problem == sp.ask(str(problem))
        True
    """

    objective: Quantity
    maximize: bool
    constraints: tuple[Constraint, ...] = ()
    over: Range | None = None
    class_names: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Quantity) or isinstance(self.objective, Gap | ClassGap | FlaggedRows):
            raise BadProblem(f"the objective must be a rate such as sp.fnr or a metric, got {self.objective!r}")
        for constraint in self.constraints:
            if not isinstance(constraint, Constraint):
                raise BadProblem(f"expected a constraint such as sp.fpr <= 0.01, but got {constraint!r}")
        self._adopt_plain_rates()
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

    def _adopt_plain_rates(self) -> None:
        """Make all quantities of one kind: beside a rate of a class, for example, the error is that of all classes."""
        leaders = {q.kind: q for q in self.quantities if q.kind != CUT}
        if len(leaders) > 1:
            first, second = list(leaders.values())[:2]
            raise BadProblem(f"{first} and {second} are decided in different ways; ask for one of them at a time")
        for leader in leaders.values():
            if self.over is not None:
                raise BadProblem(f"{leader} has no area over {self.over}; bound {self.over.rate} instead, or drop it")
            self._change(leader.adopt)
        columns = self.columns
        self._change(lambda quantity: quantity.among(columns) if isinstance(quantity, Worth) else quantity)

    def _change(self, change: Callable[[Quantity], Quantity]) -> None:
        """Put another quantity in the place of each, while the problem is made."""
        bounds = tuple(replace(c, quantity=change(c.quantity)) for c in self.constraints)
        object.__setattr__(self, "objective", change(self.objective))
        object.__setattr__(self, "constraints", bounds)

    @property
    def quantities(self) -> list[Quantity]:
        """The objective and the bounded quantities, each once."""
        return list(dict.fromkeys([self.objective, *(c.quantity for c in self.constraints)]))

    @property
    def kind(self) -> str:
        """The kind of question, which says how rows are decided: "cut" by a threshold, "classes" by shifts, ..."""
        return next((q.kind for q in self.quantities if q.kind != CUT), CUT)

    @property
    def is_of_errors(self) -> bool:
        """Whether the ask has a meaning for two classes and for more: all its quantities are errors."""
        return self.over is None and all(bool(q == error) or bool(q == accuracy) for q in self.quantities)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values the quantities count, in order of appearance: row w of the counts is of the w-th."""
        named = (column for q in self.quantities if isinstance(q, Worth) for column in q.columns)
        return tuple(dict.fromkeys(named))

    @property
    def depth(self) -> int:
        """The number of first rows of each list that the counts must tell apart; 0 where nothing is about lists."""
        return max((q.k for q in self.quantities if isinstance(q, InFirst)), default=0)

    def _group_names(self) -> set[str]:
        return {c.quantity.group for c in self.constraints if isinstance(c.quantity, Gap)}

    def _refuse_contradictions(self) -> None:
        """Refuse two bounds on one rate, or on a rate and its complement (recall and fnr), that exclude each other."""
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
            text += f" where {self.promise}"
        return text

    @property
    def promise(self) -> str:
        """All constraints in words, as a certificate states them."""
        return " and ".join(map(str, self.constraints))

    @property
    def group(self) -> str | None:
        """The column whose groups are compared, if any."""
        return next(iter(self._group_names()), None)

    @property
    def n_thresholds(self) -> int:
        """The number of thresholds: one, or for an area one per point of its range."""
        return 1 if self.over is None else self.over.points

    @property
    def bounds(self) -> tuple[Constraint, ...]:
        """The constraints, or for an area one equality per point of its range."""
        if self.over is None:
            return self.constraints
        return tuple(Constraint(self.over.rate, "==", bound) for bound in self.over.bounds)

    @property
    def tightest(self) -> float | None:
        """The smallest share that a bound allows (1 % for `fpr <= 1%` and for `recall >= 99%`), if any."""
        shares = [min(c.bound, 1 - c.bound) for c in self.bounds if c.quantity.is_share]
        return min((share for share in shares if share > 0), default=None)

    def among(self, rows: int) -> Problem:
        """The same problem with bounds in rows turned into shares: `flagged == 100 rows` among 10,000 is 1 %.

        Args:
            rows: The number of rows that the threshold will be applied to at a time.

        Returns:
            The problem, with shares in the place of rows.

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
            if isinstance(c.quantity, FlaggedRows) and c.bound > rows:
                raise BadProblem(f"{c} asks for more than the {rows} rows that there are")
        bounds = [
            Constraint(flagged, c.relation, c.bound / rows) if isinstance(c.quantity, FlaggedRows) else c
            for c in self.constraints
        ]
        return replace(self, constraints=tuple(bounds))

    def resolved(self, names: Sequence[str]) -> Problem:
        """The same problem about classes with these names: each class that is named gets its number among them.

        An ask of errors alone, such as `minimize error`, becomes one about these classes.

        Args:
            names: The names of all classes, in the order of their numbers.

        Returns:
            The problem. It prints as before, and its quantities take counts `(..., K, 4)`.

        Raises:
            BadProblem: If a class is not among the names, or the ask is about two classes.

        Example:
            >>> import setpoint as sp
            >>> problem = sp.ask("maximize recall of class melanoma").resolved(["mole", "melanoma"])
            >>> problem.objective.k
            1
        """
        if self.over is not None:
            raise BadProblem(f"'{self}' is about two classes, but there are {len(names)}")
        bounds = (replace(c, quantity=as_class_quantity(c.quantity).resolved(names)) for c in self.constraints)
        objective = as_class_quantity(self.objective).resolved(names)
        return replace(self, objective=objective, constraints=tuple(bounds), class_names=tuple(names))

    def refuse_rows(self) -> None:
        """Refuse a bound in rows, which has a meaning only for the rows at hand."""
        for c in self.constraints:
            if isinstance(c.quantity, FlaggedRows):
                raise BadProblem(
                    f"{c} is about the rows at hand, which sp.evaluate judges; elsewhere write a share, such as "
                    "flagged == 1%, or say of how many rows with problem.among(10_000)"
                )

    def refuse_absent_classes(self, sample: Sample, asked: Sequence[Quantity] | None = None) -> None:
        """Refuse a sample without weight in a class that a rate is a share of: a rate that is `asked`, or any."""
        self.refuse_nothing(sample)
        if sample.weights is None:
            positives, everything = float(sample.labels.sum()), float(sample.labels.numel())
        else:
            positives, everything = float((sample.weights * sample.labels).sum()), float(sample.weights.sum())
        # Flag nothing: then all positives are missed and all negatives passed over.
        counts = torch.tensor([0.0, 0.0, positives, everything - positives], dtype=torch.float64)
        asked = [self.objective, *(c.quantity for c in self.bounds)] if asked is None else asked
        for quantity in (q.rate if isinstance(q, Gap) else q for q in asked):
            if isinstance(quantity, Rate) and quantity.has_fixed_whole and float(quantity.size(counts)) <= 0:
                kind = "positive" if positives <= 0 else "negative"
                raise MissingClass(
                    f"{quantity} needs {kind} samples, but these {len(sample.scores)} hold none; add some of that class"
                )

    def refuse_nothing(self, sample: Sample) -> None:
        """Refuse a sample without rows, or without weight."""
        if len(sample.scores) == 0:
            raise BadScores("no scores to judge; pass at least one sample of each class")
        if sample.weights is not None and float(sample.weights.sum()) <= 0:
            raise BadWeights("all weights are 0, so that nothing is left to count; give some samples a weight above 0")

    def pool(self, counts: Counts) -> Counts:
        """Counts of all groups together, `(m, 4)`."""
        return counts.sum(-2) if self.group is not None else counts

    def costs(self, counts: Tensor) -> Tensor:
        """The part of each threshold in the cost, `(m,)`: the objective over m, with the sign of a loss."""
        return self.objective(self.pool(counts)) / (-self.n_thresholds if self.maximize else self.n_thresholds)

    def cost(self, counts: Tensor) -> Tensor:
        """The objective, averaged over the thresholds, with the sign of a loss: smaller is better."""
        return self.costs(counts).sum()

    def excesses(self, counts: Tensor) -> Tensor:
        """The excess of each bound, `(k,)`, positive when the bound is broken."""
        pooled = self.pool(counts)
        if self.over is not None:
            return self.over.rate(pooled) - constant_like(tuple(self.over.bounds), pooled)
        if not self.constraints:
            return pooled.new_zeros(0)
        return torch.stack([c.excess(self.seen_by(c, counts))[0] for c in self.constraints])

    def seen_by(self, constraint: Constraint, counts: Counts) -> Counts:
        """The counts that a constraint is about: those of each group for a gap, else those of all groups together."""
        return counts if isinstance(constraint.quantity, Gap) else self.pool(counts)

    def holds(self, counts: Tensor, heaviest: float | Tensor = 1.0) -> bool:
        """Whether every constraint is met by true counts; the points of an area always are."""
        return bool(self.holding(counts, heaviest))

    def holding(self, counts: Tensor, heaviest: float | Tensor = 1.0) -> Tensor:
        """The same as a boolean tensor on the device of the counts, which is not waited for."""
        held = [c.holds(self.seen_by(c, counts), heaviest).all() for c in self.constraints]
        return torch.stack(held).all() if held else torch.ones((), dtype=torch.bool, device=counts.device)

    def violations(self, counts: Tensor) -> list[float]:
        """How far each constraint is broken by true counts, in the worst group if each has its own threshold."""
        return [float(c.violation(self.seen_by(c, counts)).max()) for c in self.constraints]

    def violations_per_cut(self, counts: Tensor) -> Tensor:
        """How far each constraint is broken at each of m cuts: `(k, m)` from counts `(m, 4)` or `(m, G, 4)`."""
        broken = [c.violation(self.seen_by(c, counts)) for c in self.constraints]
        return torch.stack(broken) if broken else counts.new_zeros(0, len(counts))


def _upper_limit(constraint: Constraint, quantity: Quantity) -> float | None:
    """The highest value that a constraint allows a quantity, if it bounds that quantity or its complement."""
    other = constraint.quantity
    if constraint.relation in ("<=", "==") and bool(other == quantity):
        return constraint.bound
    if constraint.relation in (">=", "==") and isinstance(other, Rate) and isinstance(quantity, Rate):
        parts = zip(other.part, quantity.part, quantity.whole)
        if other.whole == quantity.whole and all(one + rest == whole for one, rest, whole in parts):
            return 1 - constraint.bound
    return None


def minimize(objective: Quantity, *constraints: Constraint, over: Range | None = None) -> Problem:
    """The problem of minimising an objective under constraints, or on average over a range of a rate.

    Args:
        objective: The rate or metric to minimise.
        *constraints: The bounds that must hold, such as `sp.fpr <= 0.01`.
        over: A range such as `sp.recall.between(0.9, 1)` over which the objective is averaged; it excludes constraints.

    Returns:
        The problem, to hand to `sp.fit`, `sp.calibrate` or a solver.

    Raises:
        BadProblem: If the parts do not fit together or the bounds contradict each other.

    Example:
        >>> import setpoint as sp
        >>> print(sp.minimize(sp.fnr, sp.fpr <= 0.01))
        minimize fnr where fpr <= 1%
    """
    return _problem(objective, False, constraints, over)


def maximize(objective: Quantity, *constraints: Constraint, over: Range | None = None) -> Problem:
    """The problem of maximising an objective under constraints, or on average over a range of a rate.

    Args:
        objective: The rate or metric to maximise.
        *constraints: The bounds that must hold, such as `sp.recall >= 0.95`.
        over: A range such as `sp.fpr.between(0, 0.05)` over which the objective is averaged; it excludes constraints.

    Returns:
        The problem, to hand to `sp.fit`, `sp.calibrate` or a solver.

    Raises:
        BadProblem: If the parts do not fit together or the bounds contradict each other.

    Example:
        >>> import setpoint as sp
        >>> print(sp.maximize(sp.precision, sp.recall >= 0.95))
        maximize precision where recall >= 95%
    """
    return _problem(objective, True, constraints, over)


def _problem(objective: Any, maximize: bool, constraints: tuple[Any, ...], over: Range | None) -> Problem:
    if callable(objective) and not isinstance(objective, Quantity):
        name = getattr(objective, "__name__", "objective")
        raise BadProblem(f"{name} is a function, not a rate; call it first, as in {name}(1)")
    return Problem(objective, maximize, constraints, over)
