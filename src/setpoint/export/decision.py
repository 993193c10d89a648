"""Decisions in a graph: from scores to the whole numbers that `Thresholds.decide` gives.

`DECISIONS` names a function per kind of thresholds; another kind is another line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from setpoint.errors import CannotExport
from setpoint.export.graph import BOOL, INT, Graph
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import REVIEW, Band, OneThreshold, PerBound, PerGroup, Thresholds

#: The place of each row's group among some names, `(n,)`; for kinds of thresholds that have groups.
Places = Callable[[tuple[str, ...]], str]


def decide(graph: Graph, thresholds: Thresholds, scores: str, places: Places) -> str:
    """Decisions int64 of scores in float64: `(n,)`, or one column per threshold for an ask over a range."""
    if type(thresholds) not in DECISIONS:
        raise CannotExport(
            f"a decision by {type(thresholds).__name__} cannot be exported; these can: "
            f"{', '.join(sorted(known.__name__ for known in DECISIONS))}"
        )
    return DECISIONS[type(thresholds)](graph, thresholds, scores, places)


def _one(graph: Graph, thresholds: OneThreshold, scores: str, places: Places) -> str:
    return graph.cast(graph.add("Greater", scores, graph.number(thresholds.plain)), INT)


def _per_bound(graph: Graph, thresholds: PerBound, scores: str, places: Places) -> str:
    column = graph.add("Unsqueeze", scores, graph.constant(np.array([1])))
    return graph.cast(graph.add("Greater", column, graph.constant(np.array([thresholds.plain]))), INT)


def _per_group(graph: Graph, thresholds: PerGroup, scores: str, places: Places) -> str:
    # A group without a threshold has a place beyond the last, where Gather fails.
    own = graph.add("Gather", graph.constant(np.array(thresholds.values)), places(tuple(thresholds.plain)))
    return graph.cast(graph.add("Greater", scores, own), INT)


def _band(graph: Graph, thresholds: Band, scores: str, places: Places) -> str:
    flagged, passed = (
        graph.cast(graph.add("Greater", scores, graph.number(cut)), INT) for cut in (thresholds.high, thresholds.low)
    )
    unsure = graph.cast(graph.add("Sub", passed, flagged), BOOL)
    return graph.add("Where", unsure, graph.number(REVIEW, np.int64), flagged)


def _shifts(graph: Graph, thresholds: Shifts, scores: str, places: Places) -> str:
    lowered = graph.add("Sub", scores, graph.constant(np.array([thresholds.shifts])))
    return graph.add("ArgMax", lowered, axis=1, keepdims=0)


DECISIONS: dict[type[Thresholds], Callable[[Graph, Any, str, Places], str]] = {
    OneThreshold: _one, PerBound: _per_bound, PerGroup: _per_group, Band: _band, Shifts: _shifts,
}  # fmt: skip
