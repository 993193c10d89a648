"""cvxpylayers: the F-score program of each batch solved by ECOS, its fastest backend, and differentiated as a layer."""

from __future__ import annotations

import itertools
from importlib.metadata import version

import cvxpy as cp
import torch
import torch._dynamo  # an optimizer loads it at its first use, which is nobody's step
from cvxpylayers.torch import CvxpyLayer

from benchmarks.peers.exchange import BATCH, MARGINS, RATES, Task


def layer_of(size: int) -> CvxpyLayer:
    """The greatest share . z where z is t times flags between `least` and `most`; t = P / (TP + FP + P).

    The program of `setpoint.lp.forms.f_score`, with the labels as a parameter, so that it is built but once.
    """
    z, t = cp.Variable(size, nonneg=True), cp.Variable(nonneg=True)
    share, per_positive = cp.Parameter(size), cp.Parameter(nonneg=True)
    least, most = cp.Parameter(size), cp.Parameter(size)
    rows = [per_positive * cp.sum(z) + t == 1, z <= t, least * t <= z, z <= most * t]
    problem = cp.Problem(cp.Minimize(-share @ z), rows)
    return CvxpyLayer(problem, parameters=[share, per_positive, least, most], variables=[z, t])


def main() -> None:
    torch.set_num_threads(1)
    task = Task()
    x, labels = torch.tensor(task.x), torch.tensor(task.labels)
    layer, failed = layer_of(BATCH), 0
    task.add("start", task.start[:-1], task.start[-1])
    for margin, rate in itertools.product(MARGINS, RATES):
        theta = torch.tensor(task.start, requires_grad=True)
        optimizer = torch.optim.Adam([theta], lr=rate)
        for number, rows in enumerate(task.batches(), 1):
            batch = torch.as_tensor(rows)
            squashed = torch.tanh(x[batch] @ theta[:-1] + theta[-1])
            least, most = (1 - margin) * squashed + margin, (1 - margin) * (1 + squashed)
            share, per_positive = 2 * labels[batch] / labels[batch].sum(), 1 / labels[batch].sum()
            try:
                z, _ = layer(share, per_positive, least, most, solver_args={"solve_method": "ECOS"})
            except Exception:  # a solver may fail in any way: such a batch teaches nothing
                failed += 1
            else:
                optimizer.zero_grad()
                (1 - share @ z).backward()
                optimizer.step()
            if number % task.look_every == 0:
                weights = theta.detach().numpy().copy()
                task.add(f"margin {margin:g}, {rate:g}, step {number}", weights[:-1], weights[-1])
    task.answer(version("cvxpylayers"), f"{failed} programs not solved")


if __name__ == "__main__":
    main()
