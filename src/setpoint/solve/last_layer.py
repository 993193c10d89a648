"""Thresholds as a function of the last layer only: one criterion for the body, another for the head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.solver import Solver


class ImplicitLastLayer(Solver):
    """Train the head by implicit thresholds and all layers before it by another loss, in one backward pass.

    The features are caught on their way into the head, which is then run twice: once with its weights frozen, for the
    body, and once on frozen features, for itself. The body gets exactly the gradient of `below`, the head exactly that
    of `above`. In `eval()` mode the loss is that of `above` on the given scores.

    Args:
        problem: The objective and its bounds.
        head: The module of the model that makes the scores, such as `model[-1]`.
        below: The loss of the body. `CrossEntropy()`, the default, is method 1 of the last-layer paper,
            `Penalty(problem)` its method 2.
        above: The loss of the head; by default `ImplicitThreshold(problem)`. `Penalty(problem)` for both is the
            ablation of the paper.

    Raises:
        BadSetting: If `head` is not a module with parameters, or was not run on the batch before the solver.

    Example:
        >>> import torch, setpoint as sp
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> solver = sp.losses.ImplicitLastLayer(sp.ask("minimize fnr where fpr <= 40%"), head=model[-1])
        >>> x, labels = torch.randn(8, 2), torch.tensor([1.0, 0.0] * 4)
        >>> solver(model(x).squeeze(-1), labels).backward()
    """

    takes_parts = True

    def __init__(
        self, problem: Problem, head: nn.Module, *, below: Solver | None = None, above: Solver | None = None
    ) -> None:
        super().__init__()
        if not isinstance(head, nn.Module) or not any(True for _ in head.parameters()):
            raise BadSetting(f"head must be the module that makes the scores, such as model[-1], got {head!r}")
        self.below = CrossEntropy() if below is None else below
        self.above = ImplicitThreshold(problem) if above is None else above
        # The head belongs to the model: in a tuple it is not registered here, so no optimizer gets it twice.
        self._head = (head,)
        self._features: Tensor | None = None
        self._catching = True
        head.register_forward_pre_hook(self._catch)

    def _catch(self, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        if self._catching and self.training:
            self._features = inputs[0]

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        if not self.training:
            return self.above.joined_loss(batch, index)
        features, self._features = self._features, None
        if features is None or len(features) != len(batch.scores):
            raise BadSetting(
                "the head was not run on this batch; call the model, with the same head, before the solver"
            )
        head = self._head[0]
        # Under autocast they come in half precision, which the head's weights are not in here.
        features = features.to(next(head.parameters()).dtype)
        self._catching = False
        try:
            frozen = {name: p.detach() for name, p in head.named_parameters()}
            for_body = functional_call(head, frozen, (features,))
            for_head = head(features.detach())
        finally:
            self._catching = True
        body = replace(batch, scores=for_body.reshape(batch.scores.shape))
        own = replace(batch, scores=for_head.reshape(batch.scores.shape))
        return self.below.joined_loss(body, index) + self.above.joined_loss(own, index)

    def status(self) -> dict[str, Any]:
        return self.above.status()
