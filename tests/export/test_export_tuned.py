"""Exported classifiers of scikit-learn, LightGBM and XGBoost decide as `Tuned` does, not at 0.5."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from skl2onnx import update_registered_converter
from skl2onnx.operator_converters.linear_classifier import convert_sklearn_linear_classifier
from skl2onnx.shape_calculators.linear_classifier import calculate_linear_classifier_output_shapes
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import setpoint as sp
from marks import quick_first
from setpoint.errors import BadFile, CannotExport

ASK = "minimize fnr where fpr <= 5%"
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(2000, 4))
Y = (X[:, 0] + X[:, 1] * X[:, 2] + DRAW.normal(size=len(X)) > 0).astype(int)
WORDS = pd.DataFrame({"x": X[:, 0], "word": DRAW.choice(["a", "b", "c"], len(X))})
BY_COLUMN = ColumnTransformer([("x", StandardScaler(), ["x"]), ("w", OneHotEncoder(handle_unknown="ignore"), ["word"])])
GAPS = WORDS.assign(x=WORDS["x"].where(WORDS["x"] < 1), z=X[:, 1], unused="a")
FILLED = ColumnTransformer(
    [
        ("x", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["x", "z"]),
        ("w", OneHotEncoder(handle_unknown="ignore"), ["word"]),
    ]
)
PASSED = ColumnTransformer([("w", OneHotEncoder(handle_unknown="ignore"), ["word"])], remainder="passthrough")
BOOSTED = LGBMClassifier(n_estimators=10, verbose=-1)
MODELS = {
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), X),
    "lightgbm": (LGBMClassifier(n_estimators=10, verbose=-1), np.where(X > 1.5, np.nan, X)),
    "histogram": (HistGradientBoostingClassifier(max_iter=10), np.where(X > 1.5, np.nan, X)),
    "columns": (make_pipeline(BY_COLUMN, LogisticRegression()), WORDS),
    "frame": (LogisticRegression(), WORDS[["x"]]),
    "forest": (RandomForestClassifier(10, max_depth=4, random_state=0), X),
    "xgboost": (XGBClassifier(n_estimators=10), X),
    "xgboost of named columns": (XGBClassifier(n_estimators=10), GAPS[["x", "z"]]),
    "missing values filled": (make_pipeline(FILLED, LogisticRegression()), GAPS),
    "words beside numbers as they are": (
        make_pipeline(PASSED, LogisticRegression()),
        GAPS.drop(columns="unused").fillna(0),
    ),
    "trees behind a pipeline": (make_pipeline(FILLED, RandomForestClassifier(10, max_depth=4, random_state=0)), GAPS),
    "lightgbm behind a pipeline": (make_pipeline(FILLED, BOOSTED), GAPS),
    "xgboost behind a pipeline": (make_pipeline(FILLED, XGBClassifier(n_estimators=10)), GAPS),
    "a pipeline of an array": (make_pipeline(SimpleImputer(), BOOSTED), np.where(X > 1.5, np.nan, X)),
    "linear support vectors": (LinearSVC(), X),
}


def feeds(x):
    if isinstance(x, np.ndarray):
        return {"X": x}
    words = ("word", "unused")
    return {name: x[name].to_numpy(dtype=object if name in words else float).reshape(-1, 1) for name in x}


@pytest.mark.parametrize("positive", quick_first([None, 0]))
@pytest.mark.parametrize("kind", MODELS)
def test_decisions_are_those_of_tuned(kind, positive, tmp_path):
    model, x = MODELS[kind]
    tuned = sp.Tuned(model, ASK, positive=positive).fit(x[:1000], Y[:1000])
    tried = sp.export_onnx(tuned, tmp_path / "model.onnx", x[1000:])
    assert tried.given == 1000
    session = onnxruntime.InferenceSession((tmp_path / "model.onnx").read_bytes())
    scores, decisions = session.run(["score", "decision"], feeds(x[1000:]))
    wanted = tuned.predict(x[1000:]) == (1 if positive is None else 0)
    assert (decisions == wanted).all()
    assert 0 < decisions.mean() < 0.5
    own = tuned.decision_function(x[1000:])
    # Some converters compute in float32.
    assert np.allclose(scores, own if positive is None else -own, rtol=1e-5, atol=1e-6)


TREES = {
    "tree": DecisionTreeClassifier(max_depth=4),
    "forest": RandomForestClassifier(10, max_depth=5, random_state=0),
    "extra trees": ExtraTreesClassifier(10, max_depth=5, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=10),
}


def session_at(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options)


@pytest.mark.parametrize("kind", quick_first([*TREES]))
def test_trees_of_scikit_learn_split_where_python_does(kind, tmp_path):
    x = X.round(1)
    tuned = sp.Tuned(TREES[kind], ASK).fit(x[:1000], Y[:1000])
    sp.export_onnx(tuned, tmp_path / "model.onnx", x[1000:])
    session = session_at(tmp_path / "model.onnx")
    halves = x + 0.05
    for rows in (halves, np.nextafter(halves, -np.inf), np.nextafter(halves, np.inf), np.nextafter(x, np.inf)):
        score, decision = session.run(["score", "decision"], {"X": rows})
        assert (decision == tuned.predict(rows)).all()
        np.testing.assert_allclose(score, tuned._scores(rows), rtol=1e-12)


@pytest.mark.parametrize("kind", quick_first([*MODELS, *TREES]))
def test_a_number_that_python_refuses_stops_the_graph(kind, tmp_path):
    model, x = MODELS.get(kind) or (TREES[kind], X)
    tuned = sp.Tuned(model, ASK).fit(x[:1000], Y[:1000])
    sp.export_onnx(tuned, tmp_path / "model.onnx", x[1000:])
    session = session_at(tmp_path / "model.onnx")
    for odd in (np.nan, np.inf, -np.inf):
        rows = x[:50].copy()
        if isinstance(rows, np.ndarray):
            rows[7, 1] = odd
        else:
            rows.loc[7, "x"] = odd
        try:
            wanted = tuned.predict(rows)
        except ValueError:
            with pytest.raises(Exception, match="Out of range value in index tensor"):
                session.run(["decision"], feeds(rows))
        else:
            assert (session.run(["decision"], feeds(rows))[0] == wanted).all()


def test_numbers_next_to_zero_are_zero_for_lightgbm(tmp_path):
    x = np.where(X[:, :1] > 0, X[:, :1], np.where(X[:, :1] < -1, X[:, :1], 0.0))
    tuned = sp.Tuned(LGBMClassifier(n_estimators=20, verbose=-1), "minimize fnr where fpr <= 50%").fit(
        x, x[:, 0] > -0.5
    )
    sp.export_onnx(tuned, tmp_path / "model.onnx", x)
    tiny = np.array([[side * size] for side in (-1, 1) for size in (1e-36, float(np.float32(1e-35)), 1.1e-35, 1e-34)])
    score = session_at(tmp_path / "model.onnx").run(["score"], {"X": tiny})[0]
    np.testing.assert_allclose(score, tuned._scores(tiny), rtol=1e-12)
    assert len(set(tuned._scores(tiny))) > 1


def test_rows_that_one_side_alone_decides_are_no_export(tmp_path):
    class Wary(LogisticRegression):
        def decision_function(self, X):
            if (np.abs(X) > 1e6).any():
                raise ValueError("beyond belief")
            return super().decision_function(X)

    Wary.__module__, Wary.__name__ = LogisticRegression.__module__, "LogisticRegression"
    update_registered_converter(
        Wary, "Wary", calculate_linear_classifier_output_shapes, convert_sklearn_linear_classifier,
        options={"zipmap": [True, False], "raw_scores": [True, False], "nocl": [True, False]},
    )  # fmt: skip
    tuned = sp.Tuned(Wary(), ASK).fit(X, Y)
    with pytest.raises(CannotExport, match=r"Python refuses rows such as .* which the exported model decides"):
        sp.export_onnx(tuned, tmp_path / "model.onnx", X)


def test_groups_and_classes_are_decided_alike(tmp_path):
    groups = np.where(X[:, 3] > 0, "north", "south")
    tuned = sp.Tuned(LogisticRegression(), "minimize error where recall.gap(site) <= 2%").fit(X, Y, groups=groups)
    sp.export_onnx(tuned, tmp_path / "groups.onnx", X)
    session = onnxruntime.InferenceSession((tmp_path / "groups.onnx").read_bytes())
    _, found = session.run(["score", "decision"], {"X": X, "group": groups.astype(object).reshape(-1, 1)})
    assert (found == tuned.predict(X, groups=groups)).all()
    several = sp.Tuned(LogisticRegression(), "maximize accuracy").fit(X, Y + (X[:, 3] > 1))
    sp.export_onnx(several, tmp_path / "classes.onnx", X)
    session = onnxruntime.InferenceSession((tmp_path / "classes.onnx").read_bytes())
    assert (session.run(["decision"], {"X": X})[0] == several.predict(X)).all()
    held = {each.key: each.value for each in onnx.load(tmp_path / "classes.onnx").metadata_props}
    assert held["setpoint.classes"] == '["0", "1", "2"]'


def test_what_cannot_be_exported_is_refused(tmp_path):
    tuned = sp.Tuned(LogisticRegression(), ASK).fit(X, Y)
    with pytest.raises(CannotExport, match="give example="):
        sp.export_onnx(tuned, tmp_path / "model.onnx")
    with pytest.raises(BadFile, match=r"ends in \.pkl"):
        sp.export_onnx(tuned, tmp_path / "model.pkl", X)
    with pytest.raises(CannotExport, match="got LogisticRegression"):
        sp.export_onnx(LogisticRegression(), tmp_path / "model.onnx", X)
    own = type("Own", (LogisticRegression,), {})
    with pytest.raises(CannotExport, match="Own cannot be converted to ONNX"):
        sp.export_onnx(sp.Tuned(own(), ASK).fit(X, Y), tmp_path / "model.onnx", X)
    assert list(tmp_path.iterdir()) == []
