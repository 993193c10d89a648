"""A limit that no shifts of K classes pass: how much better than those found any others could be at most.

Whether rows of classes j and k are told apart depends on t_j - t_k alone. The best of all such differences gives the
most that the two classes can bring together, P_jk; and the most that all classes can bring is a linear program,

    max sum_k x_k    where x_j + x_k <= P_jk,    x_k = a_k tp_k,

for every objective that is a sum of hits per class: error, accuracy, and recall of one class or averaged over all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.constraint import Constraint, Quantity
from setpoint.measure.over_classes import Proportional
from setpoint.measure.rate import Rate, fnr, recall
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem

Numbers = NDArray[np.float64]
#: The most rows times classes for which the pairs of classes are looked at.
MOST = 40_000_000


@torch.no_grad()
def objective_limit(problem: Problem, sample: Sample) -> float | None:
    """The best value of the objective that any shifts can have on these rows, at most; None if it is not known.

    Bounds on the recall of classes are taken into account, others are not.
    """
    n_classes = sample.scores.shape[1]
    if not isinstance(problem.objective, Micro | Macro | Proportional | OfClass) or sample.scores.numel() > MOST:
        return None
    sizes = torch.bincount(sample.labels, sample.weights, n_classes).double().numpy()
    worth = _worth(problem.objective, sizes)
    hits = _is_hits(problem.objective)
    if worth is None or problem.maximize != hits:
        return None
    most = _most(sample, worth, _bounds(problem.constraints, sizes))
    return (
        None if most is None else (min(most, float(worth @ sizes)) if hits else max(float(worth @ sizes) - most, 0.0))
    )


def _is_hits(quantity: Quantity) -> bool:
    return bool(getattr(quantity, "rate", None) == recall)


def _worth(quantity: Quantity, sizes: Numbers) -> Numbers | None:
    """How much each hit of each class adds to a recall; None if the quantity is not one."""
    rate = getattr(quantity, "rate", None)
    if not isinstance(rate, Rate) or not (bool(rate == recall) or bool(rate == fnr)):
        return None
    present = np.where(sizes > 0, sizes, np.inf)
    if isinstance(quantity, OfClass):
        return np.where(np.arange(len(sizes)) == quantity.k, 1 / present, 0.0)
    return 1 / (len(sizes) * present) if isinstance(quantity, Macro) else np.where(sizes > 0, 1 / sizes.sum(), 0.0)


def _bounds(constraints: tuple[Constraint, ...], sizes: Numbers) -> list[tuple[float, float]]:
    """The least and the most hits of each class that its bounds allow."""
    allowed = [[0.0, float(size)] for size in sizes]
    for c in constraints:
        if isinstance(c.quantity, OfClass) and _worth(c.quantity, sizes) is not None:
            share = c.bound if _is_hits(c.quantity) else 1 - c.bound
            relation = c.relation if _is_hits(c.quantity) else {"<=": ">=", ">=": "<=", "==": "=="}[c.relation]
            k, slack = c.quantity.k, 1.0 if c.relation == "==" else 1e-9
            if relation != "<=":
                allowed[k][0] = max(allowed[k][0], share * sizes[k] - slack)
            if relation != ">=":
                allowed[k][1] = min(allowed[k][1], share * sizes[k] + slack)
    return [(low, high) for low, high in allowed]


def _most(sample: Sample, worth: Numbers, hits: list[tuple[float, float]]) -> float | None:
    """The most that all classes can bring together; None if the bounds exclude each other."""
    n_classes = len(worth)
    rows, limits = [], []
    members = [(sample.labels == k).nonzero().squeeze(-1) for k in range(n_classes)]
    own = [sample.scores[rows].numpy() for rows in members]
    mass = [None if sample.weights is None else sample.weights[rows].numpy() for rows in members]
    for j, k in combinations(range(n_classes), 2):
        if worth[j] > 0 and worth[k] > 0:
            rows.append(np.bincount([j, k], minlength=n_classes))
            first, second = (_Rising.of(own[i][:, j] - own[i][:, k], mass[i]) for i in (j, k))
            limits.append(_of_pair(first, second, worth[j], worth[k]))
    bounds = [(low * each, high * each) for (low, high), each in zip(hits, worth)]
    if not rows:
        return float(sum(high for _, high in bounds))
    found = scipy.optimize.linprog(-np.ones(n_classes), np.array(rows), np.array(limits), bounds=bounds)
    return -float(found.fun) if found.status == 0 else None


@dataclass(frozen=True)
class _Rising:
    """The margins of some rows in ascending order, and the weight of those up to each, from none to all."""

    margins: Numbers
    weight: Numbers

    @classmethod
    def of(cls, margins: Numbers, mass: Numbers | None) -> _Rising:
        if mass is None:
            return cls(np.sort(margins), np.arange(len(margins) + 1.0))
        order = np.argsort(margins)
        return cls(margins[order], np.concatenate([[0.0], np.cumsum(mass[order])]))

    def up_to(self, cuts: Numbers) -> Numbers:
        """The weight of the rows whose margin is at most each cut."""
        found: Numbers = self.weight[np.searchsorted(self.margins, cuts, side="right")]
        return found


def _of_pair(first: _Rising, second: _Rising, of_first: float, of_second: float) -> float:
    """The most that two classes can bring together, whatever their shifts, by the margins of the first over the second.

    Rows of the first class are won above a cut, those of the second up to it. Between two margins of the second class
    the lower end of the cut is the best, so that their own margins are all the cuts to look at.
    """
    cuts = np.concatenate([[-np.inf], second.margins])
    brought = of_first * (first.weight[-1] - first.up_to(cuts)) + of_second * second.up_to(cuts)
    return float(brought.max()) + 1e-12
