"""Dimension reduction in the exterior penalty's own space: is the gradient kept, and what does it save?

The penalty of a program is minimised over y = Z w with few columns in Z. Directions: five that hold the optimum of the
F-score program (two of the area program), which one knows only by its closed form; sliced inverse regression of the
bounds on the rows, the sufficient dimension reduction that paper 002 names; leading right singular vectors of the rows;
random ones; and no direction at all, since a gradient at y = 0 points somewhere too. Batches of 64 samples and ten
times as many, scores drawn as in `lp_gradients`, epsilon 0.01. Newton takes at most 200 steps: a first run with 60
left the whole program of 640 samples unsolved, with a cosine of 0.2, which said nothing of the directions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.studies.lp_programs.study import tensor
from benchmarks.studies.lp_training.losses import area_program, closed, cosine, penalty_within, program_of
from setpoint import lp
from setpoint.lp.penalty import descend, stacked

EPSILON, SHARES = 0.01, (1 / 8, 1 / 4, 1 / 2)
NONE, OWN, SLICED, LEADING, RANDOM = (
    "none: y = 0",
    "the form's own",
    "sliced inverse regression",
    "leading singular",
    "random",
)
STEPS = 200
#: Batches by their size.
BATCHES = {64: 20, 640: 3}
#: Directions of the area program at ten times the batch, where a share of all would not fit.
FEW = 64
Directions = Callable[[lp.LinearProgram, int], Tensor]


def leading(program: lp.LinearProgram, size: int) -> Tensor:
    """Leading right singular vectors of all rows."""
    _, rows, _ = stacked(program)
    return torch.linalg.eigh(rows.detach().mT @ rows.detach()).eigenvectors[:, -size:]


WAYS: dict[str, Directions] = {
    SLICED: lambda program, size: lp.sliced_inverse_directions(program, size, slices=2 * size),
    LEADING: leading,
    RANDOM: lp.random_directions,
}


def batch(size: int, number: int, share: float) -> tuple[Tensor, Tensor]:
    draw = np.random.default_rng([15, size, number])
    labels = tensor(draw.random(size) < share)
    labels[0], labels[1] = 1, 0
    return tensor(draw.normal(size=size) + labels.numpy() - 0.5).requires_grad_(), labels


def own_directions(form: str, scores: Tensor, labels: Tensor) -> Tensor:
    if form == "f-score":
        return torch.linalg.qr(lp.forms.f_score_basis(scores, labels))[0]
    short = -area_program(scores, labels, 1.0).bound.detach()
    return torch.linalg.qr(torch.stack([(short > 0).double(), short.clamp(min=0)], 1))[0]


def looked_at(form: str, size: int, share: float, batches: int) -> list[dict[str, Any]]:
    """Cosine to the exact gradient and seconds, by directions and their number; all directions first."""
    margin = 1.0 if form == "area" else 0.0
    kept: dict[tuple[str, float], list[tuple[float, float, int]]] = {}
    for number in range(batches):
        scores, labels = batch(size, number, share)
        program = program_of(form, scores, labels, margin)
        exact, variables = closed(form, scores, labels, margin), program.variables
        nothing = torch.zeros(variables, 1, dtype=torch.float64)
        fixed = {"all": None, NONE: nothing, OWN: own_directions(form, scores, labels)}
        tried = [*((name, 0.0) for name in fixed), *((name, part) for part in SHARES for name in WAYS)]
        for name, part in tried:
            start = time.process_time()
            basis = fixed[name] if name in fixed else WAYS[name](program, max(2, round(part * variables)))
            value = penalty_within(program, basis, EPSILON, STEPS)
            spent = time.process_time() - start
            count = variables if basis is None else int(basis.any(0).sum())
            kept.setdefault((name, part), []).append((cosine(value, exact, scores), spent, count))
    return [row(form, size, name, found) for (name, _), found in kept.items()]


def large_area(size: int, batches: int) -> list[dict[str, Any]]:
    """The area program with ten times the batch, whose rows do not fit into memory: G Z = [-Z; -Z] does."""
    kept: dict[str, list[tuple[float, float, int]]] = {}
    for number in range(batches):
        scores, labels = batch(size, number, 0.91)
        program = area_program(scores, labels, 1.0)
        exact, zeros = closed("area", scores, labels, 1.0), torch.zeros_like(program.bound)
        drawn = torch.randn(program.variables, FEW, generator=torch.Generator().manual_seed(number)).double()
        nothing = torch.zeros(program.variables, 1, dtype=torch.float64)
        tried = {NONE: nothing, OWN: own_directions("area", scores, labels), RANDOM: torch.linalg.qr(drawn)[0]}
        for name, basis in tried.items():
            start = time.process_time()
            with torch.no_grad():
                small = program.cost @ basis, torch.cat([-basis, -basis]), torch.cat([program.bound, zeros])
                y = basis @ descend(*small, EPSILON, 1e-6, STEPS, line_search=True)[0]
            pushed = (-y - program.bound).clamp(min=0)
            value = program.cost @ y + (pushed.square().sum() + (-y).clamp(min=0).square().sum()) / (2 * EPSILON)
            found = cosine(value, exact, scores), time.process_time() - start, int(basis.any(0).sum())
            kept.setdefault(name, []).append(found)
    return [row("area", size, name, found) for name, found in kept.items()]


def row(form: str, size: int, name: str, found: list[tuple[float, float, int]]) -> dict[str, Any]:
    """The number of directions is the mean over batches: the area program has a variable per pair of its batch."""
    cosines, spent, counts = zip(*found)
    count = round(float(np.mean(counts)))
    told = {"part": "reduction", "form": form, "samples": size, "directions": name, "number": count}
    figures = {"cosine": float(np.mean(cosines)), "least": float(min(cosines)), "seconds": float(np.median(spent))}
    return {"key": f"reduction | {form} | {size} | {name} | {count}", **told, "batches": len(found), **figures}


def study(quick: bool, done: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of every form and size of which none is `done`."""
    sizes = {64: 1} if quick else BATCHES
    parts = [("f-score", size, lambda size=size, number=number: looked_at("f-score", size, 0.5, number))
             for size, number in sizes.items()]  # fmt: skip
    parts.append(("area", 64, lambda: looked_at("area", 64, 0.91, 1 if quick else 10)))
    if not quick:
        parts.append(("area", 640, lambda: large_area(640, 3)))
    there = set(done)
    for form, size, make in parts:
        if any(key.startswith(f"reduction | {form} | {size} |") for key in there):
            continue
        for one in make():
            print(f"{one['key']}: cosine {one['cosine']:.4f}, {1e3 * one['seconds']:.1f} ms", flush=True)
            yield one
