"""Losses that solve the paper's linear programs in every step of a training, each by a named engine and gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpoint import lp
from setpoint.lp.penalty import descend, stacked

#: Scores and labels to a loss; a step of a training calls it once.
Loss = Callable[[Tensor, Tensor], Tensor]
#: Newton's epsilons of the paper's Table 2.
EPSILONS = (0.1, 0.01, 0.001)
#: Every so many steps a loss writes down the cosine of its gradient to that of the closed form.
LOOK_EVERY = 10
#: Directions of the one training in a smaller space: a quarter of the 65 variables of a batch of 64.
DIRECTIONS = 16


def area_program(scores: Tensor, labels: Tensor, margin: float) -> lp.LinearProgram:
    """Program (2) with a cost of 1 per pair, as published; `lp.forms.auc` divides by the number of pairs."""
    program = lp.forms.auc(scores, labels, margin=margin)
    return lp.LinearProgram(torch.ones_like(program.cost), program.matrix, program.bound)


def program_of(form: str, scores: Tensor, labels: Tensor, margin: float) -> lp.LinearProgram:
    if form == "area":
        return area_program(scores, labels, margin)
    return lp.forms.f_score(scores, labels, margin=margin)


def closed(form: str, scores: Tensor, labels: Tensor, margin: float) -> Tensor:
    """The loss by its closed form: the mean shortfall of a pair, or 1 less the F-score."""
    if form == "area":
        return lp.closed.auc(scores, labels, margin=margin)
    return 1 - lp.closed.f_score(scores, labels, margin=margin)


@dataclass
class Solved:
    """A program solved in each step; `ramp` is equation (3), which counts pairs by the solution itself.

    `gradient` is asked for the gradient of a step. How solves ended, and the cosines of gradients to those of the
    closed form, are kept.
    """

    form: str
    margin: float
    engine: lp.Engine
    gradient: Callable[[int], lp.Gradient]
    ramp: bool = False
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    cosines: list[float] = field(default_factory=list)

    def __call__(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        if not 0 < float(labels.sum()) < len(labels):
            return 0 * scores.sum()
        program = program_of(self.form, scores, labels, self.margin)
        found = lp.solve(program, self.engine, self.gradient(self.steps))
        self.outcomes[found.status.name] += 1
        if self.ramp:
            loss = 1 - (self.margin - found.x).clamp(min=0).mean() / self.margin
        else:
            loss = found.value / len(program.cost) if self.form == "area" else 1 + found.value
        if self.steps % LOOK_EVERY == 0 and not self.ramp:
            self.cosines.append(cosine(loss, closed(self.form, scores, labels, self.margin), scores))
        self.steps += 1
        return loss.to(scores.dtype)


@dataclass
class Reduced:
    """The exterior penalty of the F-score program in a few directions; see `reduction`."""

    epsilon: float
    directions: int = DIRECTIONS
    margin: float = 0.0
    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    cosines: list[float] = field(default_factory=list)

    def __call__(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        if not 0 < float(labels.sum()) < len(labels):
            return 0 * scores.sum()
        program = lp.forms.f_score(scores, labels, margin=self.margin)
        basis = lp.sliced_inverse_directions(program, self.directions, slices=2 * self.directions)
        loss = 1 + penalty_within(program, basis, self.epsilon)
        if self.steps % LOOK_EVERY == 0:
            self.cosines.append(cosine(loss, closed("f-score", scores, labels, self.margin), scores))
        self.steps += 1
        return loss.to(scores.dtype)


def penalty_within(program: lp.LinearProgram, basis: Tensor | None, epsilon: float, steps: int = 60) -> Tensor:
    """The least of c.y + |(G y - h)+|^2 / (2 epsilon) over y = basis w, as a function of the program's tensors.

    By the envelope theorem its gradient is that of the expression at the point found. Without a basis: all directions.
    """
    cost, rows, bounds = stacked(program)
    with torch.no_grad():
        small = (cost, rows) if basis is None else (cost @ basis, rows @ basis)
        point, _ = descend(*small, bounds, epsilon, 1e-6, steps, line_search=True)
        y = point if basis is None else basis @ point
    pushed = (rows @ y - bounds).clamp(min=0)
    return cost @ y + pushed.square().sum() / (2 * epsilon)


def cosine(one: Tensor, other: Tensor, scores: Tensor) -> float:
    """Of the gradients of two losses in the scores; 0 where one of them vanishes."""
    ours, theirs = (torch.autograd.grad(loss, scores, retain_graph=True)[0].double() for loss in (one, other))
    return float(torch.cosine_similarity(ours, theirs, dim=0))


def penalty(form: str, margin: float, epsilon: float, *, ramp: bool = False) -> Solved:
    """As published: full Newton steps on the bare penalty, prices give the active rows, these give the gradient."""
    return Solved(form, margin, lp.ExteriorPenalty(epsilon=epsilon), lambda _: lp.ActiveSet(), ramp)


def with_burn_in(form: str, margin: float) -> Solved:
    """As published: gradients of unrolled steps while epsilon grows, then the active rows."""
    burn = lp.BurnIn()
    last = burn.start * burn.growth**burn.steps
    return Solved(form, margin, lp.ExteriorPenalty(epsilon=last), burn.at)


def engine(form: str, margin: float) -> Solved:
    """Our engine, and the gradient through the active rows."""
    return Solved(form, margin, lp.Newton(), lambda _: lp.ActiveSet())
