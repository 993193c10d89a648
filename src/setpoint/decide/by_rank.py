"""The best cut by rank: if the bound is about one class and the objective about the other, no sort is needed.

`fpr <= 1%` lets so many negatives pass, hence recall is best right above the next of them; `recall >= 95%` lets so many
positives be missed, hence the false positive rate is best right below the next of those. A selection finds either in
linear time.
"""

from __future__ import annotations

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


def find_by_rank(problem: Problem, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Threshold, counts, whether the bound holds and whether it is active; None where ranks do not decide."""
    if problem.over is not None or len(problem.constraints) != 1:
        return None
    (bound,) = problem.constraints
    objective, held = (problem.objective, problem.maximize), (bound.quantity, bound.relation)
    more = objective in _MORE and held in _HELD_BACK
    if not more and not (objective in _LESS and held in _KEPT_UP):
        return None
    values = scores.detach().to(torch.promote_types(scores.dtype, torch.float32)).numpy()
    positive = labels.numpy() > 0
    # Flagging less is flagging more of the negated scores.
    side, bounded = (values, values[~positive]) if more else (-values, -values[positive])
    if not 0 < len(bounded) < len(values):
        return None
    allowed = _most(bound, len(bounded))
    active = allowed < len(bounded)
    first = len(bounded) - 1 - allowed
    edge = np.partition(bounded, first)[first] if active else -np.inf
    beyond = side > edge
    flagged = beyond if more else ~beyond
    tp, passed, positives = (int(np.count_nonzero(of)) for of in (flagged & positive, flagged, positive))
    threshold = _between(values, flagged, passed)
    fp, negatives = passed - tp, len(values) - positives
    counts = torch.tensor([[tp, fp, positives - tp, negatives - fp]], dtype=torch.float64)
    feasible = _excess(bound, fp if more else positives - tp, len(bounded)) <= SLACK
    return torch.from_numpy(np.array([threshold])), counts, torch.tensor(feasible), torch.tensor([active])


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


def _between(values: Any, flagged: Any, passed: int) -> Any:
    """The threshold of a cut, as `Curve.thresholds` has it: half way between its neighbours."""
    if passed == 0:
        return values.max()
    if passed == len(values):
        return np.nextafter(values.min(), values.dtype.type(-np.inf))
    upper, lower = values[flagged].min(), values[~flagged].max()
    middle = upper / 2 + lower / 2
    return middle if lower < middle < upper else lower
