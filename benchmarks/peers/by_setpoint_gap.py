"""Ours where the recalls of groups may differ by little: trained for that, or cross-entropy, with a threshold a group.

The thresholds of every candidate are the best on validation rows that keep the gap; `one threshold` minds no gap.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
import torch
import torch._dynamo  # an optimizer loads it at its first use, which is nobody's step
from torch import nn

import setpoint as sp
from benchmarks.peers.by_setpoint import STEPS
from benchmarks.peers.exchange import RATES, Task
from setpoint.train.linear import SEARCH_EVERY

BATCH = 512


class Run:
    """The rows as tensors, and the ask that sets the thresholds."""

    def __init__(self, task: Task, problem: sp.Problem) -> None:
        self.task, self.problem = task, problem
        self.x, self.labels = torch.tensor(task.x), torch.tensor(task.labels)
        self.groups = torch.tensor(task.groups["train"])

    def add(self, name: str, weight: np.ndarray, bias: float) -> None:
        """The flags of a linear model at its best thresholds."""
        task = self.task
        scores = {part: x @ weight + bias for part, x in task.others.items()}
        groups = task.groups if self.problem.group else dict.fromkeys(task.others)
        point = sp.evaluate(self.problem, scores["validation"], task.validation_labels, groups=groups["validation"])
        task.add_scores(name, *(point.predict(own, groups[part]) for part, own in scores.items()))

    def add_fit(self, solver: sp.Ridge | None) -> None:
        task = self.task
        model = nn.Linear(self.x.shape[1], 1).double()
        train = sp.Batches(self.x, self.labels, groups=self.groups, batch_size=BATCH, shuffle=True)
        held_out = sp.Batches(
            torch.tensor(task.others["validation"]), torch.tensor(task.validation_labels),
            groups=torch.tensor(task.groups["validation"]),
        )  # fmt: skip
        sp.fit(model, self.problem, train, held_out, solver)
        self.add("fit", model.weight.detach()[0].numpy(), float(model.bias.detach()))

    def add_steps(self, name: str, rate: float, solver: sp.losses.Solver) -> None:
        """Full-batch steps from the start."""
        theta = torch.tensor(self.task.start, requires_grad=True)
        solver.double()
        optimizer = torch.optim.Adam([theta, *solver.parameters()], lr=rate)
        for number in range(1, self.task.steps + 1):
            try:
                loss = solver(self.x @ theta[:-1] + theta[-1], self.labels, groups=self.groups)
            except sp.SetpointError:
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % self.task.look_every == 0:
                weights = theta.detach().numpy().copy()
                self.add(f"{name}, {rate:g}, step {number}", weights[:-1], weights[-1])


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task, kind = Task(), sys.argv[3]
    problem = sp.minimize(sp.error, sp.recall.gap("sex") <= task.bound)
    if kind == "one threshold":
        problem = sp.minimize(sp.error)
    run = Run(task, problem)
    if kind == "implicit":
        for (name, step), rate in itertools.product(STEPS.items(), RATES):
            search = sp.losses.Correction(every=SEARCH_EVERY)
            solver = sp.ImplicitThreshold(problem, n_groups=2, step=step, temperature=1.0, memory=0, correction=search)
            run.add_steps(name, rate, solver)
    elif kind == "lagrangian":
        for rate, price_rate in task.settings():
            climb = sp.losses.Climb(task.bound * price_rate)
            solver = sp.Lagrangian(problem, n_groups=2, climb=climb, temperature=1.0, memory=0)
            run.add_steps(f"{price_rate:g}", rate, solver)
    else:
        run.add_fit(None if kind == "default" else sp.Ridge())
    task.answer(sp.__version__)


if __name__ == "__main__":
    main()
