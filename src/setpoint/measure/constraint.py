"""Constraints: a quantity compared with a number, as in `fpr <= 0.01`; the excess is positive when it is broken."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from setpoint.errors import BadProblem

if TYPE_CHECKING:
    from torch import Tensor

Relation = Literal["<=", ">=", "=="]
Value = TypeVar("Value", float, "Tensor")
#: Rounding allowed when a rate is compared with its bound.
SLACK = 1e-9


def percent(share: float) -> str:
    """`0.01` as `1%`, exactly: the point of the shortest decimal is moved, nothing is multiplied."""
    return f"{Decimal(repr(share)).scaleb(2).normalize():f}%"


#: The kind of question that one threshold (or one per group, or one per point of an area) answers.
CUT = "cut"


class Quantity(ABC):
    """A named function of the counts that can be compared with a number."""

    name: str
    #: The kind of question that the quantity belongs to, which says what its counts are: see `Problem.kind`.
    kind: ClassVar[str] = CUT

    @abstractmethod
    def __call__(self, counts: Tensor) -> Tensor:
        """The value at `counts (..., 4)`."""

    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """The values by which two quantities of one type are compared."""

    def adopt(self, plain: Quantity) -> Quantity:
        """A plain rate that stands beside this quantity in one problem, as a quantity of this kind."""
        return plain

    @property
    def is_share(self) -> bool:
        """Whether the value always lies between 0 and 1."""
        return False

    def refuse(self, relation: Relation, bound: float) -> None:
        """Raise BadProblem for a bound that this quantity cannot have."""
        if self.is_share and not 0 <= bound <= 1:
            remedy = "choose one within"
            if 1 < bound <= 100:
                remedy = f"for {bound:g} percent write {bound / 100:g} or, in an ask, {bound:g}%"
            raise BadProblem(f"{self} {relation} {bound:g} is a share outside 0 ... 1; {remedy}")

    def text(self, relation: Relation, bound: float) -> str:
        """The text of a bound on this quantity, as an ask has it."""
        return f"{self} {relation} {percent(bound) if self.is_share else repr(bound)}"

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        """The largest change of the value when one sample of weight `heaviest` crosses the threshold."""
        return counts.new_zeros(counts.shape[:-1])

    def __le__(self, bound: float) -> Constraint:
        return Constraint(self, "<=", bound)

    def __ge__(self, bound: float) -> Constraint:
        return Constraint(self, ">=", bound)

    def __eq__(self, other: object) -> Any:
        """A constraint when compared with a number; otherwise, whether both are the same quantity."""
        if isinstance(other, Real) and not isinstance(other, bool):
            return Constraint(self, "==", float(other))
        return type(self) is type(other) and self.identity() == other.identity()

    def __ne__(self, other: object) -> bool:
        return type(self) is not type(other) or self.identity() != other.identity()

    def __hash__(self) -> int:
        return hash((type(self), self.identity()))

    def __lt__(self, bound: float) -> Constraint:
        raise BadProblem(f"{self.name} < {bound}: bounds are never strict; write {self.name} <= {bound}")

    def __gt__(self, bound: float) -> Constraint:
        raise BadProblem(f"{self.name} > {bound}: bounds are never strict; write {self.name} >= {bound}")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constraint:
    """A bound on a rate or metric: `quantity <= bound`, `>= bound` or `== bound`.

    Comparing a rate with a number makes one. An equality holds when it is met within one sample.

    Args:
        quantity: The rate, metric or gap that is bounded.
        relation: `"<="`, `">="` or `"=="`.
        bound: The number it is compared with; a share such as 0.01 for rates.

    Raises:
        BadProblem: If the quantity cannot have that bound, such as a share above 1.

    Example:
        >>> import setpoint as sp
        >>> bound = sp.fpr <= 0.01
        >>> print(bound, bound.relation, bound.bound)
        fpr <= 1% <= 0.01
    """

    quantity: Quantity
    relation: Relation
    bound: float

    def __post_init__(self) -> None:
        if not isinstance(self.quantity, Quantity):
            raise BadProblem(
                f"a constraint bounds a rate such as sp.fpr or a metric, but got {self.quantity!r}; "
                "write it as sp.fpr <= 0.01"
            )
        if self.relation not in ("<=", ">=", "=="):
            raise BadProblem(f"relation {self.relation!r} is none of <=, >=, ==")
        if not isinstance(self.bound, Real) or isinstance(self.bound, bool) or not math.isfinite(self.bound):
            raise BadProblem(f"the bound of {self.quantity} must be a finite number, but got {self.bound!r}")
        object.__setattr__(self, "bound", float(self.bound))
        self.quantity.refuse(self.relation, self.bound)

    def excess(self, counts: Tensor) -> Tensor:
        """The distance of the value beyond the bound, negative when the bound holds; for `==` the signed distance."""
        return self._beyond(self.quantity(counts))

    def violation(self, counts: Tensor) -> Tensor:
        """The excess, or its absolute value for `==`; positive when the bound is broken."""
        return self.violation_at(self.quantity(counts))

    def violation_at(self, value: Value) -> Value:
        """The violation when the quantity has this value."""
        return abs(self._beyond(value)) if self.relation == "==" else self._beyond(value)

    def _beyond(self, value: Value) -> Value:
        return self.bound - value if self.relation == ">=" else value - self.bound

    def holds(self, counts: Tensor, heaviest: float | Tensor = 1.0) -> Tensor:
        """Whether the bound is met; an equality is met within one sample, of weight `heaviest`."""
        slack = self.quantity.resolution(counts, heaviest) if self.relation == "==" else 0.0
        return self.violation(counts) <= SLACK + slack

    def __str__(self) -> str:
        return self.quantity.text(self.relation, self.bound)

    def __bool__(self) -> bool:
        raise BadProblem(
            f"{self} is a constraint, not a truth value; "
            "a chain such as 0.1 <= rate <= 0.2 must be written as two constraints"
        )


@dataclass(frozen=True, eq=False, repr=False)
class FlaggedRows(Quantity):
    """The number of flagged rows, tp + fp; a row of weight w counts as w rows.

    The number depends on how many rows there are, so a bound on it is about the rows at hand; `Problem.among` turns
    the bound into a share.
    """

    name: str = "flagged rows"

    def __call__(self, counts: Tensor) -> Tensor:
        return counts[..., 0] + counts[..., 1]

    def resolution(self, counts: Tensor, heaviest: float | Tensor) -> Tensor:
        """The weight of the heaviest row."""
        return counts.new_ones(counts.shape[:-1]) * heaviest

    def identity(self) -> tuple[object, ...]:
        return (self.name,)

    def refuse(self, relation: Relation, bound: float) -> None:
        if bound < 0 or bound != int(bound):
            raise BadProblem(f"rows are counted in whole numbers from 0 up, but got flagged {relation} {bound:g} rows")

    def text(self, relation: Relation, bound: float) -> str:
        return f"flagged {relation} {bound:.0f} rows"

    def __repr__(self) -> str:
        return "FlaggedRows()"
