"""A classifier of scikit-learn, LightGBM or XGBoost with the threshold of `Tuned`, as one ONNX model.

LightGBM and the trees of scikit-learn are read here, in float64. All other models are converted by skl2onnx or
onnxmltools; the decision is added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import CannotExport, missing
from setpoint.export.columns import Input
from setpoint.export.graph import CONVERTED, DOUBLE, FLOAT, INT, ML, OPSETS, TEXT, Graph
from setpoint.export.of_run import about_point, finish
from setpoint.export.trees import boosted, gradient_boosted, histogram_boosted, voted
from setpoint.export.try_tuned import GROUP, ExampleRows, tried_on
from setpoint.export.verify import Verified, session_of

#: Classes of scikit-learn whose trees vote.
VOTED = ("DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier")
#: Probabilities below this are taken as this, as `Tuned` does.
SMALLEST = 1e-12


def export_tuned(tuned: Any, example: Any) -> tuple[bytes, Verified]:
    """The ONNX model of a fitted `Tuned`, after it was tried on the example rows and on rows made from them."""
    if example is None:
        raise CannotExport("give example=: rows as predict takes them, which the ONNX file is made for and tried on")
    rows = ExampleRows.of(example)
    feeds = rows.feeds(rows.columns)
    given = [_given(name, values) for name, values in feeds.items()]
    graph, point = Graph(), tuned.operating_point_
    for each in given:
        graph.input(each.name, TEXT if each.kind == "words" else DOUBLE, each.width)
    scores = _scores(graph, tuned, given)
    width = len(point.classes) or 1
    for name, values in rows.refused(tuned._scores).items():
        scores = _refuse(graph, scores, width, name, values)
    groups = tuple(point.thresholds.by_group)
    given += [GROUP] * bool(groups)
    finish(graph, scores, point, OfTuned(graph), DOUBLE)
    about = about_point(point, tuple(given)) | {"setpoint.model": type(tuned.estimator_).__name__}
    content = graph.model(about).SerializeToString()
    return content, tried_on(tuned, rows, session_of(content))


def _refuse(graph: Graph, scores: str, width: int, name: str, odd: dict[str, NDArray[np.bool_]]) -> str:
    """The scores; the graph fails where a number is missing or infinite and Python refuses it."""
    for operator, where in odd.items():
        found = graph.add("And", graph.add(operator, name), graph.constant(where.reshape(1, -1)))
        beyond = graph.add("ReduceMax", graph.cast(found, INT), graph.constant(np.array([1])), keepdims=1)
        scores = graph.refuse(scores, beyond, width)
    return scores


def _given(name: str, values: NDArray[Any]) -> Input:
    return Input(name, name, "words" if values.dtype == object else "number", values.shape[1])


@dataclass(frozen=True)
class OfTuned:
    """The group of each row, which is an input of its own."""

    graph: Graph

    def group(self, names: tuple[str, ...]) -> str:
        """The place of each row's group among the names, `(n,)`; beyond the last for an unknown group."""
        value = self.graph.input(GROUP.name, TEXT, 1)
        places = self.graph.add(
            "LabelEncoder", value, domain=ML, keys_strings=list(names), values_int64s=list(range(len(names))),
            default_int64=len(names),
        )  # fmt: skip
        return self.graph.add("Squeeze", places, self.graph.constant(np.array([1])))

    def list(self) -> str:
        """Refused: `Tuned` knows no lists."""
        raise CannotExport("a tuned classifier has no lists; fit the ask by setpoint fit, and export that run")


def _scores(graph: Graph, tuned: Any, given: list[Input]) -> str:
    """The scores that `Tuned` cuts, float64 `(n, K)`."""
    model, place = tuned.estimator_, tuned._positive_place if not tuned.operating_point_.classes else 1
    own = next((own for is_own, own in READERS if is_own(model)), None)
    found = own(graph, model, _joined(graph, given)) if own else _converted(graph, model, given)
    if tuned.operating_point_.classes:
        if not hasattr(model, "decision_function"):
            return graph.add("Log", graph.add("Max", found, graph.number(SMALLEST)))
        if len(tuned.operating_point_.classes) == 2:
            margin = graph.take(found, [-1])
            return graph.add("Concat", graph.add("Sub", margin, margin), margin, axis=1)
        return found
    if hasattr(model, "decision_function"):
        margin = graph.take(found, [-1])
        return margin if place == 1 else graph.add("Neg", margin)
    return graph.take(found, [place])


def _joined(graph: Graph, given: list[Input]) -> str:
    """All columns side by side, float64."""
    words = [each.column for each in given if each.kind == "words"]
    if words:
        raise CannotExport(f"column {words[0]!r} holds words, which this model takes only through a ColumnTransformer")
    return given[0].name if len(given) == 1 else graph.add("Concat", *(each.name for each in given), axis=1)


def _lightgbm(graph: Graph, model: Any, x: str) -> str:
    """Logits, where the version of LightGBM offers them as its decision function, else probabilities of each class."""
    booster = model.booster_
    if booster.pandas_categorical:
        raise CannotExport("categories of pandas are known to LightGBM alone; give their codes, or use setpoint fit")
    logits = boosted(graph, [booster], x)
    if hasattr(model, "decision_function"):
        return logits
    if len(model.classes_) > 2:
        return graph.add("Softmax", logits, axis=1)
    odds = graph.add("Exp", graph.add("Neg", logits))
    probability = graph.add("Div", graph.number(1), graph.add("Add", odds, graph.number(1)))
    return graph.add("Concat", graph.add("Sub", graph.number(1), probability), probability, axis=1)


def _converted(graph: Graph, model: Any, given: list[Input]) -> str:
    """The decision function or the probabilities of a model, by its converter, float64."""
    by_column = _takes_columns(model)
    x = "" if by_column else _joined(graph, given)
    failures = []
    for kind in (DOUBLE, FLOAT):
        try:
            found = _convert(model, given if by_column else [Input("X", "X", "number", _width(given))], kind)
            session_of(found.SerializeToString())
        except Exception as cause:
            # Converters raise anything; those that know no float64 are tried in float32.
            if isinstance(cause, ImportError):
                raise
            failures.append(str(cause).strip().splitlines()[0][:200] if str(cause).strip() else repr(cause))
            continue
        return _grafted(graph, found, {} if by_column else {"X": x}, kind)
    raise CannotExport(f"{type(model).__name__} cannot be converted to ONNX: {failures[-1]}")


def _width(given: list[Input]) -> int:
    return sum(each.width for each in given)


def _takes_columns(model: Any) -> bool:
    """Whether a model takes columns by name: a pipeline that starts with a ColumnTransformer."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return hasattr(first, "transformers_")


def _convert(model: Any, given: list[Input], kind: int) -> Any:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    xgboost = type(model).__module__.startswith("xgboost")
    convert, types = _xgboost_converter() if xgboost else _sklearn_converter()
    number = types.DoubleTensorType if kind == DOUBLE else types.FloatTensorType
    inputs = [
        (each.name, types.StringTensorType([None, 1]) if each.kind == "words" else number([None, each.width]))
        for each in given
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if xgboost:
            return convert(model, initial_types=inputs, target_opset=15)
        options = {"zipmap": False, **({"raw_scores": True} if hasattr(last, "decision_function") else {})}
        versions = {**OPSETS, ML: CONVERTED}
        return convert(model, initial_types=inputs, options={id(last): options}, target_opset=versions)


def _sklearn_converter() -> tuple[Any, Any]:
    """The function that converts a model, and the types of its inputs."""
    try:
        from skl2onnx import to_onnx  # noqa: PLC0415
        from skl2onnx.common import data_types  # noqa: PLC0415
    except ImportError as cause:
        raise missing("skl2onnx", "export", cause) from None
    return to_onnx, data_types


def _xgboost_converter() -> tuple[Any, Any]:
    try:
        from onnxmltools import convert_xgboost  # noqa: PLC0415
        from onnxmltools.convert.common import data_types  # noqa: PLC0415
    except ImportError as cause:
        raise missing("onnxmltools", "export", cause) from None
    return convert_xgboost, data_types


def _grafted(graph: Graph, found: Any, names: dict[str, str], kind: int) -> str:
    """Add the nodes of another model to a graph, with names of their own; its scores, float64 `(n, K)`."""
    inputs = {value.name: names.get(value.name, value.name) for value in found.graph.input}
    cast = {name: graph.cast(own, kind) if kind == FLOAT else own for name, own in inputs.items()}
    rename: Callable[[str], str] = lambda name: cast.get(name) or (f"converted/{name}" if name else "")  # noqa: E731
    graph.adopt(found, rename)
    return graph.cast(rename(found.graph.output[1].name), DOUBLE)


def _starts_constant(model: Any) -> bool:
    """Whether a model is boosted by scikit-learn from a number, not from another model."""
    return hasattr(model, "_raw_predict_init") and (model.init is None or model.init == "zero")


#: Models that are read here: how to tell each, and its function.
READERS: tuple[tuple[Callable[[Any], bool], Callable[[Graph, Any, str], str]], ...] = (
    (lambda model: hasattr(model, "booster_"), _lightgbm),
    (lambda model: hasattr(model, "_baseline_prediction"), histogram_boosted),
    (_starts_constant, gradient_boosted),
    (lambda model: type(model).__name__ in VOTED and type(model).__module__.startswith("sklearn."), voted),
)
