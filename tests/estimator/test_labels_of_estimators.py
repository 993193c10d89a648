"""Several labels by the doors of scikit-learn: Y with one column per label."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import setpoint as sp
from label_tables import ASK, ASKS, NAMES, label_arrays
from marks import quick_first
from setpoint.errors import BadLabels, BadProblem, BadSetting, ShapeMismatch, TooFewSamples

TIGHT = "minimize fnr where fpr <= 1%"
X, GAPS = label_arrays(600)
Y = np.nan_to_num(label_arrays(600, missing=0.0)[1]).astype(int)


@pytest.fixture(autouse=True)
def _no_warnings_of_few_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


WAYS = {
    "linear": {"solver": "default"},
    "mlp": {"module": "mlp", "epochs": 5},
    "auto": {},
    "trees": {"module": "trees"},
    "implicit": {"solver": "implicit", "epochs": 20},
}


@pytest.mark.parametrize("way", quick_first(WAYS, 2))
def test_a_classifier_of_three_labels(way):
    classifier = sp.SetpointClassifier(ASK, confidence=None, **WAYS[way]).fit(X, Y)
    predicted, margins = classifier.predict(X), classifier.decision_function(X)
    assert predicted.shape == margins.shape == classifier.predict_proba(X).shape == Y.shape
    assert ((margins > 0) == predicted).all()
    assert ((classifier.predict_proba(X) > 0.5) == predicted).all()
    assert [known.tolist() for known in classifier.classes_] == [[0, 1]] * 3
    judged = classifier.judge(X, Y)
    assert judged.objective == pytest.approx(1 - recall_score(Y, predicted, average="macro"))
    assert -classifier.score(X, Y) <= judged.objective + 0.05
    assert len(classifier.check(X, Y).bounds) == 3
    assert any("ross" in row["name"] for row in classifier.comparison_)


def test_a_dict_of_asks_with_gaps_and_a_certificate():
    asks = {**ASKS, "threat": "minimize fpr where recall >= 50%"}
    classifier = sp.SetpointClassifier(asks, solver="default", confidence=0.9).fit(X, GAPS)
    assert list(classifier.threshold_) == list(NAMES)
    assert classifier.operating_point_.certificate.confidence == 0.9
    assert clone(classifier).get_params()["ask"] == asks
    objects = np.where(np.isnan(GAPS), None, GAPS)
    again = sp.SetpointClassifier(asks, solver="default", confidence=0.9).fit(X, objects)
    assert again.threshold_ == classifier.threshold_


def test_the_columns_of_a_frame_name_the_labels_in_any_order():
    frame = pd.DataFrame(GAPS, columns=list(NAMES))
    one = sp.SetpointClassifier(ASKS, solver="cross-entropy", confidence=None).fit(X, frame)
    other = sp.SetpointClassifier(ASKS, solver="cross-entropy", confidence=None).fit(X, frame[list(reversed(NAMES))])
    assert list(other.threshold_) == list(reversed(NAMES))
    assert set(one.threshold_) == set(other.threshold_)
    assert one.judge(X, frame).rates == pytest.approx(one.judge(X, frame[list(reversed(NAMES))]).rates)
    assert sp.SetpointClassifier(ASK, solver="cross-entropy").fit(X, frame).operating_point_.labels == NAMES


def test_weights_and_sparse_labels():
    weights = np.where(np.arange(600) % 3, 1.0, 0.0)
    kept = weights > 0
    one = sp.SetpointClassifier(ASK, solver="cross-entropy", confidence=None).fit(X, Y, sample_weight=weights)
    other = sp.SetpointClassifier(ASK, solver="cross-entropy", confidence=None).fit(
        X[kept], scipy.sparse.csr_array(Y[kept])
    )
    assert one.threshold_ == pytest.approx(other.threshold_, abs=1e-5)


def test_cross_validation_scores_the_mean_over_labels():
    scores = cross_val_score(sp.SetpointClassifier(ASK, solver="cross-entropy", confidence=None), X, Y, cv=2)
    assert ((scores > -0.6) & (scores < 0)).all()


MODELS = {
    "one against the rest": OneVsRestClassifier(LogisticRegression()),
    "several outputs": MultiOutputClassifier(LogisticRegression()),
    "forest": RandomForestClassifier(20, random_state=0),
    "network": MLPClassifier((8,), max_iter=30, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cv", [None, 2, "prefit"])
def test_any_model_of_labels_is_tuned(name, cv):
    model = clone(MODELS[name])
    if cv == "prefit":
        model.fit(X[:300], Y[:300])
    tuned = sp.Tuned(model, ASK, cv=cv).fit(X[300:], Y[300:])
    predicted = tuned.predict(X)
    assert predicted.shape == Y.shape
    assert ((tuned.decision_function(X) > 0) == predicted).all()
    assert tuned.judge(X, Y).objective == pytest.approx(1 - recall_score(Y, predicted, average="macro"))
    own = model if cv == "prefit" else tuned.estimator_
    given = own.predict_proba(X)
    theirs = np.stack([part[:, 1] for part in given], 1) if isinstance(given, list) else given
    cuts = np.array(list(tuned.threshold_.values()))
    if not hasattr(own, "decision_function"):
        assert ((theirs > cuts) == predicted).all()


def test_a_fitted_model_is_certified_on_labels_with_gaps():
    model = OneVsRestClassifier(LogisticRegression()).fit(X[:200], Y[:200])
    tuned = sp.Tuned(model, ASKS, cv="prefit", confidence=0.9).fit(X[200:], GAPS[200:])
    assert tuned.operating_point_.certificate.method.startswith("2 labels share the error probability")


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (BadLabels, "holds 0 and 1", lambda: sp.SetpointClassifier(ASK).fit(X, Y + 1)),
        (BadLabels, "holds 0 and 1", lambda: sp.SetpointClassifier(ASK).fit(X, np.where(Y, "yes", "no"))),
        (ShapeMismatch, "one column per label", lambda: sp.SetpointClassifier(ASKS).fit(X, Y[:, 0])),
        (ShapeMismatch, "2 columns", lambda: sp.SetpointClassifier(ASKS).fit(X, Y[:, :2])),
        (BadProblem, "has no ask", lambda: sp.SetpointClassifier(ASKS).fit(X, pd.DataFrame(Y, columns=list("abc")))),
        (BadSetting, "positive", lambda: sp.SetpointClassifier(ASK, positive=1).fit(X, Y)),
        (BadLabels, "not known", lambda: sp.Tuned(RandomForestClassifier(), ASK).fit(X, GAPS)),
        (BadSetting, "no score for each", lambda: sp.Tuned(SVC().fit(X, Y[:, 0]), ASK).fit(X, Y)),
        (TooFewSamples, "label '0'", lambda: sp.SetpointClassifier(TIGHT, confidence=0.95).fit(X, Y)),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(error, said, call):
    with pytest.raises(error, match=said):
        call()
