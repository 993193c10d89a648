"""Columns in a graph: one input per column, and the features that the model takes, as the schema makes them.

`ENCODERS` names a function per kind of column; kinds without one cannot be exported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.data.column import Categorical, Numeric
from setpoint.data.columns import Columns
from setpoint.data.reading import Reading
from setpoint.data.several import Times, Vector
from setpoint.data.spelling import plain_spelling
from setpoint.data.target_mean import TargetMean
from setpoint.errors import CannotExport
from setpoint.export.graph import BOOL, DOUBLE, FLOAT, TEXT, Graph
from setpoint.export.levels import level_codes
from setpoint.export.soften import soften
from setpoint.export.times import SHAPES, moments, time_part

#: The names of outputs, which no input can have.
OUTPUTS = ("score", "decision", "rank")
#: Blanks between seconds and a time zone are cut off.
_AT_ZONE = ((r"(:\d\d:\d\d(?:\.\d+)?)\s+(?=(?:Z|[+-]\d\d:?\d\d)$)", r"\1"),)
#: The patterns of text that spells a kind.
_SHAPES = {**SHAPES, "boolean text": "(?i:true|false)"}
#: The type of the input of each kind; all other kinds are text.
_TYPES = {"number": DOUBLE, "duration": DOUBLE, "list of numbers": DOUBLE, "boolean": BOOL}


@dataclass(frozen=True)
class Input:
    """An input of the graph: the column that it takes, the kind of its values, and how many there are per row.

    For `predict.py`: how it changes text of the form that training read into text that the model takes, the pattern of
    such text, and the sentence on any other, in which a zero byte stands for the text.
    """

    column: str
    name: str
    kind: str
    width: int = 1
    spelling: tuple[tuple[str, str], ...] = ()
    shape: str = ""
    odd: str = ""


@dataclass
class Inputs:
    """The inputs of a graph, each made once; `nullable` are booleans that may be missing, and so are text."""

    graph: Graph
    given: dict[str, Input] = field(default_factory=dict)

    def take(self, column: str, reading: Reading | None, *, nullable: bool = True) -> Input:
        """The input of a column."""
        if column not in self.given:
            kind = reading.kind if reading else "words"
            kind = "boolean text" if kind == "boolean" and nullable else kind
            name = f"column {column}" if column in OUTPUTS or column.startswith("setpoint/") else column
            changes = plain_spelling(reading.form, reading.unit) if reading and reading.form else ()
            changes = _AT_ZONE if kind == "time with a zone" else changes
            odd = reading.refusal(column, "\0") if reading else ""
            own = Input(column, name, kind, reading.length or 1 if reading else 1, changes, _SHAPES.get(kind, ""), odd)
            self.graph.input(own.name, _TYPES.get(kind, TEXT), own.width)
            self.given[column] = own
        return self.given[column]


@dataclass
class Features:
    """Features as they are made: amounts, which are standardised all at once, and blocks of 0/1 features."""

    graph: Graph
    inputs: Inputs
    amounts: list[tuple[str, Numeric]] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    #: Per feature, in order: its kind, the amount or the block that it comes from, and its place there.
    order: list[tuple[str, int, int]] = field(default_factory=list)

    def amount(self, values: str, about: Numeric) -> None:
        """The features of numbers `(n, 1)`, float64, NaN where missing."""
        place = len(self.amounts)
        self.amounts.append((values, about))
        self.order += [("amount", place, 0)] + [("flag", place, 0)] * about.missing
        if about.levels:
            known = self.graph.constant(np.array([about.levels]))
            self.block(self.graph.cast(self.graph.add("Equal", values, known), FLOAT), len(about.levels))

    def block(self, values: str, width: int) -> None:
        """Features `(n, width)`, float32."""
        self.order += [("block", len(self.blocks), place) for place in range(width)]
        self.blocks.append(values)

    def joined(self) -> str:
        """All features, float32 `(n, d)`, in their order."""
        parts, starts = [], {}
        width = 0
        if self.amounts:
            amounts, flags = self._standardised()
            parts += [amounts, flags]
            starts = {"amount": 0, "flag": len(self.amounts)}
            width = 2 * len(self.amounts)
        of_block = []
        for place, values in enumerate(self.blocks):
            of_block.append(width)
            parts.append(values)
            width += sum(kind == "block" and own == place for kind, own, _ in self.order)
        places = [of_block[own] + place if kind == "block" else starts[kind] + own for kind, own, place in self.order]
        return self.graph.take(self.graph.add("Concat", *parts, axis=1), places)

    def _standardised(self) -> tuple[str, str]:
        """Amounts as `Numeric.encode_values` makes them, and 1 where each is missing; float32."""
        graph, known = self.graph, [about for _, about in self.amounts]
        values = graph.add("Concat", *(values for values, _ in self.amounts), axis=1)
        mean, deviation = (np.array([getattr(n, each) for n in known]) for each in ("mean", "deviation"))
        unknown = graph.add("Or", graph.add("IsNaN", values), graph.add("IsInf", values))
        filled = graph.add("Where", unknown, graph.constant(mean), values)
        z = graph.add("Div", filled, graph.constant(deviation))
        z = graph.add("Sub", z, graph.constant(mean / deviation))
        return graph.cast(soften(graph, z), FLOAT), graph.cast(unknown, FLOAT)


def encode_columns(graph: Graph, columns: Columns) -> tuple[str, Inputs]:
    """The features of all columns, float32 `(n, d)`, and the inputs that they are made of."""
    inputs = Inputs(graph)
    features = Features(graph, inputs)
    for column in columns.columns:
        if type(column) not in ENCODERS:
            raise CannotExport(
                f"column {column.name!r} is of kind {type(column).__name__.lower()}, which ONNX cannot compute; "
                f"fit without it (--drop {column.name!r}), or serve the run by sp.load_run"
            )
        ENCODERS[type(column)](features, column, columns.readings[column.name])
    return features.joined(), inputs


def _numeric(features: Features, column: Numeric, reading: Reading) -> None:
    given = features.inputs.take(column.name, reading)
    features.amount(_clocks(features.graph, given) if given.kind == "time of day" else given.name, column)


def _clocks(graph: Graph, given: Input) -> str:
    """Nanoseconds since midnight, NaN where missing."""
    since_midnight, absent = moments(graph, given.name, given.kind)
    return _unless(graph, absent, graph.cast(since_midnight, DOUBLE))


def _times(features: Features, column: Times, reading: Reading) -> None:
    graph = features.graph
    given = features.inputs.take(column.name, reading)
    micros, absent = moments(graph, given.name, given.kind)
    for amount in column.amounts:
        values = time_part(graph, micros, amount.name.removeprefix(f"{column.name}: "))
        features.amount(_unless(graph, absent, values), amount)


def _unless(graph: Graph, absent: str, values: str) -> str:
    return graph.add("Where", absent, graph.number(np.nan), values)


def _vector(features: Features, column: Vector, reading: Reading) -> None:
    given = features.inputs.take(column.name, reading)
    for place, amount in zip(column.places, column.amounts):
        features.amount(features.graph.take(given.name, [place]), amount)


def _categorical(features: Features, column: Categorical, reading: Reading) -> None:
    width, last = len(column.features), len(column.levels)
    elsewhere = width - 1 if column.other else width
    rows = [*range(last), last if column.missing else elsewhere, elsewhere]
    features.block(_of_level(features, column, reading, np.eye(width + 1, width, dtype=np.float32)[rows]), width)


def _of_level(
    features: Features, column: Categorical | TargetMean, reading: Reading, table: NDArray[np.float32]
) -> str:
    """The row of a table for each level of a column, then one for missing values and one for all other values."""
    graph = features.graph
    given = features.inputs.take(column.name, reading, nullable=column.missing not in (False, None))
    if given.kind not in LEVELS:
        raise CannotExport(f"column {column.name!r} holds levels of {given.kind}; ONNX files take {', '.join(LEVELS)}")
    codes = level_codes(graph, given.name, given.kind, column.levels)
    squeezed = graph.add("Squeeze", codes, graph.constant(np.array([1])))
    return graph.add("Gather", graph.constant(table), squeezed)


def _target_mean(features: Features, column: TargetMean, reading: Reading) -> None:
    values = np.array([*column.values, column.missing or 0.0, 0.0], dtype=np.float32).reshape(-1, 1)
    features.block(_of_level(features, column, reading, values), 1)


#: Kinds of values that can be levels.
LEVELS = ("number", "words", "boolean", "boolean text")
ENCODERS: dict[type, Callable[[Features, Any, Reading], None]] = {
    Numeric: _numeric, Times: _times, Vector: _vector, Categorical: _categorical, TargetMean: _target_mean,
}  # fmt: skip
