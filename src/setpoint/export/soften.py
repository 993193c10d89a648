"""Short tails in a graph, by the operations of `data/standardise.py` in the same order, so that every bit is equal."""

from __future__ import annotations

import numpy as np

from setpoint.data.standardise import HALVINGS, LOG_OF_2, ROOT_OF_2, SERIES, TAIL
from setpoint.export.graph import Graph


def soften(graph: Graph, z: str) -> str:
    """Standardised values, float64, with short tails beyond five deviations."""
    beyond = graph.add("Greater", graph.add("Abs", z), graph.number(TAIL))
    # Few values are that far out: they are taken out, and put back.
    places = graph.add("Transpose", graph.add("NonZero", beyond))
    far = graph.add("GatherND", z, places)
    size = graph.add("Min", graph.add("Abs", far), graph.number(np.finfo(np.float64).max))
    above = graph.add("Add", graph.add("Sub", size, graph.number(TAIL)), graph.number(1))
    tail = graph.add("Add", _logarithm(graph, above), graph.number(TAIL))
    return graph.add("ScatterND", z, places, graph.add("Mul", graph.add("Sign", far), tail))


def _logarithm(graph: Graph, y: str) -> str:
    halved = graph.add("Mul", y, graph.number(0))
    for limit, factor, count in [*((2.0**k, 2.0**-k, k) for k in HALVINGS), (ROOT_OF_2, 0.5, 1)]:
        is_large = graph.add("GreaterOrEqual", y, graph.number(limit))
        y = graph.add("Where", is_large, graph.add("Mul", y, graph.number(factor)), y)
        halved = graph.add("Where", is_large, graph.add("Add", halved, graph.number(count)), halved)
    ratio = graph.add("Div", graph.add("Sub", y, graph.number(1)), graph.add("Add", y, graph.number(1)))
    square, total = graph.add("Mul", ratio, ratio), graph.number(SERIES[-1])
    for share in SERIES[-2::-1]:
        total = graph.add("Add", graph.add("Mul", total, square), graph.number(share))
    doubled = graph.add("Mul", graph.add("Mul", ratio, graph.number(2)), total)
    return graph.add("Add", graph.add("Mul", halved, graph.number(LOG_OF_2)), doubled)
