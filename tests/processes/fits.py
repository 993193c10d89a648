"""`fit` in processes that share the rows, and in one that has them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import setpoint as sp

ASK = "minimize fnr where fpr <= 20%"
PROBLEM = sp.ask(ASK)


def rows(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 4, generator=draw, dtype=torch.float64)
    return x, (x[:, 0] + x[:, 1] ** 2 / 2 + torch.randn(size, generator=draw, dtype=torch.float64) > 1.2).double()


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).double()


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(4, 1).double()


def shared_out(size: int, seed: int, together: bool, **settings: Any) -> sp.Batches:
    """All rows on every process, each taking its share of every batch."""
    return sp.Batches(*rows(size, seed), process_group=together, **settings)


def own_rows(rank: int | None, size: int) -> list[Any]:
    """Batches of which the processes have three, one, and then none; all of them together."""
    x, y = rows(160, 5)
    parts = [[0, 1, 2], [3], [], []][:size]
    batches = [(x[40 * b : 40 * b + 40], y[40 * b : 40 * b + 40]) for b in range(4)]
    if rank is not None:
        return [batches[b] for b in parts[rank]]
    # The first step is of the first batch of each, and so on.
    steps = [[part[turn] for part in parts if turn < len(part)] for turn in range(3)]
    return [tuple(torch.cat(columns) for columns in zip(*(batches[b] for b in step))) for step in steps]


def _fit(model: nn.Module, train: Any, together: bool, solver: Any = None, **settings: Any) -> sp.methods.FitResult:
    chosen = {"epochs": 4, "process_group": None if together else False, **settings}
    return sp.fit(
        model, ASK, train, shared_out(80, 1, together), solver, calibration=shared_out(90, 2, together), **chosen
    )


def of_all_rows(rank: int | None, size: int) -> sp.methods.FitResult:
    together = rank is not None
    train = shared_out(200, 0, together, batch_size=50, shuffle=True)
    return _fit(network(), train, together, sp.ImplicitThreshold(PROBLEM).double())


def of_other_starts(rank: int | None, size: int) -> sp.methods.FitResult:
    """Models that start apart are made alike, and loaders may differ in length."""
    return _fit(network(rank or 0), own_rows(rank, size), rank is not None, sp.Lagrangian(PROBLEM).double())


def of_wrapped(rank: int | None, size: int) -> sp.methods.FitResult:
    together = rank is not None
    model = DistributedDataParallel(network()) if together else network()
    return _fit(model, own_rows(rank, size), together, sp.CrossEntropy("balanced").double())


def of_corrections(rank: int | None, size: int) -> sp.methods.FitResult:
    """Each correction is on two batches of every process, some of which have none left."""
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=2, batches=2)).double()
    return _fit(network(), own_rows(rank, size), rank is not None, solver)


def of_priced(rank: int | None, size: int) -> sp.methods.FitResult:
    solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=200, mu=0.1).double()
    together = rank is not None
    train = shared_out(200, 0, together, batch_size=50, shuffle=True)
    return _fit(network(), train, together, solver)


def of_default_network(rank: int | None, size: int) -> sp.methods.FitResult:
    together = rank is not None
    return _fit(network(), shared_out(200, 0, together, batch_size=50, shuffle=True), together)


def of_default_network_of_own(rank: int | None, size: int) -> sp.methods.FitResult:
    """With held-out rows shared out, which processes without training rows take part in."""
    return _fit(network(), own_rows(rank, size), rank is not None)


def of_default_linear(rank: int | None, size: int) -> sp.methods.FitResult:
    together = rank is not None
    return _fit(linear(), shared_out(200, 0, together), together)


def of_own_calibration(rank: int | None, size: int) -> sp.methods.FitResult:
    """Each process has calibration rows of its own in memory: the threshold is that of all of them."""
    together, (x, y) = rank is not None, rows(90, 2)
    own = sp.Batches(x[rank::size], y[rank::size]) if together else sp.Batches(x, y)
    held_out = shared_out(80, 1, together)
    return sp.fit(
        network(), ASK, shared_out(200, 0, together, batch_size=50), held_out, sp.CrossEntropy(), calibration=own,
        epochs=2, process_group=None if together else False,
    )  # fmt: skip


def of_sampler(rank: int | None, size: int) -> sp.methods.FitResult:
    """PyTorch's own sampler: epoch by epoch another order, which one process can draw too."""
    data = TensorDataset(*rows(200, 0))
    if rank is not None:
        sampler = DistributedSampler(data, num_replicas=size, rank=rank, seed=3)
        return _fit(network(), DataLoader(data, batch_size=20, sampler=sampler), True, sp.CrossEntropy())
    orders = _Orders(data, size)
    return _fit(network(), orders, False, sp.CrossEntropy())


class _Orders:
    """Batches of what the samplers of all processes draw, pass by pass."""

    def __init__(self, data: TensorDataset, size: int) -> None:
        self.data, self.epoch = data, 0
        self.samplers = [DistributedSampler(data, num_replicas=size, rank=rank, seed=3) for rank in range(size)]

    def __iter__(self) -> Any:
        drawn = []
        for sampler in self.samplers:
            sampler.set_epoch(self.epoch)
            drawn.append(torch.tensor([*sampler]).split(20))
        self.epoch += 1
        for step in zip(*drawn):
            yield self.data[torch.cat(step)]


OWN, DEFAULT_OF_OWN = "rows of their own, from other starts", "default network, rows of their own"
#: Whose steps in several processes are not those of one: each deals its held-out rows over training rows of its own.
OTHER_STEPS = (DEFAULT_OF_OWN,)
FITS: dict[str, Callable[[int | None, int], sp.methods.FitResult]] = {
    "shared-out rows": of_all_rows,
    OWN: of_other_starts,
    "wrapped model": of_wrapped,
    "a price a sample": of_priced,
    "corrections on batches to come": of_corrections,
    "default network": of_default_network,
    DEFAULT_OF_OWN: of_default_network_of_own,
    "default linear": of_default_linear,
    "calibration rows of their own": of_own_calibration,
    "distributed sampler": of_sampler,
}


def fitted(name: str, rank: int | None, size: int) -> dict[str, Any]:
    result = FITS[name](rank, size)
    model = result.model.module if isinstance(result.model, DistributedDataParallel) else result.model
    return {
        "model": model.state_dict(),
        "solver": result.solver.state_dict() if isinstance(result.solver, sp.losses.Solver) else {},
        "threshold": result.point.threshold,
        "rates": result.point.rates,
        "held_out": [row["held_out"] for row in result.history],
        "train": [row["train"] for row in result.history],
        "best_epoch": result.best_epoch,
    }
