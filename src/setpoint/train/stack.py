"""A stack: a weighted sum of the logits of models of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from setpoint.data.rows import Rows
from setpoint.measure.sample import Sample
from setpoint.train.linear import cross_entropy

#: Makes a model from its stored `state_dict`.
Restore = Callable[[Mapping[str, Tensor]], nn.Module]


class Stack(nn.Module):
    """A model that adds up the weighted logits of its members.

    Args:
        members: The models by name, such as "linear" and "trees".
        weights: The weight of each member, by the same names.
        bias: Is added to every sum.

    Example:
        >>> import torch, setpoint as sp
        >>> members = {"first": torch.nn.Linear(2, 1), "second": torch.nn.Linear(2, 1)}
        >>> x = torch.randn(5, 2)
        >>> stack = sp.methods.Stack(members, {"first": 2.0, "second": 1.0}, bias=0.5)
        >>> torch.allclose(stack(x), (2 * members["first"](x) + members["second"](x)).squeeze(-1) + 0.5)
        True
    """

    bias: Tensor

    def __init__(self, members: Mapping[str, nn.Module], weights: Mapping[str, float], bias: float = 0.0) -> None:
        super().__init__()
        # By name, and in the order of the names: a file may hold the parameters in any order.
        self.members = nn.ModuleDict({name: members[name] for name in sorted(members)})
        for name in self.members:
            self.register_buffer(f"weight of {name}", torch.tensor(weights[name]))
        self.register_buffer("bias", torch.tensor(bias))

    def forward(self, x: Tensor) -> Tensor:
        """The weighted sum per row `(n,)`, or per row and class `(n, K)`."""
        total = self.bias
        for name, member in self.members.items():
            scores = member(x)
            own = scores.squeeze(-1) if scores.dim() == 2 and scores.shape[1] == 1 else scores
            total = total + getattr(self, f"weight of {name}") * own
        return total

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], kinds: Mapping[str, Restore]) -> Stack:
        """The stack with a stored `state_dict`, from the functions that restore its members."""
        of_each: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            if key.startswith("members."):
                _, name, own = key.split(".", 2)
                of_each.setdefault(name, {})[own] = value
        weights = {name: float(state[f"weight of {name}"]) for name in of_each}
        return cls({name: kinds[name](own) for name, own in of_each.items()}, weights, float(state["bias"]))


def stacked(samples: Sequence[Sample], folds: Tensor) -> tuple[list[float], Sample]:
    """The weights and the bias of a logistic regression on out-of-fold logits, and its own out-of-fold scores.

    The score of each row is by weights that were fitted on the other folds.
    """
    first = samples[0]
    weights = None if first.weights is None else first.weights.double()
    x = torch.stack([*(sample.scores.double() for sample in samples), torch.ones(len(first.labels)).double()], dim=1)
    rows = Rows(x, first.labels.double(), weights)
    scores = torch.zeros(len(x), dtype=torch.float64)
    for fold in folds.unique():
        scores[folds == fold] = x[folds == fold] @ _weights(rows.take(folds != fold))
    return _weights(rows).tolist(), replace(first, scores=scores.float())


def _weights(rows: Rows) -> Tensor:
    weights = rows.weights_or_ones
    return cross_entropy(rows, weights / weights.mean())
