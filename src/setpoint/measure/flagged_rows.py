"""The number of flagged rows, for bounds in rows instead of shares: `flagged == 100 rows`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.measure.constraint import Quantity, Relation


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
