"""Ours: `Lagrangian` with the steps and settings of the other methods with prices; and the default beside it.

As TFCO has three losses, ours has the three steps that they are (hinge, softplus for cross-entropy, sigmoid for the
softmax), each with the nine settings, from where TFCO starts: prices of 0, the threshold at 0. There it stays, since
the model has a bias, and the steps are those of TFCO's Adam, so that both learn the same. A rate of prices is per unit
of the bounded rate there, and per unit of its bound here. With `single` the numbers are float32, as TFCO's are.
"""

from __future__ import annotations

import itertools
import sys

import torch

import setpoint as sp
from benchmarks.peers.exchange import Task, pace

STEPS = {"hinge": sp.steps.HingeStep, "softplus": sp.steps.SoftplusStep, "sigmoid": sp.steps.SigmoidStep}


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    problem = sp.minimize(sp.fnr, sp.fpr <= task.bound)
    dtype = torch.float32 if "single" in sys.argv[4:] else torch.float64
    x, labels = torch.tensor(task.x, dtype=dtype), torch.tensor(task.labels, dtype=dtype)
    if sys.argv[3] == "default":
        model = torch.nn.Linear(x.shape[1], 1).double()
        held_out = torch.tensor(task.others["validation"]), torch.tensor(task.validation_labels)
        sp.fit(model, problem, [(x, labels)], [held_out])
        task.add("default", model.weight.detach()[0].numpy(), float(model.bias.detach()))
        task.answer(sp.__version__)
        return
    for (name, step), (rate, price_rate) in itertools.product(STEPS.items(), task.settings()):
        theta = torch.tensor(task.start, dtype=dtype, requires_grad=True)
        solver = sp.Lagrangian(
            problem,
            climb=sp.losses.Climb(task.bound * price_rate, start=0.0),
            threshold=0.0,
            memory=0,
            step=step,
            temperature=1.0,
        ).to(dtype)
        optimizer = torch.optim.Adam([theta], lr=rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, pace)
        for number in range(1, task.steps + 1):
            try:
                loss = solver(x @ theta[:-1] + theta[-1], labels)
            except sp.SetpointError:
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if number % task.look_every == 0:
                weights = theta.detach().numpy().copy()
                task.add(f"{name}, {rate:g}, {price_rate:g}, step {number}", weights[:-1], weights[-1])
    task.answer(sp.__version__)


if __name__ == "__main__":
    main()
