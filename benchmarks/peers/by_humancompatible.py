"""humancompatible-train: its ALM as the dual optimizer, updated by the true rate, smooth rates to learn by.

Each of the three smooth forms has the nine settings, as for TFCO and for ours.
"""

from __future__ import annotations

import itertools
from importlib.metadata import version

import torch
from humancompatible.train.dual_optim import ALM

from benchmarks.peers.exchange import Task, pace
from benchmarks.peers.passing import PASSING


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    x, positive = torch.tensor(task.x), torch.tensor(task.labels) > 0
    for (name, passing), (rate, price_rate) in itertools.product(PASSING.items(), task.settings()):
        theta = torch.tensor(task.start, requires_grad=True)
        optimizer = torch.optim.Adam([theta], lr=rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, pace)
        dual = ALM(m=1, lr=price_rate, is_ineq=True)
        for step in range(1, task.steps + 1):
            scores = x @ theta[:-1] + theta[-1]
            soft = (passing(scores[~positive]).mean() - task.bound).reshape(1).float()
            true = ((scores[~positive] > 0).float().mean() - task.bound).reshape(1)
            loss = dual.forward(passing(-scores[positive]).mean(), soft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            dual.update(true)
            if step % task.look_every == 0:
                weights = theta.detach().numpy().copy()
                task.add(f"{name}, {rate:g}, {price_rate:g}, step {step}", weights[:-1], weights[-1])
    task.answer(version("humancompatible-train"))


if __name__ == "__main__":
    main()
