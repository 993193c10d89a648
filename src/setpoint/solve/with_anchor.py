"""A solver held back by an anchor: for end-to-end training in mini-batches that must not stray from cross-entropy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.refuse import above_zero
from setpoint.solve.solver import Solver


class WithAnchor(Solver):
    """Hold a solver back by an anchor: solver + strength * q * anchor.

    q is such that both pull equally hard on the scores at the first step. It is set once, when both first have a
    gradient, and kept, so that `strength` does not depend on the scale of either loss. A strength of 0.1 keeps a tenth
    of the pull of the anchor; the fewer samples decide the question, the more is needed.

    Args:
        solver: The solver to hold back.
        anchor: The loss to stay near; by default plain cross-entropy.
        strength: How hard the anchor pulls.

    Raises:
        BadSetting: If `solver` is not a solver, or `strength` not above 0.

    Example:
        >>> import setpoint as sp
        >>> solver = sp.losses.WithAnchor(sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 5%")), strength=0.3)
    """

    takes_parts = True
    balance: Tensor

    def __init__(self, solver: Solver, anchor: Solver | None = None, *, strength: float = 0.1) -> None:
        super().__init__()
        if not isinstance(solver, Solver):
            raise BadSetting(f"expected a solver such as sp.ImplicitThreshold(problem), got {solver!r}")
        above_zero(strength=strength)
        self.solver = solver
        self.anchor = CrossEntropy() if anchor is None else anchor
        self.strength = strength
        self.register_buffer("balance", torch.zeros(()))

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        free, held = self.solver.joined_loss(batch, index), self.anchor.joined_loss(batch, index)
        return free + self.strength * self._balance(batch, free, held).to(held.dtype) * held

    def _balance(self, batch: Sample, free: Tensor, held: Tensor) -> Tensor:
        """The ratio of the two gradients' sizes; 1 until both have one."""
        if float(self.balance) > 0 or not batch.scores.requires_grad:
            return self.balance if float(self.balance) > 0 else torch.ones_like(self.balance)
        # Sums of sizes, not of squares: a weight is a repetition.
        sizes = [
            torch.autograd.grad(loss, batch.scores, retain_graph=True)[0].abs().sum().double() for loss in (free, held)
        ]
        push, pull = batch.processes.sum(torch.stack(sizes)).tolist()
        if push <= 0 or pull <= 0:
            return torch.ones_like(self.balance)
        balance = torch.full_like(self.balance, push / pull)
        if self.training:
            self.balance.copy_(balance)
        return balance

    @property
    def warm_up(self) -> Solver:
        """The anchor trains the model before both do."""
        return self.anchor

    def keep(self, batch: Sample) -> None:
        self.solver.keep(batch)

    def progress(self, held_out: Sample, merit: float) -> float:
        return self.solver.progress(held_out, merit)

    def step_metric(self, value: float) -> None:
        self.solver.step_metric(value)

    def status(self) -> dict[str, Any]:
        return self.solver.status()
