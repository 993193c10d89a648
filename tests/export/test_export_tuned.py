"""Exported classifiers of scikit-learn, LightGBM and XGBoost decide as `Tuned` does, not at 0.5."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
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
MODELS = {
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), X),
    "lightgbm": (LGBMClassifier(n_estimators=10, verbose=-1), np.where(X > 1.5, np.nan, X)),
    "histogram": (HistGradientBoostingClassifier(max_iter=10), np.where(X > 1.5, np.nan, X)),
    "columns": (make_pipeline(BY_COLUMN, LogisticRegression()), WORDS),
    "frame": (LogisticRegression(), WORDS[["x"]]),
    "forest": (RandomForestClassifier(10, max_depth=4, random_state=0), X),
    "xgboost": (XGBClassifier(n_estimators=10), X),
}


def feeds(x):
    if isinstance(x, np.ndarray):
        return {"X": x}
    return {name: x[name].to_numpy(dtype=object if name == "word" else float).reshape(-1, 1) for name in x}


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
    assert np.allclose(scores, own if positive is None else -own, rtol=1e-5)


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
