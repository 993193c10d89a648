"""Thresholds as a function of the last layer only: one criterion for the body, another for the head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.hooks import RemovableHandle

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
        head: The module of the model that makes the scores, such as `model[-1]`. None takes the last linear layer of
            the model that `sp.fit` trains.
        below: The loss of the body. `CrossEntropy()`, the default, is method 1 of the last-layer paper,
            `Penalty(problem)` its method 2.
        above: The loss of the head; by default `ImplicitThreshold(problem)`. `Penalty(problem)` for both is the
            ablation of the paper.

    Raises:
        BadSetting: If `head` is not a module with parameters, does not make the scores, or was not run on the batch
            before the solver.

    Example:
        >>> import torch, setpoint as sp
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        >>> solver = sp.losses.ImplicitLastLayer(sp.ask("minimize fnr where fpr <= 40%"), head=model[-1])
        >>> x, labels = torch.randn(8, 2), torch.tensor([1.0, 0.0] * 4)
        >>> solver(model(x).squeeze(-1), labels).backward()
    """

    takes_parts = True

    def __init__(
        self,
        problem: Problem,
        head: nn.Module | None = None,
        *,
        below: Solver | None = None,
        above: Solver | None = None,
    ) -> None:
        super().__init__()
        self.below = CrossEntropy() if below is None else below
        self.above = ImplicitThreshold(problem) if above is None else above
        # The head belongs to the model: in a tuple it is not registered here, so no optimizer gets it twice.
        self._head: tuple[nn.Module, ...] = ()
        self._features: Tensor | None = None
        self._catching = True
        #: Whether the head is known to make the scores.
        self._known = head is not None
        if head is not None:
            self._attach(head)

    @property
    def has_head(self) -> bool:
        """Whether the solver belongs to the head of one model."""
        return bool(self._head)

    def _attach(self, head: nn.Module) -> RemovableHandle:
        if not isinstance(head, nn.Module) or not any(True for _ in head.parameters()):
            raise BadSetting(f"head must be the module that makes the scores, such as model[-1], got {head!r}")
        self._head = (head,)
        return head.register_forward_pre_hook(self._catch)

    @contextmanager
    def inside(self, model: nn.Module) -> Iterator[None]:
        """Belong to the last linear layer of the model for a while, unless a head was given."""
        if self.has_head:
            yield
            return
        layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
        if not layers or layers[-1] is model:
            raise BadSetting(
                f"{type(self).__name__} trains the layers below the last linear one by another loss, but this "
                f"{type(model).__name__} has no such layers; choose ImplicitThreshold, or give head="
            )
        handle = self._attach(layers[-1])
        try:
            yield
        finally:
            handle.remove()
            self._head, self._features, self._known = (), None, False

    def _catch(self, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        if self._catching and self.training:
            self._features = inputs[0]

    def check(self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Tensor | None) -> Sample:
        """Scores `(n,)` with labels of 0 and 1, or `(n, K)` with class numbers if the loss of the head takes them."""
        by_class = isinstance(scores, Tensor) and scores.dim() == 2 and scores.shape[1] > 1
        if by_class:
            return self.above.check(scores, labels, weights, groups)
        return super().check(scores, labels, weights, groups)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        if not self.training:
            return self.above.joined_loss(batch, index)
        features, self._features = self._features, None
        if not self.has_head:
            raise BadSetting("the solver belongs to no head; give head=model[-1], or train by sp.fit")
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
        if not self._known:
            self._refuse_other_scores(for_head.detach(), batch.scores.detach())
        body = replace(batch, scores=for_body.reshape(batch.scores.shape))
        own = replace(batch, scores=for_head.reshape(batch.scores.shape))
        return self.below.joined_loss(body, index) + self.above.joined_loss(own, index)

    def keep(self, batch: Sample) -> None:
        for solver in (self.below, self.above):
            solver.keep(batch)

    def _refuse_other_scores(self, own: Tensor, scores: Tensor) -> None:
        """Refuse a head that was found here, if its numbers are not the scores of the model."""
        same = own.numel() == scores.numel()
        # Half precision has three digits.
        if not same or not torch.allclose(own.reshape(scores.shape), scores, 1e-2, 1e-2):
            raise BadSetting(
                "the last linear layer does not make the scores of this model; give ImplicitLastLayer the layer that "
                "does as head="
            )
        self._known = True

    def status(self) -> dict[str, Any]:
        return self.above.status()
