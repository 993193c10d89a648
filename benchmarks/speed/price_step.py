"""A training step of the Lagrangian with its climb in a few lines of torch, and with cooper's multipliers in its place.

    python -m benchmarks.speed.price_step [--quick]

A linear model and an MLP 64-64 on 20 features, batches of 512, forward, backward and Adam, on one thread. The three
steps take turns in one run. cooper is used as its makers do, with objects made once, and with objects made at every
step, which keeps all state in the buffers of the solver. Prices come out the same (`tests/solve/test_ascent.py`).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import cooper
import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.harness import seconds, write_result
from setpoint.measure.constraint import Constraint
from setpoint.solve.ascent import room

ASKS = {"one bound": "minimize fnr where fpr <= 5%", "two bounds": "minimize fnr where fpr <= 5% and recall >= 50%"}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Linear(20, 1),
    "MLP 64-64": lambda: nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)),
}


class CooperPrices(nn.Module):
    """The plain climb of inequalities by cooper, in the place of `Lagrangian.ascent`."""

    prices: Tensor

    def __init__(self, bounds: tuple[Constraint, ...], lr: float, once: bool) -> None:
        super().__init__()
        self.lr, self.once = lr, once
        self.register_buffer("prices", torch.zeros(len(bounds)))
        self.register_buffer("rooms", torch.tensor([room(bound) for bound in bounds]))
        self.made = self.make()

    def make(self) -> tuple[Any, Any, Any]:
        multiplier = cooper.multipliers.DenseMultiplier(init=self.prices.clone())
        constraint = cooper.Constraint(cooper.ConstraintType.INEQUALITY, multiplier=multiplier)
        return constraint, multiplier, torch.optim.SGD([multiplier.weight], lr=self.lr, maximize=True)

    def start(self, prices: Tensor) -> None:
        self.prices.copy_(prices.clamp(min=0.0))
        self.made = self.make()

    def felt(self, excesses: Tensor) -> tuple[Tensor, Tensor]:
        constraint, _, _ = self.made if self.once else self.make()
        here = excesses.to(self.prices.dtype).requires_grad_()
        with torch.enable_grad():
            store = constraint.compute_contribution_to_lagrangian(cooper.ConstraintState(violation=here), "primal")
            (prices,) = torch.autograd.grad(store.lagrangian_contribution, here)
        return excesses.new_ones(()), prices.to(excesses.dtype)

    def climb(self, excesses: Tensor) -> None:
        constraint, multiplier, optimizer = self.made if self.once else self.make()
        state = cooper.ConstraintState(violation=excesses.to(self.prices.dtype) / self.rooms)
        optimizer.zero_grad()
        with torch.enable_grad():
            constraint.compute_contribution_to_lagrangian(state, "dual").lagrangian_contribution.backward()
        optimizer.step()
        multiplier.post_step_()
        self.prices.copy_(multiplier.weight.detach())

    def look(self) -> None: ...


def steps(model: str, ask: str) -> dict[str, Callable[[], None]]:
    """A step of each kind, all on the same rows from the same start."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(512, 20, generator=draw)
    labels = (x[:, :5].sum(1) + torch.randn(512, generator=draw) > 2).float()
    problem = sp.ask(ask)
    made = {}
    for name in ("written out", "cooper, made once", "cooper, made every step"):
        torch.manual_seed(0)
        net, solver = MODELS[model](), sp.Lagrangian(problem)
        if name != "written out":
            solver.ascent = CooperPrices(problem.bounds, lr=0.1, once=name.endswith("once"))
        made[name] = (net, solver, torch.optim.Adam([*net.parameters(), *solver.parameters()], lr=1e-3))

    def stepper(net: nn.Module, solver: sp.Lagrangian, optimizer: torch.optim.Optimizer) -> Callable[[], None]:
        def step() -> None:
            loss = solver(net(x).squeeze(-1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    found = {name: stepper(*one) for name, one in made.items()}
    for _ in range(20):
        for step in found.values():
            step()
    prices = [one[1].prices for one in made.values()]
    assert all(torch.equal(prices[0], one) for one in prices), "the prices of the three climbs differ"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    rows = []
    for model in MODELS:
        for bounds, ask in ASKS.items():
            kinds = steps(model, ask)
            times = [{name: seconds(step) for name, step in kinds.items()} for _ in range(21 if quick else 1001)]
            for name in kinds:
                row = {
                    "model": model, "bounds": bounds, "climb": name,
                    "milliseconds": 1e3 * statistics.median(each[name] for each in times),
                    "ratio to written out": statistics.median(each[name] / each["written out"] for each in times),
                }  # fmt: skip
                rows.append(row)
                print(row, flush=True)
    write_result("price_step", {"cooper-optim": version("cooper-optim"), "rows": rows}, quick)


if __name__ == "__main__":
    main()
