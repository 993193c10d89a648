"""The best shifts of K classes: exact where one cut decides, found by search otherwise.

Two classes have one cut, and so has a problem about one class alone, whose shift is set while the others stay at 0: all
cuts are compared. Few rows of three classes have few enough decisions to compare them all (`decide/three_classes.py`).
Everything else is searched for, class by class (`decide/shift_search.py`), from the shifts that meet
bounds on coverages too, which are a convex problem (`decide/coverage.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from setpoint.decide.coverage import coverage_bounds, true_correction
from setpoint.decide.cut import best_cut, find
from setpoint.decide.shift_limit import objective_limit
from setpoint.decide.shift_search import Start, class_cuts, nearby_shifts, search_shifts
from setpoint.decide.three_classes import all_cuts_fit, best_of_all_shifts
from setpoint.measure.classes import Micro, OfClass
from setpoint.measure.rate import flagged
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.problem.shifts import Shifts

#: Starts that are drawn at random, where there are no more scores than this.
DRAWN, QUICK = 2, 100_000


def find_shifts(
    problem: Problem,
    sample: Sample,
    names: Sequence[str] | None = None,
    start: Tensor | None = None,
    *,
    quick: bool = False,
) -> Shifts:
    """The best shifts that were found to meet all bounds; if none were, those that break the bounds least.

    Args:
        problem: The problem, whose classes have numbers.
        sample: Scores `(n, K)`, class numbers and weights.
        names: The names of the classes; None names them by their numbers.
        start: Good shifts of a problem that differs little, from which a few moves are made.
        quick: Make a few moves from no shifts alone, to follow a training from epoch to epoch.
    """
    sample, n_classes = sample.double(), sample.scores.shape[1]
    own = tuple(names or map(str, range(n_classes)))
    alone = only_class(problem)
    found = torch.zeros(n_classes, dtype=torch.float64)
    if n_classes == 2:
        shifts, counts = class_cuts(sample, found, 1)
        found[1] = shifts[best_cut(problem, counts)]
    elif alone is not None:
        found[alone] = find(of_one_class(problem), against_the_rest(sample, alone)).thresholds[0]
    elif all_cuts_fit(sample) and start is None and not quick:
        found = best_of_all_shifts(problem, sample)
    elif start is not None or quick:
        found = nearby_shifts(problem, sample, found if start is None else start)
    else:
        more: list[Start] = [partial(_for_coverages, problem)] if _bounds_coverages(problem) else []
        found = search_shifts(problem, sample, [*starts_for(sample), *more])
    return Shifts(own, tuple((found - found.median()).tolist() if n_classes > 2 else found.tolist()))


def with_limit(problem: Problem, sample: Sample, shifts: Shifts) -> Shifts:
    """The shifts with the limit that no shifts pass on these rows, where it is known."""
    sample = sample.double()
    if all_cuts_fit(sample) and only_class(problem) is None:
        best = replace(shifts, shifts=tuple(best_of_all_shifts(problem, sample).tolist())).count(sample)
        if all(bool(c.holds(best).all()) for c in problem.constraints):
            return replace(shifts, limit=float(problem.objective(best)))
    return replace(shifts, limit=objective_limit(problem, sample))


def only_class(problem: Problem) -> int | None:
    """The class that all quantities of the problem are about, if there is one."""
    classes = {q.k if isinstance(q, OfClass) else -1 for q in problem.quantities}
    return classes.pop() if len(classes) == 1 and -1 not in classes else None


def of_one_class(problem: Problem) -> Problem:
    """The problem of two classes that a problem about one class alone is: that class against the rest."""
    plain = {q: q.rate for q in problem.quantities if isinstance(q, OfClass)}
    bounds = tuple(replace(c, quantity=plain[c.quantity]) for c in problem.constraints)  # type: ignore[index]
    return Problem(plain[problem.objective], problem.maximize, bounds)  # type: ignore[index]


def against_the_rest(sample: Sample, k: int) -> Sample:
    """The margins of one class over the best of the others, with 1 for rows of that class."""
    others = sample.scores.clone()
    others[:, k] = -torch.inf
    return Sample(sample.scores[:, k] - others.max(-1).values, (sample.labels == k).double(), sample.weights)


def starts_for(sample: Sample) -> list[Start]:
    """The shifts at which a search starts: none, those that even out the classes, and drawn ones if that is quick."""
    drawn = DRAWN if sample.scores.numel() <= QUICK else 0
    return [no_shifts, log_shares, *(partial(_drawn, seed) for seed in range(drawn))]


def no_shifts(sample: Sample) -> Tensor:
    """No shifts."""
    return torch.zeros(sample.scores.shape[1], dtype=torch.float64, device=sample.scores.device)


def _drawn(seed: int, sample: Sample) -> Tensor:
    """Shifts drawn at random, as far apart as the scores of a row."""
    draw = torch.Generator().manual_seed(0x5E7 + seed)
    apart = (sample.scores - sample.scores.mean(-1, keepdim=True)).square().mean().sqrt()
    return apart * torch.randn(sample.scores.shape[1], generator=draw, dtype=torch.float64).to(sample.scores.device)


def log_shares(sample: Sample) -> Tensor:
    """The shifts that even out classes of different sizes, where scores are logits."""
    sizes = torch.bincount(sample.labels, sample.weights, sample.scores.shape[1]).double().clamp(min=1e-9)
    return (sizes / sizes.sum()).log()


def _bounds_coverages(problem: Problem) -> bool:
    """Whether all bounds are on the coverage of a class."""
    quantities = [c.quantity for c in problem.constraints]
    return bool(quantities) and all(isinstance(q, OfClass) and bool(q.rate == flagged) for q in quantities)


def _for_coverages(problem: Problem, sample: Sample) -> Tensor:
    """The best shifts for the objective alone, corrected so that all coverages are within their bounds."""
    low, high = coverage_bounds(problem, sample.scores.shape[1])
    base = torch.zeros_like(low)
    if not isinstance(problem.objective, Micro):
        base = search_shifts(replace(problem, constraints=()), sample, starts_for(sample))
    return base + true_correction(sample.scores - base, low, high, sample.weights)
