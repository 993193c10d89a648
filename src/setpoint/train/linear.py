"""The anchored recipe for linear models and linear heads: matched cross-entropy, refined under an anchor.

It works on the full batch, in float64, on standardised features, so the scale of the features does not matter.

1. *Match*: ridge cross-entropy with the class weight at which the boundary at a probability of 0.5 meets the bound in
   training. The weight is found by bisection. This also fixes the scale of the scores.
2. *Refine*: the implicit objective (step of temperature 1, thresholds found anew as it goes) plus the anchor
   eta * q * [sum a_i CE_i + 1/2 mean(a) |theta - centre|^2], with a_i the matched weights, q such that both terms pull
   equally hard on the scores at the start, and

       eta = kappa d (1 / (m s N_C) + 1 / N_O),    s = sqrt(alpha * 1 %):

   d features and m thresholds; N_C samples of the bounded class, a share alpha of which the bound lets pass; N_O
   samples of the other class. The anchor fades as the number of samples near the threshold grows. Where the gradient
   has a closed form (`lean.py`), 40 Newton steps are taken, else 250 of Adam, on a cosine schedule; the result is the
   average over the last half of the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.data.split import strata
from setpoint.measure.count import count
from setpoint.measure.rate import Rate
from setpoint.problem.problem import Problem
from setpoint.solve.correction import Correction
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.solver import Solver
from setpoint.train.adam import Adam
from setpoint.train.class_weights import class_weights, deciding_bound
from setpoint.train.lean import is_lean, refine_lean, refine_stacked
from setpoint.train.newton import newton
from setpoint.train.stacked_rows import StackedRows

STEPS, RATE, SEARCH_EVERY = 250, 0.05, 5
#: The bound (1 %) for which the strength of the anchor was chosen.
USUAL_SHARE = 0.01
#: The share of each class near the threshold, where no bound says how many samples lie beyond it.
FREE_SHARE = 1 / 16
#: The number of rows on which the class weight is searched; the final fit takes all rows.
MATCH_ROWS = 20_000


def some_rows(rows: Rows, size: int) -> Rows:
    """Evenly spread rows of each class, at most `size` in all."""
    if len(rows.x) <= size:
        return rows
    every = -(-len(rows.x) // size)
    return rows.take(torch.cat([kind[::every] for kind in strata(rows.labels)]))


def recipe_bytes(rows: int, features: int) -> int:
    """The peak memory of a recipe, as measured: three copies of the rows in float64, 25 numbers per row for scores and
    curves, and seven matrices of a Newton step, of rows by rows if these are fewer than the features."""
    width = features + 1
    return 8 * (rows * (3 * width + 25) + 7 * min(rows, width) ** 2)


@dataclass(frozen=True)
class Anchor:
    """The anchor of the refinement: cross-entropy to `targets` under `weights`, and a pull towards `centre`."""

    targets: Tensor
    weights: Tensor
    centre: Tensor

    def loss(self, x: Tensor, theta: Tensor) -> Tensor:
        return self.cost(x @ theta, theta)

    def cost(self, scores: Tensor, theta: Tensor) -> Tensor:
        """The loss, from the scores of the rows."""
        entropy = F.softplus(scores) - self.targets * scores
        away = (theta - self.centre)[:-1]
        return (self.weights * entropy).sum() + self.weights.mean() * (away @ away) / 2


def cross_entropy(rows: Rows, weights: Tensor, start: Tensor | None = None, products: Tensor | None = None) -> Tensor:
    """Ridge logistic regression, sum a_i CE_i + 1/2 mean(a) |theta|^2 with a free bias, to convergence.

    With many rows it starts from the solution on some of them, because Newton steps on all rows are expensive. With
    fewer rows than features, the `products` of the rows (see `products_of`) make the steps cheaper.
    """
    if start is not None or len(rows.x) <= 2 * MATCH_ROWS:
        return newton(rows, weights, start, products=products)[0]
    some = some_rows(replace(rows, weights=weights), MATCH_ROWS)
    start, undo = newton(some, some.weights_or_ones, None)
    share = weights.sum() / some.weights_or_ones.sum()
    return newton(rows, weights, start, lambda slope: undo(slope) / share)[0]


def match(problem: Problem, rows: Rows, products: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Cross-entropy weighted so that threshold 0 meets the problem's bound in training, and the sample weights.

    It is plain cross-entropy if no bound moves one way with the threshold (F-scores, precision as a bound).
    """
    bound = deciding_bound(problem)
    if bound is None:
        weights = class_weights(rows, 1.0)
        return cross_entropy(rows, weights, products=products), weights
    sought = some_rows(rows, MATCH_ROWS)
    near = products if sought is rows else None
    rate = bound.quantity
    assert isinstance(rate, Rate)
    low, high, theta = math.log(1e-6), math.log(1e6), None
    for _ in range(20):
        middle = (low + high) / 2
        theta = cross_entropy(sought, class_weights(sought, math.exp(middle)), theta, near)
        value = float(rate(count(sought.x @ theta, sought.labels, 0.0, weights=sought.weights)))
        # More weight on positives flags more rows.
        if (value > bound.bound) == (rate.direction > 0):
            high = middle
        else:
            low = middle
    weights = class_weights(rows, math.exp(middle))
    return cross_entropy(rows, weights, theta, products), weights


def anchor_strength(problem: Problem, rows: Rows, features: int | None = None) -> float:
    """d (1 / (m s N_C) + 1 / N_O), the factor of kappa; d is the number of columns but one, unless `features` says it.

    The samples near a threshold decide. Their share s is the geometric mean of alpha and 1 %: more than alpha where
    alpha is small, less where it is large. Each of m thresholds has its own samples. Where no bound says how many
    samples lie beyond the threshold (F-scores, precision, errors), it is a fixed share of both classes.
    """
    positives = float((rows.weights_or_ones * rows.labels).sum())
    negatives = float(rows.weights_or_ones.sum()) - positives
    bound = deciding_bound(problem)
    beyond, other = FREE_SHARE * positives, FREE_SHARE * negatives
    if bound is not None:
        assert isinstance(bound.quantity, Rate)
        whole = bound.quantity.whole
        allowed = max(min(bound.bound, 1 - bound.bound), 1e-6)
        bounded, other = (positives, negatives) if whole == (1, 0, 1, 0) else (negatives, positives)
        if whole == (1, 1, 1, 1):
            bounded = positives + negatives
        beyond = problem.n_thresholds * math.sqrt(allowed * USUAL_SHARE) * bounded
    features = rows.x.shape[1] - 1 if features is None else features
    return features * (1 / max(beyond, 1e-9) + 1 / max(other, 1e-9))


def refine(
    problem: Problem,
    rows: Rows,
    start: Tensor,
    anchor: Anchor,
    kappa: float,
    solver: Solver | None = None,
    products: Tensor | None = None,
) -> Tensor:
    """Improve `start` on the problem, held back by the anchor.

    The solver is implicit thresholds unless another is given; it must take the full batch and unscaled logits. With
    fewer rows than features, the `products` of the rows make Newton steps cheaper.
    """
    if solver is None and is_lean(problem, rows):
        return refine_lean(problem, rows, start, anchor, kappa * anchor_strength(problem, rows), products)
    if solver is None:
        search = Correction(every=SEARCH_EVERY)
        solver = ImplicitThreshold(problem, n_groups=rows.n_groups, temperature=1.0, memory=0, correction=search)
    # These are all rows: no other process has more.
    solver.double().across(False)
    every = torch.arange(len(rows.labels))

    theta = start.clone().requires_grad_()
    optimizer = Adam([([theta, *solver.parameters()], 0.0)], RATE)
    scores = (rows.x @ start).requires_grad_()
    solver.eval()
    (push,) = torch.autograd.grad(solver.judged(rows.sample(scores), every), scores)
    solver.train()
    pull = anchor.weights * (torch.sigmoid(rows.x @ start) - rows.labels)
    balance = push.norm() / pull.norm().clamp(min=1e-300)
    strength = kappa * anchor_strength(problem, rows) * balance
    average = torch.zeros_like(start)
    for step in range(STEPS):
        # The rows were checked when they were read, and need not be at every step.
        loss = solver.judged(rows.sample(rows.x @ theta), every) + strength * anchor.loss(rows.x, theta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.rate = RATE / 2 * (1 + math.cos(math.pi * step / STEPS))
        optimizer.step()
        if step >= STEPS // 2:
            average += theta.detach() / (STEPS - STEPS // 2)
    return average


def refine_together(problem: Problem, stacked: StackedRows, start: Tensor, weights: Tensor, kappa: float) -> Tensor:
    """`refine` on several sets of rows at once, each anchored at its labels; `is_lean` covers the problem there."""
    strengths = [kappa * anchor_strength(problem, *own) for own in zip(stacked.sets, stacked.features)]
    return refine_stacked(problem, stacked, start, weights, strengths)
