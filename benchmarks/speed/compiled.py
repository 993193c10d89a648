"""Model and solver under torch.compile: how many graphs a step is, and its time as a ratio to the same uncompiled.

    python -m benchmarks.speed.compiled [--quick]

A linear model and an MLP 64-64 on 50 features, batches of 512, forward and backward, on one thread. The first calls,
which compile, are timed apart. The implicit solver and cross-entropy go into the graph of the model; the Lagrangian,
which looks whether a batch has both classes, is kept out of it by `torch.compiler.disable`: one break of the graph.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.harness import ratio, seconds, write_result

ASK, AREA = "minimize fnr where fpr <= 5%", "maximize recall over fpr in [0%, 5%] with 5 points"
SOLVERS: dict[str, Callable[[], nn.Module]] = {
    "cross-entropy": sp.CrossEntropy,
    "implicit": lambda: sp.ImplicitThreshold(sp.ask(ASK)),
    "implicit area, 5 points": lambda: sp.ImplicitThreshold(sp.ask(AREA)),
    "Lagrangian, kept out": lambda: torch.compiler.disable(sp.Lagrangian(sp.ask(ASK))),
}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(50, 1),
    "MLP 64-64": lambda: nn.Sequential(nn.Linear(50, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)),
}


def one(model: str, solver: str, repeats: int) -> dict[str, Any]:
    """A pair of model and solver: graphs, breaks, and the ratio of step times."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    x = torch.randn(512, 50)
    labels = (x[:, :5].sum(1) + torch.randn(512) > 3).float()
    net, criterion = MODELS[model](), SOLVERS[solver]()

    def loss(x: Tensor, labels: Tensor) -> Tensor:
        return criterion(net(x).squeeze(-1), labels)

    explained = torch._dynamo.explain(loss)(x, labels)
    torch._dynamo.reset()
    fused = torch.compile(loss)

    def stepper(of: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], None]:
        def step() -> None:
            net.zero_grad()
            of(x, labels).backward()

        return step

    compiling = seconds(stepper(fused))
    return {
        "model": model, "solver": solver, "graphs": explained.graph_count, "breaks": explained.graph_break_count,
        "ratio": ratio(stepper(fused), stepper(loss), repeats), "seconds of compiling": compiling,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rows = []
    for model in MODELS:
        for solver in SOLVERS:
            rows.append(one(model, solver, 11 if quick else 201))
            print(rows[-1], flush=True)
    write_result("compiled", {"rows": rows}, quick)


if __name__ == "__main__":
    main()
