"""The penalty on the parameters of linear models, chosen by cross-validated cross-entropy on a path of strengths.

A penalty is a ridge, or an elastic net where columns are many beside rows. Either is turned into new columns on which
it is the plain ridge 1/2 |theta|^2 that all recipes share (`ScaledColumns`): a ridge of strength s divides each column
by sqrt(s). An elastic net keeps the columns whose parameter is not 0 and divides each by the root of the ridge that has
the same slope there, so that plain cross-entropy on the new columns is the elastic net's own solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import torch
from torch import Tensor
from torch.nn import functional as F

from setpoint.data.rows import Rows
from setpoint.data.split import folds_of_clusters, strata
from setpoint.data.standardise import Standardiser
from setpoint.train.class_weights import class_weights
from setpoint.train.lasso import elastic_net
from setpoint.train.linear import MATCH_ROWS, some_rows
from setpoint.train.newton import leave_one_out, newton, products_of

FOLDS = 5
#: The best strength of an elastic net is looked for on the first of the folds; it and its neighbours are tried on all.
SCOUTS = 2
#: From the weakest ridge on, each four times as strong as the one before.
STRENGTHS = tuple(4.0**power for power in range(-1, 9))
#: The share of the lasso in an elastic net: all of it, and half of it where columns are more than rows, because a lasso
#: keeps no more columns than there are rows. On tables of more rows the half never gained beyond noise.
LASSO, HALF = 1.0, 0.5
#: The factors of the strength at which no parameter is left.
STEPS = tuple(0.65**power for power in range(1, 13))
#: With more rows of the smaller class per column than this, the weakest penalty is as good as any, and none is tried.
ENOUGH = 50
#: With fewer rows of the smaller class per column than this, elastic nets are tried beside ridges: they take longer.
FEW = 10
#: The standard errors by which another penalty must be better than the ridge of strength 1. The threshold of a tight
#: bound lies among few rows, and there less shrinking is often better than the loss of all rows says.
CAUTION = 3.0
#: The path ends after so many strengths in a row without a better one.
PATIENCE = 2
#: Where the lasso is behind the best ridge by more than so many standard errors, no mix of the two is tried.
REACH = 2.0
#: A path of elastic nets ends once one keeps a column for every second row: weaker ones learn the rows by heart.
FULL = 0.5
#: On the path of ridges a curvature is used again as long as steps shrink what is left to gain by this factor.
PACE = 4.0
#: To which share of the loss the models of the path are fitted.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class LinearPenalty:
    """lasso |theta|_1 + ridge / 2 |theta|^2, beside the sum of the losses, on standardised features."""

    ridge: float = 1.0
    lasso: float = 0.0

    def __str__(self) -> str:
        return f"ridge {self.ridge:g}" if not self.lasso else f"lasso {self.lasso:.3g}, ridge {self.ridge:.3g}"


@dataclass(frozen=True)
class Validated:
    """A penalty, the scores of all rows by models that were not fitted on them, and the loss of each row there."""

    penalty: LinearPenalty
    out_of_fold: Tensor
    losses: Tensor

    @property
    def loss(self) -> float:
        """The sum of losses."""
        return float(self.losses.sum())

    def gain_over(self, other: Validated) -> tuple[float, float]:
        """The gain over another penalty in the sum of losses, and its standard error."""
        gain = other.losses - self.losses
        return float(gain.sum()), float(gain.std()) * len(gain) ** 0.5


@dataclass(frozen=True)
class ScaledColumns:
    """Rows whose columns are so scaled that a penalty is 1/2 |theta|^2 there.

    Args:
        rows: The rows, with the columns that take part.
        kept: The numbers of these columns among all.
        scale: The factor of each.
        width: The number of all parameters, the bias too.
    """

    rows: Rows
    kept: Tensor
    scale: Tensor
    width: int

    @classmethod
    def under(cls, rows: Rows, penalty: LinearPenalty) -> ScaledColumns:
        """The columns for a penalty."""
        width = rows.x.shape[1]
        kept = torch.arange(width)
        ridge = torch.full((width,), penalty.ridge, dtype=torch.float64)
        if penalty.lasso:
            theta = elastic_net(rows, class_weights(rows, 1.0), penalty.lasso, penalty.ridge)
            theta[-1] = 1.0
            kept = theta.nonzero().squeeze(-1)
            ridge = penalty.ridge + penalty.lasso / theta[kept].abs()
        ridge[-1] = 1.0
        scale = ridge.rsqrt()
        own = rows if bool((ridge == 1).all()) else replace(rows, x=rows.x[:, kept] * scale)
        return cls(own, kept, scale, width)

    def whole(self, theta: Tensor) -> Tensor:
        """The parameters of all columns, as they were, from those of these columns."""
        found = torch.zeros(self.width, dtype=torch.float64)
        found[self.kept] = self.scale * theta
        return found


def deal_folds(rows: Rows) -> Tensor:
    """The number of the fold of each row: every fifth row of each class (in each group) is in the same fold.

    Rows of one cluster are in one fold.
    """
    if rows.clusters is not None:
        return folds_of_clusters(rows.labels, rows.clusters, FOLDS, 0)
    fold = torch.zeros(len(rows.labels), dtype=torch.long)
    for kind in strata(rows.labels, rows.groups):
        fold[kind] = torch.arange(len(kind)) % FOLDS
    return fold


def choose_penalty(rows: Rows, caution: float = CAUTION) -> LinearPenalty:
    """The penalty with the lowest cross-validated cross-entropy, where rows are few enough for it to matter."""
    smallest = min(len(kind) for kind in strata(rows.labels, rows.groups))
    if not 2 * FOLDS <= smallest <= ENOUGH * (rows.x.shape[1] - 1) or len(strata(rows.labels)) < 2:
        return LinearPenalty()
    some = some_rows(rows, MATCH_ROWS)
    return cross_validate(some, deal_folds(some), caution)


def cross_validate(rows: Rows, fold: Tensor, caution: float = CAUTION) -> LinearPenalty:
    """The best penalty by cross-validated cross-entropy.

    Args:
        rows: Standardised features in float64 with a last column of ones, labels and weights.
        fold: The number of the fold of each row, from 0 up.
        caution: The number of standard errors by which a penalty must be better than the ridge of strength 1.

    Returns:
        The penalty with the lowest loss, if it is better than the ridge of strength 1 (or the tried ridge that is
        nearest to it) by more than `caution` standard errors; else that ridge.
    """
    # Rows of one cluster tell of each other, so that leaving out one row says too little.
    strengths = STRENGTHS if rows.clusters is not None else scout_ridges(rows)
    few = int(min(rows.labels.sum(), (1 - rows.labels).sum())) < FEW * (rows.x.shape[1] - 1)
    if len(strengths) == 1 and not few:
        return LinearPenalty(*strengths)
    ridges = ridge_path(rows, fold, strengths)
    present = min(ridges, key=lambda one: abs(math.log(one.penalty.ridge)))
    best = min(ridges, key=attrgetter("loss"))
    mixes = (LASSO, HALF) if rows.x.shape[1] > len(rows.x) else (LASSO,)
    for mix in mixes if few else ():
        net = min(lasso_path(rows, fold, mix), key=attrgetter("loss"))
        behind, error = best.gain_over(net)
        best = min(best, net, key=attrgetter("loss"))
        if behind > REACH * error:
            break
    gain, error = best.gain_over(present)
    return (best if gain > caution * error else present).penalty


def scout_ridges(rows: Rows) -> tuple[float, ...]:
    """The strength 1, and the best strength by leaving out one row at a time, which takes one fit per strength."""
    weights, products = class_weights(rows, 1.0), products_of(rows.x)
    theta, losses = None, dict[float, float]()
    for strength in STRENGTHS if products is None else STRENGTHS[::-1]:
        theta, _ = newton(rows, weights, theta, ridge=strength, products=products, tolerance=TOLERANCE)
        scores = leave_one_out(rows, weights, theta, strength, products)
        losses[strength] = float(rescaled_losses(rows, scores).sum())
        if not _goes_on(list(losses.values())):
            break
    return tuple(sorted({1.0, min(losses, key=losses.__getitem__)}))


def _goes_on(losses: Sequence[float]) -> bool:
    """Whether fewer than `PATIENCE` losses in a row are no better than the best."""
    return len(losses) - losses.index(min(losses)) <= PATIENCE


def ridge_path(rows: Rows, fold: Tensor, strengths: Sequence[float] = STRENGTHS) -> list[Validated]:
    """Ridges, until they get no better: from the first on, or from the last if columns are more than rows."""
    weights, products = class_weights(rows, 1.0), products_of(rows.x)
    last: Tensor | None = None

    def at(penalty: LinearPenalty) -> Fit:
        nonlocal last
        fit = partial(newton, rows, ridge=penalty.ridge, products=products, tolerance=TOLERANCE, pace=PACE)
        last, undo = fit(weights, last)
        start = last
        # The curvature of all rows, less the share of a fold, is nearly that of the rest.
        return lambda inside, turn: fit(inside, start, lambda slope: undo(slope) * (weights.sum() / inside.sum()))[0]

    strengths = strengths if products is None else strengths[::-1]
    return _walk(rows, fold, [LinearPenalty(strength) for strength in strengths], at)


def lasso_path(rows: Rows, fold: Tensor, mix: float) -> list[Validated]:
    """Elastic nets from strong to weak about the best on the first folds; `mix` is the share of the lasso."""
    weights = class_weights(rows, 1.0)
    share = (weights * rows.labels).sum() / weights.sum()
    strongest = float((rows.x[:, :-1].T @ (weights * (rows.labels - share))).abs().max()) / mix
    known: dict[tuple[LinearPenalty, int], Tensor] = {}

    def at(penalty: LinearPenalty) -> Fit:
        def fit(inside: Tensor, turn: int) -> Tensor:
            if (penalty, turn) not in known:
                # From the penalty before in the same fold, or from the same penalty in another fold.
                near = [theta for (one, place), theta in known.items() if place == turn or one == penalty]
                start = near[-1] if near else None
                known[penalty, turn] = elastic_net(rows, inside, penalty.lasso, penalty.ridge, start, TOLERANCE)
            return known[penalty, turn]

        return fit

    def nets() -> Iterator[LinearPenalty]:
        for step in STEPS:
            yield (penalty := LinearPenalty((1 - mix) * step * strongest, mix * step * strongest))
            if int((known[penalty, 0] != 0).sum()) > FULL * len(rows.x):
                return

    scouted = _walk(rows, fold, nets(), at, SCOUTS)
    best = min(range(len(scouted)), key=lambda place: scouted[place].loss)
    return _walk(rows, fold, [one.penalty for one in scouted[max(best - 1, 0) : best + 2]], at)


def rescaled_losses(rows: Rows, scores: Tensor) -> Tensor:
    """The cross-entropy of each row at the best scale (0 or more) and shift of the scores.

    The threshold is set after training and adapts to any scale and shift. A penalty that only shrinks all scores is
    therefore not the worse for it.
    """
    fitted = rescaled(rows, scores)
    return class_weights(rows, 1.0) * (F.softplus(fitted) - rows.labels * fitted)


def rescaled(rows: Rows, scores: Tensor) -> Tensor:
    """The scores at their best scale (0 or more) and shift, by cross-entropy."""
    weights = class_weights(rows, 1.0)
    line = replace(rows, x=Standardiser.of(scores.unsqueeze(-1), weights).with_ones(scores.unsqueeze(-1)))
    theta, _ = newton(line, weights, None, ridge=1e-6)
    if theta[0] < 0:
        # In the wrong order they are worth no more than a guess.
        theta, _ = newton(line, weights, None, ridge=1e12)
    fitted: Tensor = line.x @ theta
    return fitted


#: The parameters from the weight of each row, 0 for those of a fold, and the number of that fold.
Fit = Callable[[Tensor, int], Tensor]


def _walk(
    rows: Rows, fold: Tensor, penalties: Iterable[LinearPenalty], at: Callable[[LinearPenalty], Fit], folds: int = FOLDS
) -> list[Validated]:
    """Cross-validate one penalty after the other, until `PATIENCE` in a row are no better than the best.

    Only the rows of the first so many `folds` are judged.
    """
    weights, seen = class_weights(rows, 1.0), fold < folds
    judged, found = rows.take(seen), list[Validated]()
    for penalty in penalties:
        fit, scores = at(penalty), torch.zeros_like(weights)
        for turn in fold[seen].unique().tolist():
            outside = fold == turn
            scores[outside] = rows.x[outside] @ fit(weights * ~outside, turn)
        found.append(Validated(penalty, scores[seen], rescaled_losses(judged, scores[seen])))
        if not _goes_on([one.loss for one in found]):
            break
    return found
