"""What `benchmarks.speed.before_after` times in a process of its own; it runs with 0.1.0 and with every version since.

    python -m benchmarks.speed.probes kernels|steps|fits

Prints JSON: by name, the processor seconds and the wall seconds of one call, each the median of several calls.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

import setpoint as sp
from setpoint.measure.count import count
from setpoint.measure.curve import curve
from setpoint.measure.step import hard_step

MILLION = 1_000_000
BATCH, WIDTH, ROWS, EPOCHS = 512, 20, 20_000, 3
ASK = "minimize fnr where fpr <= 1%"
Work = Callable[[], object]


def scored(n: int) -> tuple[Tensor, Tensor]:
    """Standard normal scores and labels, one in five positive and one higher."""
    torch.manual_seed(0)
    labels = (torch.rand(n) < 0.2).float()
    return torch.randn(n) + labels, labels


def kernels() -> dict[str, Work]:
    scores, labels = scored(MILLION)
    by_rank, by_curve = sp.ask(ASK), sp.ask("maximize f1 where recall >= 60%")
    threshold = torch.tensor(1.0)
    return {
        "best cut of 10^6 scores, fnr at fpr": lambda: sp.evaluate(by_rank, scores, labels),
        "best cut of 10^6 scores, f1 at recall": lambda: sp.evaluate(by_curve, scores, labels),
        "counts of 10^6 scores": lambda: count(scores, labels, threshold, hard_step),
        "curve of 10^6 scores": lambda: curve(scores, labels),
    }


def steps() -> dict[str, Work]:
    """Forward, loss and backward of a linear model."""
    torch.manual_seed(0)
    x, index = torch.randn(BATCH, WIDTH), torch.arange(BATCH)
    labels = (x[:, 0] + torch.randn(BATCH) > 1).float()
    problem = sp.ask(ASK)

    def step(solver: nn.Module, **more: Tensor) -> Work:
        model = nn.Linear(WIDTH, 1)

        def work() -> None:
            model.zero_grad()
            solver(model(x).squeeze(-1), labels, **more).backward()

        return work

    return {
        "step of CrossEntropy": step(sp.CrossEntropy()),
        "step of ImplicitThreshold": step(sp.ImplicitThreshold(problem)),
        "step of Lagrangian": step(sp.Lagrangian(problem)),
        "step of AugmentedLagrangian": step(sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=BATCH), index=index),
    }


def fits() -> dict[str, Work]:
    """Whole calls of `sp.fit`, each on a new model with the same first parameters."""
    torch.manual_seed(0)
    x = torch.randn(ROWS, WIDTH)
    labels = (x @ torch.randn(WIDTH) / WIDTH**0.5 + torch.randn(ROWS) > 1.5).float()
    cuts = (slice(0, ROWS * 3 // 5), slice(ROWS * 3 // 5, ROWS * 4 // 5), slice(ROWS * 4 // 5, ROWS))

    def fit(make: Callable[[], nn.Module], solver: type[nn.Module] | None, epochs: int | None) -> Work:
        def work() -> None:
            torch.manual_seed(0)
            parts = [
                sp.Batches(x[rows], labels[rows], batch_size=BATCH, shuffle=not place)
                for place, rows in enumerate(cuts)
            ]
            problem = sp.ask(ASK)
            more = {} if epochs is None else {"epochs": epochs}
            chosen = None if solver is None else solver(problem)
            sp.fit(make(), problem, *parts[:2], chosen, calibration=parts[2], **more)

        return work

    def network() -> nn.Module:
        return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 1))

    return {
        "fit of a linear model, 20,000 x 20": fit(lambda: nn.Linear(WIDTH, 1), None, None),
        "fit of a network, 3 epochs": fit(network, None, EPOCHS),
        "fit of a network, ImplicitThreshold, 3 epochs": fit(network, sp.ImplicitThreshold, EPOCHS),
    }


#: By the name on the command line: the probes, and how many calls of each go unused and are timed.
PROBES: dict[str, tuple[Callable[[], dict[str, Work]], int, int]] = {
    "kernels": (kernels, 1, 7),
    "steps": (steps, 30, 300),
    "fits": (fits, 1, 3),
}


def timed(work: Work, unused: int, repeats: int) -> list[float]:
    """The median processor and wall seconds of one call."""
    for _ in range(unused):
        work()
    found = []
    for _ in range(repeats):
        wall, busy = time.perf_counter(), time.process_time()
        work()
        found.append((time.process_time() - busy, time.perf_counter() - wall))
    return [statistics.median(times) for times in zip(*found)]


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    make, unused, repeats = PROBES[sys.argv[1]]
    print(json.dumps({name: timed(work, unused, repeats) for name, work in make().items()}))


if __name__ == "__main__":
    main()
