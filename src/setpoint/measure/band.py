"""Rates of three decisions: rows above both cuts are flagged, rows between the cuts are reviewed, the rest is left.

Counts are `(..., 6)`: the flagged and unflagged rows as (tp, fp, fn, tn), then the reviewed positives and the reviewed
negatives. A rate of a class, or of all rows, counts reviewed rows as part of its whole: recall is the share of all
positives that are flagged. Precision and its like are shares of the decided rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setpoint.errors import BadProblem
from setpoint.measure.constraint import Constraint, Quantity
from setpoint.measure.curve import Curve
from setpoint.measure.rate import Rate
from setpoint.on_use import torch

if TYPE_CHECKING:
    from torch import Tensor

BAND = "band"
#: The wholes of rates that are shares of the flagged rows, or of the rows that are neither flagged nor reviewed.
_FLAGGED, _UNFLAGGED = (1, 1, 0, 0), (0, 0, 1, 1)


@dataclass(frozen=True, eq=False, repr=False)
class BandRate(Rate):
    """A rate of three decisions: `part` and `whole` weigh (tp, fp, fn, tn, reviewed positives, reviewed negatives).

    `sp.ask("minimize review where precision >= 99%")` makes such rates; a plain rate beside `review` becomes one.

    Example:
        >>> import torch
        >>> from setpoint.measure.band import review
        >>> review(torch.tensor([40.0, 1.0, 2.0, 47.0, 6.0, 4.0]))
        tensor(0.1000)
    """

    kind = BAND

    def adopt(self, plain: Quantity) -> BandRate:
        """The same rate of three decisions; a quantity without a meaning beside `review` is refused."""
        if isinstance(plain, BandRate):
            return plain
        if isinstance(plain, Rate) and plain.has_fixed_whole:
            tp, fp, _, _ = plain.whole
            return BandRate(plain.name, (*plain.part, 0, 0), (*plain.whole, tp, fp))
        if isinstance(plain, Rate) and plain.whole in (_FLAGGED, _UNFLAGGED):
            return BandRate(plain.name, (*plain.part, 0, 0), (*plain.whole, 0, 0))
        raise BadProblem(
            f"{plain} has no meaning beside {self.name}, which leaves some rows undecided; ask for precision, npv, "
            "recall, fnr, fpr, tnr, error, accuracy, flagged or a cost"
        )

    @property
    def has_fixed_whole(self) -> bool:
        tp, fp, fn, tn, rp, rn = self.whole
        return tp == fn == rp and fp == tn == rn

    @property
    def direction(self) -> int:
        return 0

    def refuse(self, relation: str, bound: float) -> None:
        super().refuse(relation, bound)  # type: ignore[arg-type]
        if relation == "==":
            raise BadProblem(f"{self} == {bound:g}: two cuts meet an equality in many ways; write <= or >=")

    @property
    def sides(self) -> tuple[bool, bool]:
        """Whether the rate depends on the upper cut, and whether it depends on the lower one."""
        tp, fp, fn, tn, rp, rn = self.part
        upper = (tp, fp) != (rp, rn) or self.whole[:2] != self.whole[4:]
        lower = (fn, tn) != (rp, rn) or self.whole[2:4] != self.whole[4:]
        return upper, lower

    def of_cuts(self, cuts: Curve) -> tuple[Tensor, Tensor]:
        """The parts of the value that each upper cut and each lower cut brings, `(c,)` each; their sum is the value.

        Only one of them is not 0 for a share of the flagged or of the unflagged rows.
        """
        positives, negatives, tp, fp = cuts.tp[-1], cuts.fp[-1], cuts.tp, cuts.fp
        p, w = self.part, self.whole
        upper = (p[0] - p[4]) * tp + (p[1] - p[5]) * fp
        lower = p[2] * (positives - tp) + p[3] * (negatives - fp) + p[4] * tp + p[5] * fp
        if self.has_fixed_whole:
            whole = w[0] * positives + w[1] * negatives
            return _over(upper, whole), _over(lower, whole)
        if self.sides[0]:
            return _over(upper, w[0] * tp + w[1] * fp), torch.zeros_like(lower)
        return torch.zeros_like(upper), _over(lower, w[2] * (positives - tp) + w[3] * (negatives - fp))


def _over(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=1e-300), 0.0)


review = BandRate("review", part=(0, 0, 0, 0, 1, 1), whole=(1, 1, 1, 1, 1, 1))
"""The share of rows between the two cuts, which people review."""


def is_one_sided(constraint: Constraint) -> bool:
    """Whether a bound depends on one of the two cuts alone."""
    assert isinstance(constraint.quantity, BandRate)
    return constraint.quantity.sides != (True, True)
