"""Ours for the F-score: its program in closed form, implicit thresholds, the default; and cross-entropy beside them."""

from __future__ import annotations

import itertools
import sys

import torch
import torch._dynamo  # an optimizer loads it at its first use, which is nobody's step
from torch import nn

import setpoint as sp
from benchmarks.peers.by_setpoint import STEPS
from benchmarks.peers.exchange import MARGINS, RATES, Task


def add_steps(task: Task, name: str, rate: float, solver: sp.losses.Solver, whole: bool = False) -> None:
    """Steps from the start, of the batches that all take or of the whole table."""
    x, labels = torch.tensor(task.x), torch.tensor(task.labels)
    theta = torch.tensor(task.start, requires_grad=True)
    solver.double()
    optimizer = torch.optim.Adam([theta], lr=rate)
    for number, rows in enumerate(task.batches(), 1):
        batch = slice(None) if whole else torch.as_tensor(rows)
        loss = solver(x[batch] @ theta[:-1] + theta[-1], labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % task.look_every == 0:
            weights = theta.detach().numpy().copy()
            task.add(f"{name}, {rate:g}, step {number}", weights[:-1], weights[-1])


def add_fit(task: Task, problem: sp.Problem, solver: sp.Ridge | None) -> None:
    model = nn.Linear(task.x.shape[1], 1).double()
    train = [(torch.tensor(task.x), torch.tensor(task.labels))]
    held_out = [(torch.tensor(task.others["validation"]), torch.tensor(task.validation_labels))]
    sp.fit(model, problem, train, held_out, solver)
    task.add("fit", model.weight.detach()[0].numpy(), float(model.bias.detach()))


def main() -> None:
    torch.set_num_threads(1)
    task, kind = Task(), sys.argv[3]
    problem = sp.maximize(sp.f_score(1))
    if kind in ("default", "cross-entropy"):
        add_fit(task, problem, None if kind == "default" else sp.Ridge())
        task.answer(sp.__version__)
        return
    task.add("start", task.start[:-1], task.start[-1])
    if kind == "implicit":
        for (name, step), rate in itertools.product(STEPS.items(), RATES):
            add_steps(task, name, rate, sp.ImplicitThreshold(problem, step=step, temperature=1.0))
    else:
        for margin, rate in itertools.product(MARGINS, RATES):
            solver = sp.losses.FScoreLoss(margin=margin)
            add_steps(task, f"margin {margin:g}", rate, solver, whole=kind == "closed form of all rows")
    task.answer(sp.__version__)


if __name__ == "__main__":
    main()
