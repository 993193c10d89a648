"""Three hundred fresh programs, and what the solver says of each: `python -m benchmarks.studies.lp_programs [--quick]`.

Every program is solved by `lp.Newton` within 100 steps and by HiGHS. Counted are: certified at 1e-8, failures by
their name, and answers that are wrong without saying so (solved, but not HiGHS's value; or named infeasible or
unbounded where HiGHS is not of that opinion). Programs without a solution, weighted F-scores (beyond the three
hundred) and dimension reduction come after. `--seed` draws other programs.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from benchmarks.common.harness import write_result
from setpoint import lp
from setpoint.lp.factorize import separable_program

Maker = Callable[[Generator], lp.LinearProgram]


def tensor(values: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))


def made(x: Any, u: Any, v: Any, slack: Any, reduced: Any, rows: Any, equal: Any) -> lp.LinearProgram:
    """The program whose optimum is the given pair of point and prices."""
    cost = reduced - rows.T @ u - equal.T @ v
    parts = [cost, rows, rows @ x + slack]
    if len(equal):
        parts += [equal, equal @ x]
    return lp.LinearProgram(*(tensor(part) for part in parts))


def dense(draw: Generator) -> lp.LinearProgram:
    n, m = int(draw.integers(5, 80)), int(draw.integers(5, 120))
    e = int(draw.integers(0, max(1, min(n // 3, 6))))
    x = 2 * draw.random(n) * (draw.random(n) < 0.5)
    u = draw.random(m) * (draw.random(m) < 0.5)
    slack = np.where(u > 0, 0, draw.random(m) * (draw.random(m) < 0.7))
    reduced = np.where(x > 0, 0, draw.random(n))
    return made(x, u, draw.normal(size=e), slack, reduced, draw.normal(size=(m, n)), draw.normal(size=(e, n)))


def degenerate(draw: Generator) -> lp.LinearProgram:
    """Small whole numbers, half of them zero: many optimal points, many prices, redundant rows."""
    n, m = int(draw.integers(5, 60)), int(draw.integers(5, 90))
    e = int(draw.integers(0, max(1, min(n // 3, 6))))
    rows = np.round(draw.normal(size=(m, n))) * (draw.random((m, n)) < 0.5)
    x = np.round(3 * draw.random(n) * (draw.random(n) < 0.5))
    u = np.round(3 * draw.random(m) * (draw.random(m) < 0.5))
    slack = np.where((u > 0) | (draw.random(m) < 0.5), 0, np.round(2 * draw.random(m)))
    reduced = np.where((x > 0) | (draw.random(n) < 0.5), 0, draw.random(n))
    equal = np.round(draw.normal(size=(e, n)))
    return made(x, u, np.round(draw.normal(size=e)), slack, reduced, rows, equal)


def scored(draw: Generator, n: int, share: float) -> tuple[Tensor, Tensor]:
    labels = np.zeros(n)
    labels[: max(1, round(share * n))] = 1
    return tensor(draw.normal(size=n) * draw.uniform(0.5, 2) + labels - draw.uniform(0, 1)), tensor(labels)


def f_score(draw: Generator) -> lp.LinearProgram:
    scores, labels = scored(draw, int(draw.integers(10, 1000)), draw.uniform(0.1, 0.9))
    return lp.forms.f_score(scores, labels, beta=float(draw.choice([0.5, 1, 2])))


def f_score_saturated(draw: Generator) -> lp.LinearProgram:
    """Squashed scores of exactly -1 and 1, but for a few."""
    scores, labels = scored(draw, int(draw.integers(10, 1000)), draw.uniform(0.1, 0.9))
    return lp.forms.f_score(40 * scores, labels)


def f_score_rare(draw: Generator) -> lp.LinearProgram:
    scores, labels = scored(draw, int(draw.integers(50, 1000)), 0.02)
    return lp.forms.f_score(scores * float(draw.choice([1, 40])), labels)


def precision_at_recall(draw: Generator) -> lp.LinearProgram:
    scores, labels = scored(draw, int(draw.integers(10, 1000)), draw.uniform(0.1, 0.9))
    reached = float((1 + torch.tanh(scores).clamp(max=0))[labels > 0].mean())
    hard = draw.random() < 0.5
    bound = reached * draw.uniform(0.5, 0.99) if hard else draw.uniform(0.5, 0.99)
    return lp.forms.precision_at_recall(scores, labels, bound, shortfall=None if hard else 1.0)


def factorization(draw: Generator) -> lp.LinearProgram:
    s, r, w = int(draw.integers(5, 10)), int(draw.integers(2, 4)), int(draw.integers(4, 9))
    parts = draw.random((r, w))
    shares = draw.dirichlet(np.ones(r), s)
    shares[:r] = np.eye(r)
    rows = (shares @ (parts / parts.sum(1, keepdims=True)))[draw.permutation(s)]
    return separable_program(tensor(rows), r, tensor(draw.random(s)))


def assignment(draw: Generator) -> lp.LinearProgram:
    k = int(draw.integers(3, 12))
    costs = draw.random((k, k)) if draw.random() < 0.5 else np.round(5 * draw.random((k, k)))
    each = np.concatenate([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    return lp.LinearProgram(
        tensor(costs.ravel()), torch.zeros(0, k * k), torch.zeros(0), tensor(each), tensor(np.ones(2 * k))
    )


def infeasible(draw: Generator) -> lp.LinearProgram:
    """One row that a positive sum of the others contradicts; each row alone could hold."""
    n, m = int(draw.integers(3, 40)), int(draw.integers(4, 40))
    rows = draw.normal(size=(m, n))
    rows[:, 0] = 1.0
    rows[:, 1] = -draw.random(m)
    bound = rows @ draw.random(n) + draw.random(m)
    u = draw.random(m) + 0.1
    last = -(rows.T @ u) + np.maximum(0, draw.normal(size=n))
    last[0] = -(rows.T @ u)[0]
    contradiction = -(bound @ u) - draw.uniform(0.01, 1)
    parts = draw.normal(size=n), np.vstack([rows, last]), np.append(bound, contradiction)
    return lp.LinearProgram(*(tensor(part) for part in parts))


def unbounded(draw: Generator) -> lp.LinearProgram:
    """A direction that no row stops and that lowers the cost."""
    n, m = int(draw.integers(3, 40)), int(draw.integers(4, 40))
    ray = draw.random(n) * (draw.random(n) < 0.5)
    ray[0] = 1.0
    rows = draw.normal(size=(m, n))
    rows -= np.outer(rows @ ray / (ray @ ray), ray) + np.outer(draw.random(m) * (draw.random(m) < 0.5), ray)
    cost = draw.normal(size=n)
    cost -= (cost @ ray + draw.uniform(0.05, 1)) / (ray @ ray) * ray
    parts = cost, rows, rows @ draw.random(n) + draw.random(m)
    return lp.LinearProgram(*(tensor(part) for part in parts))


def f_score_weighted(draw: Generator) -> lp.LinearProgram:
    scores, labels = scored(draw, int(draw.integers(10, 1000)), draw.uniform(0.1, 0.9))
    return lp.forms.f_score(scores, labels, weights=tensor(draw.random(len(scores))))


FAMILIES: dict[str, tuple[Maker, int]] = {
    "random dense": (dense, 50),
    "degenerate": (degenerate, 50),
    "F-score": (f_score, 40),
    "F-score, saturated": (f_score_saturated, 30),
    "F-score, 2% positives": (f_score_rare, 30),
    "precision at recall": (precision_at_recall, 30),
    "factorisation": (factorization, 30),
    "assignment": (assignment, 40),
}
BEYOND: dict[str, tuple[Maker, int]] = {
    "infeasible": (infeasible, 50),
    "unbounded": (unbounded, 50),
    "F-score, weighted": (f_score_weighted, 30),
}


def verdict(program: lp.LinearProgram, engine: lp.Newton) -> tuple[str, int, bool]:
    """Outcome, steps, and whether the answer is wrong without saying so."""
    found, truth = lp.solve(program, engine), lp.solve(program, lp.Highs())
    if found.status is lp.Status.STALLED:
        return found.status.name, int(found.iterations), False
    if found.status is not lp.Status.SOLVED or truth.status is not lp.Status.SOLVED:
        return found.status.name, int(found.iterations), found.status is not truth.status
    error = abs(float(found.value - truth.value)) / (1 + abs(float(truth.value)))
    return found.status.name, int(found.iterations), error > 1e-6


def study(families: dict[str, tuple[Maker, int]], seed: int, share: float) -> dict[str, Any]:
    figures = {}
    for place, (name, (make, all_of_them)) in enumerate(families.items()):
        count = max(3, round(share * all_of_them))
        verdicts = [verdict(make(np.random.default_rng([seed, place, i])), lp.Newton()) for i in range(count)]
        steps = [taken for _, taken, _ in verdicts]
        figures[name] = {
            "programs": count,
            "outcomes": dict(Counter(outcome for outcome, _, _ in verdicts)),
            "wrong silently": sum(wrong for _, _, wrong in verdicts),
            "steps, median and most": [float(np.median(steps)), max(steps)],
        }
        print(f"{name:24s}", figures[name], flush=True)
    return figures


def reduction(sizes: list[int], directions: int = 40) -> dict[str, Any]:
    """How much of the optimum of an F-score program few directions hold, and whether they certify it."""
    figures: dict[str, Any] = {}
    for n in sizes:
        scores, labels = scored(np.random.default_rng([7, n]), n, 0.3)
        program = lp.forms.f_score(scores, labels)
        best = lp.solve(program, lp.Highs()).x
        bases = {
            "the form's own (5)": lp.forms.f_score_basis(scores, labels),
            f"sliced inverse regression ({directions})": lp.sliced_inverse_directions(
                program, directions, slices=2 * directions
            ),
            f"random ({directions})": lp.random_directions(program, directions),
        }
        for name, basis in bases.items():
            held = torch.linalg.qr(basis)[0]
            found = lp.solve_reduced(program, basis)
            figures[f"n = {n}, {name}"] = {
                "share of the optimum held": round(float((held.T @ best).norm() / best.norm()), 4),
                "reduced program": found.reduced.status.name,
                "certified": found.certified,
                "full program after fallback": found.solution.status.name,
            }
            print(f"n = {n}, {name}:", figures[f"n = {n}, {name}"])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the programs")
    parser.add_argument("--seed", type=int, default=20261115)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    share = 0.1 if arguments.quick else 1.0
    figures = study(FAMILIES, arguments.seed, share)
    solved = sum(f["outcomes"].get("SOLVED", 0) for f in figures.values())
    count = sum(f["programs"] for f in figures.values())
    beyond = study(BEYOND, arguments.seed + 1, share)
    silent = sum(f["wrong silently"] for f in (figures | beyond).values())
    print(f"certified {solved} of {count} ({100 * solved / count:.1f} %), wrong silently {silent}")
    payload = {
        "certified": solved,
        "programs": count,
        "share": solved / count,
        "wrong silently, all families": silent,
        "families": figures,
        "beyond": beyond,
        "reduction": reduction([60] if arguments.quick else [60, 300]),
    }
    write_result("lp_programs", payload, arguments.quick)
