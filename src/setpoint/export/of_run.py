"""A saved run as one ONNX model: columns in, scores and decisions out."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np

from setpoint.errors import CannotExport
from setpoint.export.columns import LEVELS, Input, Inputs, encode_columns
from setpoint.export.decision import Belonging, decide
from setpoint.export.graph import DOUBLE, FLOAT, INT, Graph
from setpoint.export.levels import DRESSED, is_missing, level_codes
from setpoint.export.models import score
from setpoint.problem.per_label import PerLabel
from setpoint.problem.point import OperatingPoint
from setpoint.problem.thresholds import PerBound
from setpoint.run.artefact import SavedRun
from setpoint.serve.run import answer_columns

#: The group of rows in which the column of groups is missing.
_NO_GROUP = "(missing)"


@dataclass(frozen=True)
class Exported:
    """An ONNX model as bytes, and the inputs that it takes."""

    content: bytes
    given: tuple[Input, ...]


def export_graph(saved: SavedRun) -> Exported:
    """The model of a saved run, not yet tried."""
    graph = Graph()
    x, inputs = encode_columns(graph, saved.schema)
    # In float64, rounded at the end: as `train/scoring.py` does.
    scores = graph.cast(score(graph, saved.model, graph.cast(x, DOUBLE)), FLOAT)
    finish(graph, scores, saved.point, OfRun(inputs, saved))
    given = tuple(inputs.given.values())
    about = about_point(saved.point, given) | {
        "setpoint.target": saved.schema.target.name,
        "setpoint.schema": json.dumps(saved.schema.to_dict()),
        "setpoint.files": json.dumps(saved.about["files"]),
        "setpoint.seal": json.dumps(saved.about["seal"]),
        "setpoint.versions": json.dumps(saved.about["versions"]),
    }
    return Exported(graph.model(about).SerializeToString(), given)


def finish(graph: Graph, scores: str, point: OperatingPoint, belongs: Belonging, kind: int = FLOAT) -> None:
    """Add the outputs `score` and `decision` to a graph; `scores` are `(n, K)`, float32 if no other kind is named."""
    several = len(point.classes or point.labels)
    if not several:
        scores = graph.add("Squeeze", scores, graph.constant(np.array([1])))
    decided = decide(graph, point.thresholds, graph.cast(scores, DOUBLE), belongs)
    graph.output("score", scores, kind, ["n", several] if several else ["n"])
    each = [len(point.thresholds.values)] if isinstance(point.thresholds, (PerBound, PerLabel)) else []
    graph.output("decision", decided, INT, ["n", *each])


def about_point(point: OperatingPoint, given: tuple[Input, ...]) -> dict[str, str]:
    """Metadata for the file: the ask, the point with its certificate, and the inputs."""
    return {
        "setpoint.ask": str(point.problem),
        "setpoint.point": json.dumps(point.to_dict()),
        "setpoint.certificate": json.dumps(point.to_dict()["certificate"]),
        "setpoint.classes": json.dumps(list(point.classes)),
        "setpoint.labels": json.dumps(list(point.labels)),
        "setpoint.outputs": json.dumps(answer_columns(point)),
        "setpoint.written": json.dumps(_written(point)),
        "setpoint.inputs": json.dumps([asdict(each) for each in given]),
    }


def _written(point: OperatingPoint) -> dict[str, str]:
    """The text of each decision in a file, where it is not the number."""
    numbers = np.arange(len(point.classes)) if point.classes else np.arange(-1, 2)
    texts = {str(each): str(text) for each, text in zip(numbers, point.thresholds.written(numbers))}
    return {each: text for each, text in texts.items() if text != each}


@dataclass(frozen=True)
class OfRun:
    """The group or the list of each row, from the column of a saved run that names it."""

    inputs: Inputs
    saved: SavedRun

    def group(self, names: tuple[str, ...]) -> str:
        """The place of each row's group among the names, `(n,)`; beyond the last for an unknown group."""
        graph, given = self.inputs.graph, self._take(self.saved.point.problem.group, "groups", LEVELS)
        known = tuple(name for name in names if name != _NO_GROUP)
        codes = level_codes(graph, given.name, given.kind, known)
        of_each = [*map(names.index, known), names.index(_NO_GROUP) if _NO_GROUP in names else len(names), len(names)]
        places = graph.add("Gather", graph.constant(np.array(of_each)), codes)
        return graph.add("Squeeze", places, graph.constant(np.array([1])))

    def list(self) -> str:
        """The name of each row's list, `(n,)`; a name that is missing, or has blanks around it, stops the graph."""
        graph, given = (
            self.inputs.graph,
            self._take(self.saved.about["settings"]["lists"], "lists", ("number", "words")),
        )
        if given.kind == "number":
            odd = graph.add("Or", graph.add("IsNaN", given.name), graph.add("IsInf", given.name))
        else:
            dressed = graph.add("RegexFullMatch", given.name, pattern=DRESSED)
            odd = graph.add("Or", dressed, is_missing(graph, given.name))
        return graph.add("Squeeze", graph.refuse(given.name, odd), graph.constant(np.array([1])))

    def _take(self, column: str | None, what: str, kinds: tuple[str, ...]) -> Input:
        assert column is not None
        given = self.inputs.take(column, self.saved.schema.readings.get(column))
        if given.kind not in kinds:
            raise CannotExport(
                f"the {what} are values of column {column!r}, which holds {given.kind}; use words or numbers"
            )
        return given
