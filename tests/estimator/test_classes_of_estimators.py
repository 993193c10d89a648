"""`SetpointClassifier` and `Tuned` with more than two classes."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

import setpoint as sp
from marks import quick_first, slow
from setpoint.errors import BadLabels, BadSetting

X, CODES = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])
Y = NAMES[CODES]
ASK = "maximize macro recall where recall of class barolo >= 80%"


@pytest.fixture(autouse=True)
def _no_warnings_of_few_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


WAYS = {
    "linear": {},
    "mlp": {"module": "mlp", "epochs": 30},
    "trees": {"module": "trees"},
    "implicit": {"solver": "implicit", "epochs": 60},
    "cross-entropy": {"solver": "cross-entropy"},
}


@pytest.mark.parametrize("how", quick_first(WAYS.values(), 2))
def test_a_classifier_of_three_classes(how):
    ask = "maximize macro recall where coverage of class barolo <= 60%" if how.get("solver") == "implicit" else ASK
    classifier = sp.SetpointClassifier(ask, confidence=None, **how).fit(X, Y)
    assert classifier.classes_.tolist() == sorted(NAMES)
    assert list(classifier.threshold_) == sorted(NAMES)
    predicted, scores = classifier.predict(X), classifier.decision_function(X)
    assert scores.shape == (178, 3)
    assert (classifier.classes_[scores.argmax(1)] == predicted).all()
    assert (predicted == Y).mean() > 0.85
    chances = classifier.predict_proba(X)
    assert chances.sum(1) == pytest.approx(np.ones(178))
    assert (chances.argmax(1) == scores.argmax(1)).all()
    judged = classifier.judge(X, Y)
    assert judged.objective == pytest.approx(np.mean([(predicted[name == Y] == name).mean() for name in NAMES]))
    assert classifier.score(X, Y) >= judged.objective - 0.02
    assert classifier.check(X, Y).holds
    assert any(row["name"] == "cross-entropy" for row in classifier.comparison_)


@slow
@pytest.mark.parametrize(
    "model", [LogisticRegression(max_iter=5000), RandomForestClassifier(random_state=0), LinearSVC()]
)
@pytest.mark.parametrize("cv", [None, 3])
def test_any_model_of_three_classes_is_tuned(model, cv):
    tuned = sp.Tuned(model, ASK, cv=cv).fit(X, Y)
    assert tuned.predict(X).shape == (178,)
    assert (tuned.predict(X) == Y).mean() > 0.8
    assert (tuned.classes_[tuned.decision_function(X).argmax(1)] == tuned.predict(X)).all()


def test_a_fitted_model_gets_shifts_and_a_certificate():
    model = RandomForestClassifier(random_state=0).fit(X[::2], Y[::2])
    tuned = sp.Tuned(model, "minimize error where recall of class barolo >= 70%", confidence=0.9).fit(X[1::2], Y[1::2])
    assert tuned.estimator_ is model
    assert tuned.operating_point_.certificate.statement == "recall of class barolo >= 70%"


def test_classes_by_numbers_two_classes_and_errors_alone():
    by_number = sp.Tuned(LogisticRegression(max_iter=5000), "maximize recall of class 2").fit(X, CODES)
    assert set(by_number.predict(X)) <= {0, 1, 2}
    errors = sp.Tuned(LogisticRegression(max_iter=5000), "minimize error").fit(X, Y)
    assert errors.operating_point_.classes == tuple(sorted(NAMES))
    two = sp.Tuned(LogisticRegression(max_iter=5000), "maximize macro recall").fit(X, CODES > 0)
    assert two.decision_function(X).shape == (178,)
    assert ((two.decision_function(X) > 0) == two.predict(X)).all()


@slow
def test_scikit_learn_knows_whether_more_than_two_classes_are_taken():
    assert get_tags(sp.SetpointClassifier(ASK)).classifier_tags.multi_class
    assert get_tags(sp.Tuned(LinearSVC(), "minimize error")).classifier_tags.multi_class
    assert not get_tags(sp.SetpointClassifier("minimize fnr where fpr <= 5%")).classifier_tags.multi_class
    search = GridSearchCV(sp.Tuned(LogisticRegression(max_iter=5000), ASK), {"estimator__C": [0.1, 1.0]}, cv=2)
    assert search.fit(X, Y).best_score_ > 0.8


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: sp.SetpointClassifier(ASK, positive="barolo").fit(X, Y), BadSetting, "is about all; leave it out"),
        (lambda: sp.Tuned(LinearSVC(), ASK, positive="barolo").fit(X, Y), BadSetting, "is about all; leave it out"),
        (lambda: sp.SetpointClassifier(ASK).fit(X[:50], Y[:50]), BadLabels, "one class"),
        (lambda: sp.SetpointClassifier().fit(X, Y), BadLabels, "Only binary classification is supported"),
        (lambda: sp.SetpointClassifier(ASK).fit(X, Y).judge(X, CODES), BadLabels, "but the classes are"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()
