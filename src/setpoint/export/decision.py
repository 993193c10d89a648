"""Decisions in a graph: from scores to the whole numbers that `Thresholds.decide` gives.

`DECISIONS` names a function per kind of thresholds; another kind is another line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from setpoint.errors import CannotExport
from setpoint.export.graph import BOOL, INT, Graph
from setpoint.problem.first_of_list import FirstOfList
from setpoint.problem.per_label import PerLabel
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import REVIEW, Band, OneThreshold, PerBound, PerGroup, Thresholds


class Belonging(Protocol):
    """Where a row belongs to, for the kinds of decisions that depend on it."""

    def group(self, names: tuple[str, ...]) -> str:
        """The place of each row's group among some names, `(n,)`."""

    def list(self) -> str:
        """The name of each row's list, `(n,)`."""


def decide(graph: Graph, thresholds: Thresholds, scores: str, belongs: Belonging) -> str:
    """Decisions int64 of scores in float64: `(n,)`, or one column per label or per bound of an ask over a range."""
    if type(thresholds) not in DECISIONS:
        raise CannotExport(
            f"a decision by {type(thresholds).__name__} cannot be exported; these can: "
            f"{', '.join(sorted(known.__name__ for known in DECISIONS))}"
        )
    return DECISIONS[type(thresholds)](graph, thresholds, scores, belongs)


def _one(graph: Graph, thresholds: OneThreshold, scores: str, belongs: Belonging) -> str:
    return graph.cast(graph.add("Greater", scores, graph.number(thresholds.plain)), INT)


def _per_bound(graph: Graph, thresholds: PerBound, scores: str, belongs: Belonging) -> str:
    column = graph.add("Unsqueeze", scores, graph.constant(np.array([1])))
    return graph.cast(graph.add("Greater", column, graph.constant(np.array([thresholds.plain]))), INT)


def _per_group(graph: Graph, thresholds: PerGroup, scores: str, belongs: Belonging) -> str:
    # A group without a threshold has a place beyond the last, where Gather fails.
    own = graph.add("Gather", graph.constant(np.array(thresholds.values)), belongs.group(tuple(thresholds.plain)))
    return graph.cast(graph.add("Greater", scores, own), INT)


def _band(graph: Graph, thresholds: Band, scores: str, belongs: Belonging) -> str:
    flagged, passed = (
        graph.cast(graph.add("Greater", scores, graph.number(cut)), INT) for cut in (thresholds.high, thresholds.low)
    )
    unsure = graph.cast(graph.add("Sub", passed, flagged), BOOL)
    return graph.add("Where", unsure, graph.number(REVIEW, np.int64), flagged)


def _shifts(graph: Graph, thresholds: Shifts, scores: str, belongs: Belonging) -> str:
    lowered = graph.add("Sub", scores, graph.constant(np.array([thresholds.shifts])))
    return graph.add("ArgMax", lowered, axis=1, keepdims=0)


def _per_label(graph: Graph, thresholds: PerLabel, scores: str, belongs: Belonging) -> str:
    return graph.cast(graph.add("Greater", scores, graph.constant(np.array([thresholds.cuts]))), INT)


def _first_of_list(graph: Graph, thresholds: FirstOfList, scores: str, belongs: Belonging) -> str:
    """Whether a row is among the first of its list; the graph gets one more output, `rank`."""
    ranks = _ranks(graph, scores, belongs.list())
    graph.output("rank", ranks, INT, ["n"])
    return graph.cast(graph.add("LessOrEqual", ranks, graph.number(thresholds.k, np.int64)), INT)


def _ranks(graph: Graph, scores: str, lists: str) -> str:
    """The rank of each row in its list, from 1 up; tied rows keep their order, as TopK leaves them in it."""
    _, _, numbers, sizes = graph.several("Unique", 4, lists, sorted=0)
    rows = graph.add("Shape", scores)
    by_score = graph.several("TopK", 2, scores, rows)[1]
    numbers_by_score = graph.add("Gather", numbers, by_score)
    ordered, by_list = graph.several("TopK", 2, numbers_by_score, rows, largest=0)
    order = graph.add("Gather", by_score, by_list)
    starts = graph.add("CumSum", sizes, graph.number(0, np.int64), exclusive=1)
    one, total = graph.number(1, np.int64), graph.add("Squeeze", rows)
    # The rows of a list are neighbours in the order, from the place on where the list starts.
    places = graph.add("Range", one, graph.add("Add", total, one), one)
    ranks = graph.add("Sub", places, graph.add("Gather", starts, ordered))
    return graph.add("ScatterElements", order, order, ranks)


DECISIONS: dict[type[Thresholds], Callable[[Graph, Any, str, Belonging], str]] = {
    OneThreshold: _one, PerBound: _per_bound, PerGroup: _per_group, Band: _band, Shifts: _shifts, PerLabel: _per_label,
    FirstOfList: _first_of_list,
}  # fmt: skip
