"""Models that score rows in NumPy, restored from the parameters of a saved run.

Parameters are float32; scores are computed in float64 and rounded to float32, as `train/scoring.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from setpoint.data.layout import Layout
from setpoint.errors import BadFile
from setpoint.on_use import torch
from setpoint.serve.booster import Booster
from setpoint.serve.mixture import chosen_members

Array: TypeAlias = NDArray[Any]
State: TypeAlias = Mapping[str, Array]
#: The largest number of rows that are scored together, and of values in them.
AT_ONCE, NUMBERS = 65_536, 2**24


class Model(Protocol):
    """A model that gives scores."""

    def score(self, x: NDArray[np.float32]) -> Array:
        """Scores `(n,)`, or `(n, K)` for K outputs, of features `(n, d)`."""


class RowScorer(Protocol):
    """A model, or a part of one, on features in float64; scores are float64 `(n, K)`."""

    def scores(self, x: Array) -> Array: ...


@dataclass(frozen=True)
class Whole:
    """A model of the library's own kinds."""

    part: RowScorer
    outputs: int

    def score(self, x: NDArray[np.float32]) -> Array:
        most = max(1, min(AT_ONCE, NUMBERS // max(x.shape[1], 1)))
        parts = [self._some(x[first : first + most]) for first in range(0, max(len(x), 1), most)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _some(self, x: Array) -> Array:
        scores = self.part.scores(x.astype(np.float64)).astype(np.float32)
        if scores.shape != (len(x), self.outputs):
            raise BadFile(f"its model gives {scores.shape[-1]} scores per row, not {self.outputs}")
        return scores[:, 0] if self.outputs == 1 else scores


@dataclass(frozen=True)
class Linear:
    weight: Array
    bias: Array | float

    def scores(self, x: Array) -> Array:
        return np.asarray(x @ self.weight.T + self.bias)


@dataclass(frozen=True)
class Layers:
    """Linear layers with ReLU between them."""

    layers: Sequence[Linear]

    def scores(self, x: Array) -> Array:
        for layer, _ in pairwise(self.layers):
            x = np.maximum(layer.scores(x), 0.0)
        return self.layers[-1].scores(x)


@dataclass(frozen=True)
class ServedTrees:
    """The mean logit of boosters."""

    boosters: Sequence[Booster]
    layout: Layout

    def scores(self, x: Array) -> Array:
        values = self.layout.values(x)
        total = sum(booster.raw_scores(values) for booster in self.boosters)
        return np.asarray(total / len(self.boosters)).reshape(len(x), -1)


@dataclass(frozen=True)
class Mean:
    members: Sequence[RowScorer]

    def scores(self, x: Array) -> Array:
        return np.asarray(np.stack([member.scores(x) for member in self.members]).mean(0))


@dataclass(frozen=True)
class ServedStack:
    """The weighted sum of members, in the order of their names."""

    members: Mapping[str, RowScorer]
    weights: Mapping[str, float]
    bias: float

    def scores(self, x: Array) -> Array:
        total: Any = self.bias
        for name, member in self.members.items():
            total = total + self.weights[name] * member.scores(x)
        return np.asarray(total)


@dataclass(frozen=True)
class ServedLabels:
    """One model per label."""

    labels: Sequence[RowScorer]

    def scores(self, x: Array) -> Array:
        return np.concatenate([label.scores(x) for label in self.labels], axis=1)


@dataclass(frozen=True)
class ServedMixture:
    """Each row is scored by one of the members; PyTorch draws the numbers by which `chosen_members` hashes it."""

    members: Sequence[RowScorer]
    shares: Array
    cuts: Array

    def scores(self, x: Array) -> Array:
        each = np.concatenate([member.scores(x) for member in self.members], axis=1)
        chosen = chosen_members(torch.from_numpy(x), torch.from_numpy(self.shares)).numpy()
        own = np.take_along_axis(each, chosen[:, None], axis=1)
        return np.asarray(own - self.cuts[chosen][:, None])


def restore_part(state: State) -> RowScorer:
    """The model whose parameters have these names; each kind of model has names of its own.

    Raises:
        BadFile: If no kind of model has them.
    """
    if "blocks" in state:
        texts = [_text(state[f"booster_{place}"]) for place in range(len(state) - 1)]
        return ServedTrees([Booster(text) for text in texts], Layout.from_json(_text(state["blocks"])))
    if "shares" in state:
        members = _several(state, "members")
        return ServedMixture(members, state["shares"].astype(float), state["cuts"].astype(float))
    names = sorted(name.removeprefix("weight of ") for name in state if name.startswith("weight of "))
    if names:
        weights = {name: float(state[f"weight of {name}"]) for name in names}
        own = {name: restore_part(_under(f"members.{name}.", state)) for name in names}
        return ServedStack(own, weights, float(state["bias"]))
    for group, kind in (("members", Mean), ("labels", ServedLabels)):
        if any(name.startswith(f"{group}.") for name in state):
            return kind(_several(state, group))
    if "weight" in state:
        return _linear(state)
    places = sorted(int(name.removesuffix(".weight")) for name in state if name.endswith(".weight"))
    if places != list(range(0, 2 * len(places), 2)) or not places:
        raise BadFile("its parameters are those of no kind of model")
    return Layers([_linear(_under(f"{place}.", state)) for place in places])


def restore(state: State, members: int, outputs: int) -> Model:
    """The model with these parameters, of so many members, which gives so many scores per row."""
    part = restore_part(state)
    each = part.labels if isinstance(part, ServedLabels) else [part]
    if members > 1 and not all(isinstance(own, Mean) and len(own.members) == members for own in each):
        raise BadFile(f"it does not hold the {members} models of its ensemble")
    return Whole(part, outputs)


#: How the model of each kind is restored from its parameters, the number of its members and that of its scores per row;
#: `sp.methods.register` adds to it.
RESTORERS: dict[str, Callable[[State, int, int], Model]] = dict.fromkeys(
    ("auto", "linear", "trees", "mlp", "lambdarank"), restore
)


def _linear(state: State) -> Linear:
    bias = state["bias"].astype(np.float64) if "bias" in state else 0.0
    weight = state["weight"].astype(np.float64)
    if weight.ndim != 2 or set(state) - {"weight", "bias"}:
        raise BadFile("its parameters are those of no linear model")
    return Linear(weight, bias)


def _several(state: State, group: str) -> list[RowScorer]:
    count = 1 + max(int(name.split(".")[1]) for name in state if name.startswith(f"{group}."))
    return [restore_part(_under(f"{group}.{place}.", state)) for place in range(count)]


def _under(prefix: str, state: State) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _text(stored: Array) -> str:
    return stored.tobytes().decode()
