"""What a step of the augmented Lagrangian costs at 262,144 scores, as a ratio to the plain pair sum, from one run.

    python -m benchmarks.speed.augmented_cost [--quick]

Both sides go forward and backward to the scores. The plain pair sum is that of the hinge over all positive-negative
pairs, in O(n log n). The augmented step adds prices looked up by index, the square, the price update and the checks;
it is timed without a base loss and with cross-entropy. All take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.harness import ratio, write_result
from setpoint.measure.pairs import Hinge, pair_sum
from setpoint.measure.sample import Sample
from setpoint.solve.augmented import AugmentedLagrangian, PerNegative
from setpoint.solve.solver import Solver

TARGET = 1.2
SIZE = 262_144


class Nothing(Solver):
    """No base loss: what is left is the augmented Lagrangian alone."""

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        return batch.scores[0] * 0


def plain_step(scores: Tensor, labels: Tensor, margin: float) -> Callable[[], None]:
    """sum_jk relu(margin - (f_j - f_k)) / (P N) of the probabilities, and its gradient."""

    def step() -> None:
        scores.grad = None
        values = torch.sigmoid(scores)
        positive = labels > 0
        pairs = float(positive.sum()) * float((~positive).sum())
        (pair_sum(values[positive], values[~positive], Hinge(margin)) / pairs).backward()

    return step


def augmented_step(solver: Solver, scores: Tensor, labels: Tensor, index: Tensor) -> Callable[[], None]:
    def step() -> None:
        scores.grad = None
        solver(scores, labels, index=index).backward()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps only; the ratios are then noisy")
    repeats = 5 if parser.parse_args().quick else 41
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for share in (0.5, 0.01):
        labels = (torch.rand(SIZE) < share).float()
        scores = (torch.randn(SIZE) + labels).requires_grad_()
        index = torch.randperm(SIZE)
        plain = plain_step(scores, labels, 0.1)
        settings = {"n_samples": SIZE, "margin": 0.1, "mu": 1e-9}
        for name, solver in {
            "augmented alone": AugmentedLagrangian(Nothing(), **settings),
            "augmented alone, per negative": AugmentedLagrangian(Nothing(), side=PerNegative(), **settings),
            "augmented with cross-entropy": AugmentedLagrangian(sp.CrossEntropy(), **settings),
        }.items():
            measured = ratio(augmented_step(solver, scores, labels, index), plain, repeats=repeats)
            rows.append({"positives": share, "step": name, "ratio": measured, "met": measured <= TARGET})
            print(
                f"{share:5.0%} positives, {name:30s} {measured:5.3f}x the plain pair sum (target {TARGET})", flush=True
            )
    write_result("augmented_cost", {"scores": SIZE, "steps_each": repeats, "target": TARGET, "rows": rows})


if __name__ == "__main__":
    main()
