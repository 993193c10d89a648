"""Which way the gradients point, and how exact the closed forms are.

    python -m benchmarks.studies.lp_gradients [--quick]

Closed forms against HiGHS on 200 made programs each, value and gradient. Then, on 100 random batches of the F-score
program (64 samples, as in the paper's appendix), the cosine of each way to differentiate to the exact gradient, and
of unrolling to the active set, which the paper reports as 0.9991 on its batches. Last, dense programs with one
solution each, where the exact gradient is the envelope at HiGHS's solution.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from benchmarks.common.harness import write_result
from benchmarks.studies.lp_programs.study import tensor
from setpoint import lp

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "AUC": ("auc", {}),
    "AUC, margin 0.1": ("auc", {"margin": 0.1}),
    "AUC, one against all": ("auc_one_vs_all", {}),
    "AUC-mu": ("auc_mu", {}),
    "AUC-mu, any partition": ("auc_mu", {"partition": True}),
    "F1": ("f_score", {}),
    "F2, margin 0.4": ("f_score", {"beta": 2.0, "margin": 0.4}),
    "Jaccard": ("jaccard", {}),
    "precision at recall 80%": ("precision_at_recall", {"recall": 0.8}),
    "precision at recall 95%, margin 0.4": ("precision_at_recall", {"recall": 0.95, "margin": 0.4}),
    "recall at precision 70%": ("recall_at_precision", {"precision": 0.7}),
}


def snapped(scores: Tensor) -> Tensor:
    """tanh, exactly -1 and 1 where it nearly is: HiGHS takes coefficients below 1e-9 for zero."""
    squashed = torch.tanh(scores)
    return torch.where(squashed.abs() > 1 - 1e-4, squashed.sign(), squashed)


def case(form: str, options: dict[str, Any], draw: Generator) -> tuple[Tensor, Tensor, lp.LinearProgram]:
    """Scores, the closed value, and the program; weights half of the time, saturated scores a third of it."""
    area = form.startswith("auc")
    n = int(draw.integers(4, 24 if area else 120))
    scores = tensor(draw.normal(size=n) * draw.choice([0.3, 1, 30]))
    labels = tensor(draw.random(n) < draw.choice([0.05, 0.5]))
    labels[0], labels[1] = 1, 0
    options = dict(options)
    if form in ("auc_mu", "auc_one_vs_all"):
        scores, labels = tensor(draw.normal(size=(n, 3))), torch.arange(n) % 3
        if options.get("partition"):
            options["partition"] = tensor(draw.random((3, 3)) + 1 - 2 * np.eye(3))
    if not area:
        options["squash"] = snapped
    if draw.random() < 0.5:
        options["weights"] = tensor(draw.random(n) + 0.05)
    scores.requires_grad_()
    sign = 1 if area else -1
    value = sign * getattr(lp.closed, form)(scores, labels, **options)
    return scores, value, getattr(lp.forms, form)(scores, labels, **options)


def closed_forms(cases: int) -> dict[str, Any]:
    figures = {}
    for place, (name, (form, options)) in enumerate(FORMS.items()):
        values, gradients = [], []
        for i in range(cases):
            scores, value, program = case(form, options, np.random.default_rng([11, place, i]))
            truth = lp.solve(program, lp.Highs())
            values.append(abs(float((value - truth.value).detach())) / max(abs(float(truth.value.detach())), 1e-12))
            (ours,), (theirs,) = (torch.autograd.grad(v, scores) for v in (value, truth.value))
            gradients.append(float((ours - theirs).norm()) / max(float(theirs.norm()), 1e-12))
        figures[name] = {
            "cases": cases,
            "worst relative error of the value": max(values),
            "worst relative error of the gradient": max(gradients),
        }
        print(f"{name:36s} value {max(values):.1e}  gradient {max(gradients):.1e}", flush=True)
    return figures


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))


def summary(cosines: list[float]) -> dict[str, float]:
    return {"mean": float(np.mean(cosines)), "least": min(cosines)}


def f_score_batches(batches: int) -> dict[str, Any]:
    ways: dict[str, lp.Gradient] = {
        "envelope": lp.Envelope(),
        "active set": lp.ActiveSet(),
        "unrolled, epsilon 0.1": lp.Unrolled(0.1),
        "unrolled, epsilon 0.01 (the paper's)": lp.Unrolled(0.01),
        "unrolled, epsilon 0.01, 30 steps": lp.Unrolled(0.01, steps=30),
        "unrolled, epsilon 0.001": lp.Unrolled(0.001),
    }
    to_exact: dict[str, list[float]] = {name: [] for name in ways}
    to_active: dict[str, list[float]] = {name: [] for name in ways if "unrolled" in name}
    degenerate = 0
    for i in range(batches):
        draw = np.random.default_rng([12, i])
        labels = tensor(draw.random(64) < draw.uniform(0.2, 0.8))
        labels[0] = 1
        scores = tensor(draw.normal(size=64) + labels.numpy() - 0.5).requires_grad_()
        (exact,) = torch.autograd.grad(-lp.closed.f_score(scores, labels), scores)
        found = {}
        for name, way in ways.items():
            solution = lp.solve(lp.forms.f_score(scores, labels), gradient=way)
            degenerate += bool(solution.degenerate)
            (found[name],) = torch.autograd.grad(solution.value, scores)
            to_exact[name].append(cosine(found[name], exact))
        for name, cosines in to_active.items():
            cosines.append(cosine(found[name], found["active set"]))
    figures = {
        "to the exact gradient": {name: summary(cosines) for name, cosines in to_exact.items()},
        "unrolled to active set (published 0.9991)": {n: summary(cosines) for n, cosines in to_active.items()},
        "batches flagged degenerate": degenerate,
    }
    for title, rows in figures.items():
        print(title, rows if isinstance(rows, int) else "")
        for name, row in rows.items() if isinstance(rows, dict) else ():
            print(f"  {name:38s} mean {row['mean']:.8f}  least {row['least']:.8f}")
    return figures


def firm(draw: Generator) -> list[Tensor]:
    """A dense program with one optimal point and one set of prices."""
    n, used, m = 20, 11, 16
    rows = draw.normal(size=(m, n))
    x, u = np.zeros(n), np.zeros(m)
    x[:used], u[:used] = draw.random(used) + 0.3, draw.random(used) + 0.3
    cost = np.where(x > 0, 0, draw.random(n) + 0.1) - rows.T @ u
    return [tensor(p).requires_grad_() for p in (cost, rows, rows @ x + np.where(u > 0, 0, draw.random(m) + 0.1))]


def dense_programs(count: int) -> dict[str, Any]:
    ways: dict[str, lp.Gradient] = {
        "envelope": lp.Envelope(),
        "active set": lp.ActiveSet(),
        "unrolled, epsilon 0.01": lp.Unrolled(0.01),
        "unrolled, epsilon 0.0001": lp.Unrolled(0.0001),
    }
    cosines: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(count):
        parts = firm(np.random.default_rng([13, i]))
        truth = lp.solve(lp.LinearProgram(*parts), lp.Highs()).value
        exact = torch.cat([g.flatten() for g in torch.autograd.grad(truth, parts)])
        for name, way in ways.items():
            value = lp.solve(lp.LinearProgram(*parts), gradient=way).value
            ours = torch.cat([g.flatten() for g in torch.autograd.grad(value, parts)])
            cosines[name].append(cosine(ours, exact))
    figures = {name: summary(row) for name, row in cosines.items()}
    print("dense programs")
    for name, row in figures.items():
        print(f"  {name:38s} mean {row['mean']:.8f}  least {row['least']:.8f}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the cases")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    payload = {
        "closed forms against HiGHS": closed_forms(20 if quick else 200),
        "F-score batches of 64": f_score_batches(10 if quick else 100),
        "dense programs with one solution": dense_programs(10 if quick else 100),
    }
    write_result("lp_gradients", payload, quick)
