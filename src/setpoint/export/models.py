"""Models in a graph: from features in float64 to scores in float64 `(n, K)`, as `train/scoring.py` computes them.

`SCORERS` names a function per class of model; models of other classes cannot be exported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from setpoint.errors import CannotExport
from setpoint.export.graph import Graph
from setpoint.export.trees import boosted, layout_values
from setpoint.train.boosting import Boosted
from setpoint.train.each_label import LabelModels
from setpoint.train.ensemble import Ensemble
from setpoint.train.stack import Stack


def score(graph: Graph, model: nn.Module, x: str) -> str:
    """The scores of a model."""
    if type(model) not in SCORERS:
        raise CannotExport(
            f"a model of class {type(model).__name__} cannot be exported; these can: "
            f"{', '.join(sorted(known.__name__ for known in SCORERS))}; serve the run by sp.load_run"
        )
    return SCORERS[type(model)](graph, model, x)


def _linear(graph: Graph, model: nn.Linear, x: str) -> str:
    state = {name: graph.constant(value.double().cpu().numpy()) for name, value in model.state_dict().items()}
    return graph.add("Gemm", x, *(state[name] for name in ("weight", "bias") if name in state), transB=1)


def _sequence(graph: Graph, model: nn.Sequential, x: str) -> str:
    for layer in model:
        x = score(graph, layer, x)
    return x


def _mean(graph: Graph, model: Ensemble, x: str) -> str:
    total = graph.add("Sum", *(score(graph, member, x) for member in model.members))
    return graph.add("Div", total, graph.number(len(model.members)))


def _sum(graph: Graph, model: Stack, x: str) -> str:
    total = graph.number(float(model.bias))
    for name, member in model.members.items():
        weight = graph.number(float(getattr(model, f"weight of {name}")))
        total = graph.add("Add", total, graph.add("Mul", weight, score(graph, member, x)))
    return total


def _labels(graph: Graph, model: LabelModels, x: str) -> str:
    return graph.add("Concat", *(score(graph, member, x) for member in model.labels), axis=1)


def _trees(graph: Graph, model: Boosted, x: str) -> str:
    return boosted(graph, model.boosters, layout_values(graph, x, model.layout))


SCORERS: dict[type[nn.Module], Callable[[Graph, Any, str], str]] = {
    nn.Linear: _linear,
    nn.Sequential: _sequence,
    nn.ReLU: lambda graph, model, x: graph.add("Relu", x),
    nn.Tanh: lambda graph, model, x: graph.add("Tanh", x),
    nn.Dropout: lambda graph, model, x: x,
    nn.Identity: lambda graph, model, x: x,
    Ensemble: _mean,
    Stack: _sum,
    LabelModels: _labels,
    Boosted: _trees,
}
