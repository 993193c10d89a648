import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

import setpoint as sp
from marks import slow


def rows_of_patients(n=120):
    draw = np.random.default_rng(0)
    patients = np.repeat(np.arange(n), 5)
    y = draw.integers(0, 2, 5 * n)
    return draw.normal(size=(5 * n, 2)) + 2 * y[:, None] + draw.normal(size=n)[patients, None], y, patients


@slow
def test_clusters_stay_together_and_are_certified(recwarn):
    X, y, patients = rows_of_patients()
    model = sp.SetpointClassifier("minimize fnr where fpr <= 20%", confidence=0.9, random_state=0)
    model.fit(X, y, clusters=patients)
    assert model.operating_point_.certificate.statement == "fpr <= 20%, for a random row of a random cluster"
    assert model.operating_point_.certificate.samples <= 24
    with pytest.raises(sp.SetpointError, match="clusters have shape"):
        model.fit(X, y, clusters=patients[:3])
    tuned = sp.Tuned(LogisticRegression(), "minimize fnr where fpr <= 20%", confidence=0.9, random_state=0)
    assert "random cluster" in tuned.fit(X, y, clusters=patients).operating_point_.certificate.statement
    assert sp.Tuned(LogisticRegression(), "maximize f1", cv=3).fit(X, y, clusters=patients).operating_point_.feasible
    with config_context(enable_metadata_routing=True):
        routed = Pipeline([("model", model.set_fit_request(clusters=True))])
        assert "random cluster" in routed.fit(X, y, clusters=patients)[0].operating_point_.certificate.statement
