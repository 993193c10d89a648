"""Cooper by hand: smooth rates to learn by, the true rate to move the multiplier, a bias as the threshold.

Each of the three smooth forms has the nine settings, as for TFCO and for ours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib.metadata import version

import cooper
import torch
from torch import Tensor

from benchmarks.peers.exchange import Task, pace
from benchmarks.peers.passing import PASSING


class Asked(cooper.ConstrainedMinimizationProblem):
    """FNR where FPR is bounded, of a linear model on whole tables."""

    def __init__(
        self, x: Tensor, labels: Tensor, theta: Tensor, bound: float, passing: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.x, self.positive, self.theta, self.bound, self.passing = x, labels > 0, theta, bound, passing
        multiplier = cooper.multipliers.DenseMultiplier(num_constraints=1, dtype=torch.float64)
        self.fpr = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

    def compute_cmp_state(self) -> cooper.CMPState:
        scores = self.x @ self.theta[:-1] + self.theta[-1]
        negatives = scores[~self.positive]
        state = cooper.ConstraintState(
            violation=(self.passing(negatives).mean() - self.bound).reshape(1),
            strict_violation=((negatives > 0).double().mean() - self.bound).reshape(1),
        )
        return cooper.CMPState(self.passing(-scores[self.positive]).mean(), {self.fpr: state})


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    x, labels = torch.tensor(task.x), torch.tensor(task.labels)
    for (name, passing), (rate, price_rate) in itertools.product(PASSING.items(), task.settings()):
        theta = torch.nn.Parameter(torch.tensor(task.start))
        problem = Asked(x, labels, theta, task.bound, passing)
        adam = torch.optim.Adam([theta], lr=rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(adam, pace)
        climb = torch.optim.SGD(problem.dual_parameters(), lr=price_rate, maximize=True)
        optimizer = cooper.optim.SimultaneousOptimizer(problem, adam, climb)
        for step in range(1, task.steps + 1):
            optimizer.roll()
            schedule.step()
            if step % task.look_every == 0:
                weights = theta.detach().numpy().copy()
                task.add(f"{name}, {rate:g}, {price_rate:g}, step {step}", weights[:-1], weights[-1])
    task.answer(version("cooper-optim"))


if __name__ == "__main__":
    main()
