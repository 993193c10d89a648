"""`SetpointClassifier` and `Tuned` for asks that count the values of columns, such as amounts."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import setpoint as sp
from setpoint.errors import BadWeights, ShapeMismatch

ASK = "minimize cost(miss=amount, alarm=5)"
BOUNDED = "maximize recall weighted by amount where fpr <= 20%"
pytestmark = pytest.mark.filterwarnings("ignore")


def draw(size=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 2))
    amounts = random.lognormal(2, 1, size)
    return X, (X[:, 0] + random.normal(size=size) > 1).astype(int), amounts


X, Y, AMOUNTS = draw()


def make(name, ask):
    if name == "tuned":
        return sp.Tuned(LogisticRegression(), ask)
    return sp.SetpointClassifier(
        ask, solver="cross-entropy", **({"module": "mlp", "epochs": 5} if name == "mlp" else {})
    )


@pytest.mark.parametrize("name", ["linear", "mlp", "tuned"])
def test_the_threshold_has_the_least_cost_of_all_cuts_by_amount(name):
    fitted = make(name, ASK).fit(X, Y, values={"amount": AMOUNTS})
    judged, scores = fitted.judge(X, Y, values={"amount": AMOUNTS}), fitted._scores(X)

    def cost(flagged):
        return float(np.mean(np.where(Y == 1, AMOUNTS * ~flagged, 5.0 * flagged)))

    assert judged.objective == pytest.approx(cost(fitted.predict(X) == 1))
    best = min(cost(scores > cut) for cut in [-np.inf, *scores])
    assert -fitted.score(X, Y, values={"amount": AMOUNTS}) == pytest.approx(best)
    assert judged.objective < min(cost(np.full(len(Y), flagged)) for flagged in (False, True))


def test_bounds_are_kept_and_checked_with_values_beside_them():
    fitted = sp.SetpointClassifier(BOUNDED, confidence=0.9).fit(X, Y, values={"amount": AMOUNTS})
    assert fitted.operating_point_.certificate is not None
    point, flagged = fitted.judge(X, Y, values={"amount": AMOUNTS}), fitted.predict(X) == 1
    assert point.objective == pytest.approx(AMOUNTS[flagged & (Y == 1)].sum() / AMOUNTS[Y == 1].sum())
    assert fitted.check(X, Y, values={"amount": AMOUNTS}).holds


def test_values_come_from_a_frame_too_and_weights_stand_beside_them():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "amount": AMOUNTS})
    by_name, given = (
        sp.SetpointClassifier(ASK, solver="cross-entropy").fit(frame, Y, **more)
        for more in ({}, {"values": {"amount": AMOUNTS}})
    )
    assert by_name.threshold_ == given.threshold_
    assert (by_name.predict(frame) == given.predict(frame)).all()
    twice = np.where(Y == 1, 2.0, 1.0)
    rows = np.repeat(np.arange(len(Y)), twice.astype(int))
    weighted = by_name.judge(frame, Y, sample_weight=twice).objective
    assert weighted == pytest.approx(by_name.judge(frame.iloc[rows], Y[rows]).objective)


def test_cross_validation_routes_a_frame_of_values():
    values = pd.DataFrame({"amount": AMOUNTS})
    with sklearn.config_context(enable_metadata_routing=True):
        model = make("tuned", ASK).set_fit_request(values=True).set_score_request(values=True)
        found = cross_val_score(model, X, Y, cv=2, params={"values": values})
    assert (found < 0).all()


def test_a_model_that_breaks_its_bounds_scores_below_every_cost():
    ask = "minimize cost(miss=amount, alarm=5) where recall >= 90% and fpr <= 1%"
    fitted = sp.Tuned(LogisticRegression(), ask).fit(X, Y, values={"amount": AMOUNTS})
    assert fitted.score(X, Y, values={"amount": AMOUNTS}) < -1e6


@pytest.mark.parametrize("name", ["linear", "tuned"])
def test_values_that_are_missing_or_do_not_fit_are_refused(name):
    with pytest.raises(BadWeights, match="counts the values of 'amount'; pass values="):
        make(name, ASK).fit(X, Y)
    with pytest.raises(ShapeMismatch, match="599 for 600 rows"):
        make(name, ASK).fit(X, Y, values={"amount": AMOUNTS[1:]})
    with pytest.raises(BadWeights, match="counts the values of no column"):
        make(name, "maximize f_score(1)").fit(X, Y, values={"amount": AMOUNTS})
    fitted = make(name, ASK).fit(X, Y, values={"amount": AMOUNTS})
    with pytest.raises(BadWeights, match="pass values="):
        fitted.score(X, Y)
