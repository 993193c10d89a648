"""A classifier of scikit-learn, LightGBM or XGBoost with the threshold of `Tuned`, as one ONNX model.

LightGBM and the trees of scikit-learn are read here, in float64, at the end of a pipeline, too. All other models, and
the first steps of pipelines, are converted by skl2onnx or onnxmltools; the decision is added.
"""

from __future__ import annotations

import copy
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
    found = _found(graph, model, given)
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


def _found(graph: Graph, model: Any, given: list[Input]) -> str:
    """The decision function or the probabilities of a model, float64 `(n, K)`."""
    own = _reader(model)
    if own is not None:
        return own(graph, model, _joined(graph, given))
    # Trees at the end of a pipeline are read as trees alone are; its first steps are converted.
    last = model[-1] if hasattr(model, "steps") and len(model) > 1 else model
    own = _reader(last)
    if last is not model and (own is not None or _is_xgboost(last)):
        x = _converted(graph, model[:-1], given, "transformed")
        return own(graph, last, x) if own else _converted(graph, last, [Input(x, x, "number", last.n_features_in_)])
    return _converted(graph, model, given)


def _reader(model: Any) -> Callable[[Graph, Any, str], str] | None:
    return next((own for is_own, own in READERS if is_own(model)), None)


def _is_xgboost(model: Any) -> bool:
    return type(model).__module__.startswith("xgboost")


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


def _converted(graph: Graph, model: Any, given: list[Input], prefix: str = "converted") -> str:
    """The decision function or the probabilities of a model, or its features, by its converter; float64."""
    by_column = _takes_columns(model)
    own = given if by_column else [Input("X", "X", "number", _width(given))]
    names = {} if by_column else {"X": _joined(graph, given)}
    failures = []
    for kind in (DOUBLE, FLOAT):
        try:
            found = _convert(model, own, kind)
            session_of(found.SerializeToString())
        except Exception as cause:
            # Converters raise anything; those that know no float64 are tried in float32.
            if isinstance(cause, ImportError):
                raise
            failures.append(str(cause).strip().splitlines()[0][:200] if str(cause).strip() else repr(cause))
            continue
        return _grafted(
            graph, found, {each.name: (names.get(each.name, each.name), each.kind) for each in own}, kind, prefix
        )
    raise CannotExport(f"{type(model).__name__} cannot be converted to ONNX: {failures[-1]}")


def _width(given: list[Input]) -> int:
    return sum(each.width for each in given)


def _takes_columns(model: Any) -> bool:
    """Whether a model takes columns by name: a pipeline that starts with a ColumnTransformer."""
    first = model.steps[0][1] if hasattr(model, "steps") else model
    return hasattr(first, "transformers_")


def _convert(model: Any, given: list[Input], kind: int) -> Any:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    xgboost = _is_xgboost(model)
    convert, types = _xgboost_converter() if xgboost else _sklearn_converter()
    number = types.DoubleTensorType if kind == DOUBLE else types.FloatTensorType
    inputs = [
        (each.name, types.StringTensorType([None, 1]) if each.kind == "words" else number([None, each.width]))
        for each in given
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if xgboost:
            return convert(_without_names(model), initial_types=inputs, target_opset=15)
        options: dict[str, bool] = {"raw_scores": True} if hasattr(last, "decision_function") else {}
        classifies = hasattr(last, "classes_")
        settings = {
            "initial_types": inputs, "target_opset": {**OPSETS, ML: CONVERTED if classifies else OPSETS[ML]},
        }  # fmt: skip
        if not classifies:
            return convert(model, **settings)
        try:
            return convert(model, options={id(last): {"zipmap": False, **options}}, **settings)
        except NameError:
            # A few classifiers, such as LinearSVC, know no such option.
            return convert(model, options={id(last): options}, **settings)


def _parts(model: Any) -> list[Any]:
    """A model and, of pipelines and of ColumnTransformers, all their steps."""
    steps = [step for _, step, *_ in getattr(model, "transformers_", None) or getattr(model, "steps", [])]
    return [model, *(part for step in steps for part in _parts(step))]


def _is_plain(imputer: Any) -> bool:
    """Whether an imputer puts numbers in the place of NaN and does nothing else."""
    numbers = imputer.statistics_.dtype.kind == "f" and bool(np.isfinite(imputer.statistics_).all())
    return numbers and isinstance(imputer.missing_values, float) and not imputer.add_indicator


def _filled(scope: Any, operator: Any, container: Any) -> None:
    """An imputer in the precision of its inputs; skl2onnx has it in float32 alone."""
    imputer, kind = operator.raw_operator, operator.inputs[0].type
    given = [each.full_name for each in operator.inputs]
    if not _is_plain(imputer) or type(kind).__name__ != "DoubleTensorType":
        from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer  # noqa: PLC0415

        convert_sklearn_imputer(scope, operator, container)
        return
    fill, values, odd = (scope.get_unique_variable_name(name) for name in ("fill", "values", "odd"))
    container.add_initializer(fill, DOUBLE, [1, len(imputer.statistics_)], imputer.statistics_.tolist())
    container.add_node("Concat", given, values, axis=1)
    container.add_node("IsNaN", values, odd)
    container.add_node("Where", [odd, fill, values], operator.outputs[0].full_name)


def _without_names(model: Any) -> Any:
    """A classifier of XGBoost whose columns have no names: the converter knows none but f0, f1, ..."""
    model = copy.deepcopy(model)
    booster = model.get_booster()
    booster.feature_names = None
    booster.feature_types = None if booster.feature_types is None or "c" not in booster.feature_types else _no_levels()
    return model


def _no_levels() -> Any:
    raise CannotExport("categories of pandas are known to XGBoost alone; give their codes, or use setpoint fit")


def _sklearn_converter() -> tuple[Any, Any]:
    """The function that converts a model, and the types of its inputs."""
    try:
        from skl2onnx import convert_sklearn  # noqa: PLC0415
        from skl2onnx.common import data_types  # noqa: PLC0415
        from skl2onnx.shape_calculators.imputer import calculate_sklearn_imputer_output_shapes  # noqa: PLC0415
    except ImportError as cause:
        raise missing("skl2onnx", "export", cause) from None

    def convert(model: Any, **settings: Any) -> Any:
        imputers = {type(each) for each in _parts(model) if type(each).__name__ == "SimpleImputer"}
        found = convert_sklearn(
            model, custom_shape_calculators=dict.fromkeys(imputers, calculate_sklearn_imputer_output_shapes),
            custom_conversion_functions=dict.fromkeys(imputers, _filled), **settings,
        )  # fmt: skip
        for each in found.opset_import:
            # It names the oldest version that knows its operators; they mean the same in ours.
            each.version = settings["target_opset"].get(each.domain, each.version)
        return found

    return convert, data_types


def _xgboost_converter() -> tuple[Any, Any]:
    try:
        from onnxmltools import convert_xgboost  # noqa: PLC0415
        from onnxmltools.convert.common import data_types  # noqa: PLC0415
    except ImportError as cause:
        raise missing("onnxmltools", "export", cause) from None
    return convert_xgboost, data_types


def _grafted(graph: Graph, found: Any, names: dict[str, tuple[str, str]], kind: int, prefix: str) -> str:
    """Add the nodes of another model to a graph, with names of their own; its last output, float64 `(n, K)`.

    `names` has the value and the kind of each input; the last output of a classifier are its scores.
    """
    cast = {
        name: graph.cast(own, kind) if kind == FLOAT and what != "words" else own for name, (own, what) in names.items()
    }
    rename: Callable[[str], str] = lambda name: cast.get(name) or (f"{prefix}/{name}" if name else "")  # noqa: E731
    graph.adopt(found, rename)
    return graph.cast(rename(found.graph.output[-1].name), DOUBLE)


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
