"""The best cut by rank: if the bound is about one class and the objective about the other, no sort is needed.

`fpr <= 1%` lets so many negatives pass, hence recall is best right above the next of them; `recall >= 95%` lets so many
positives be missed, hence the false positive rate is best right below the next of those. A selection finds either in
linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.measure.constraint import SLACK, Constraint
from setpoint.measure.rate import fnr, fpr, recall, tnr
from setpoint.problem.problem import Problem

#: Two cuts that differ by less are equally good.
EQUAL = 1e-12
#: Objectives (and whether they are maximised) that improve by flagging more, or less, and the bounds that limit it.
_MORE, _HELD_BACK = {(recall, True), (fnr, False)}, {(fpr, "<="), (tnr, ">=")}
_LESS, _KEPT_UP = {(tnr, True), (fpr, False)}, {(recall, ">="), (fnr, "<=")}


@dataclass(frozen=True)
class Ranked:
    """A bound whose best cut a rank decides; `more`: the objective improves by flagging more, else by flagging less."""

    bound: Constraint
    more: bool

    @staticmethod
    def of(problem: Problem) -> Ranked | None:
        """The rule of a problem; None where ranks do not decide."""
        if problem.over is not None or len(problem.constraints) != 1:
            return None
        (bound,) = problem.constraints
        objective, held = (problem.objective, problem.maximize), (bound.quantity, bound.relation)
        more = objective in _MORE and held in _HELD_BACK
        return Ranked(bound, more) if more or (objective in _LESS and held in _KEPT_UP) else None

    def find(self, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """Threshold, counts, whether the bound holds and whether it is active; None without both classes."""
        scores = scores.detach()
        half = scores.dtype in (torch.float16, torch.bfloat16)
        values = (scores.float() if half else scores).numpy()
        positive = labels.numpy() > 0
        positives = int(np.count_nonzero(positive))
        negatives = len(values) - positives
        size = negatives if self.more else positives
        if not 0 < size < len(values):
            return None
        allowed = _most(self.bound, size)
        active = allowed < size
        # Of the bounded class, so many pass, or are missed, and the next one marks the edge.
        if self.more:
            edge = _nth(values[~positive], size - 1 - allowed) if active else -np.inf
            flagged = values > edge
        else:
            edge = _nth(values[positive], allowed) if active else np.inf
            flagged = values >= edge
        tp, passed = int(np.count_nonzero(flagged & positive)), int(np.count_nonzero(flagged))
        fp = passed - tp
        # No score lies between the edge and the cut that it marks.
        if passed == 0:
            threshold = values.max()
        elif passed == len(values):
            threshold = np.nextafter(values.min(), values.dtype.type(-np.inf))
        elif self.more:
            threshold = between(values[flagged].min(), edge)
        else:
            threshold = between(edge, values[~flagged].max())
        counts = np.array([[tp, fp, positives - tp, negatives - fp]], np.float64)
        feasible = _excess(self.bound, fp if self.more else positives - tp, size) <= SLACK
        return torch.from_numpy(np.array([threshold])), torch.from_numpy(counts), _FEASIBLE[feasible], _ACTIVE[active]


#: The answers no and yes, which nobody writes to.
_FEASIBLE = (torch.tensor(False), torch.tensor(True))
_ACTIVE = (torch.tensor([False]), torch.tensor([True]))


def _nth(values: Any, place: int) -> Any:
    """The value at a place in ascending order; it moves the values about."""
    values.partition(place)
    return values[place]


def _excess(bound: Constraint, wrong: int, size: int) -> float:
    """The excess of the bound if `wrong` of `size` samples of its class are decided wrongly."""
    return wrong / size - bound.bound if bound.relation == "<=" else bound.bound - (size - wrong) / size


def _most(bound: Constraint, size: int) -> int:
    """The number of samples of its class that the bound allows to be decided wrongly."""
    share = bound.bound if bound.relation == "<=" else 1 - bound.bound
    most = min(int(share * size) + 2, size)
    # A step down at most three times: the shares of whole numbers decide, not the product.
    while most > 0 and _excess(bound, most, size) > SLACK + EQUAL:
        most -= 1
    return most


def between(upper: Any, lower: Any) -> Any:
    """The threshold of a cut, as `Curve.thresholds` has it: half way between its neighbours."""
    middle = upper / 2 + lower / 2
    return middle if lower < middle < upper else lower
