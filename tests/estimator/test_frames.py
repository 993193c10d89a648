"""Frames with words, categories, booleans, dates and gaps as X of SetpointClassifier, as they are."""

from __future__ import annotations

import datetime
import pickle
import warnings

import numpy as np
import pandas
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import setpoint as sp
from setpoint.data.layout import Block

CE = "cross-entropy"
ASK = "minimize fnr where fpr <= 10%"
DAY = datetime.date(2024, 1, 1)


def draw(size=600, seed=0):
    """A table whose target depends on a word, a weekday and whether an amount is missing."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "nurse", None], size)
    days = [DAY + datetime.timedelta(days=int(day)) for day in rng.integers(0, 28, size)]
    amount = [None if rng.random() < 0.3 else float(rng.normal()) for _ in range(size)]
    weekend = np.array([day.weekday() > 3 for day in days])
    score = 2.0 * (job == "nurse") + 2.0 * weekend + 2.0 * np.array([value is None for value in amount])
    frame = pl.DataFrame({
        "job": pl.Series(job.tolist(), dtype=pl.String), "day": days, "amount": pl.Series(amount, dtype=pl.Float64),
        "grade": rng.integers(1, 4, size), "member": rng.random(size) < 0.5, "noise": rng.normal(size=size),
    })  # fmt: skip
    return frame, (score + 0.3 * rng.normal(size=size) > 2.5).astype(int)


class Arrow:
    """A table that shows itself through the Arrow interface alone."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def as_pandas(frame):
    """The frame in pandas, with its usual types: object words, datetime64, float NaN."""
    columns = {c.name: c.to_list() for c in frame}
    return pandas.DataFrame(columns).astype({"day": "datetime64[ns]", "job": object})


FORMS = {"polars": lambda f: f, "pandas": as_pandas, "arrow": Arrow, "dict": lambda f: f.to_dict(as_series=False)}


@pytest.fixture(scope="module")
def trained():
    frame, y = draw()
    return sp.SetpointClassifier(ASK, solver=CE).fit(frame, y)


def test_words_dates_and_gaps_are_learned_from(trained):
    new, truth = draw(seed=1)
    assert roc_auc_score(truth, trained.decision_function(new)) > 0.93
    numbers = new.select("amount", "grade", "noise").fill_null(0.0).to_numpy()
    plain = sp.SetpointClassifier(ASK, solver=CE).fit(numbers, truth)
    assert roc_auc_score(truth, plain.decision_function(numbers)) < 0.7


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_frame_gives_the_same_model_and_scores(trained, form):
    frame, y = draw()
    new, _ = draw(seed=1)
    model = sp.SetpointClassifier(ASK, solver=CE).fit(FORMS[form](frame), y)
    expected = trained.decision_function(new)
    np.testing.assert_array_equal(model.decision_function(new), expected)
    np.testing.assert_array_equal(trained.decision_function(FORMS[form](new)), expected)
    assert list(model.feature_names_in_) == frame.columns
    assert model.n_features_in_ == 6


def test_a_row_is_scored_by_itself(trained):
    new, _ = draw(seed=1)
    together = trained.decision_function(new)
    for row in (0, 5, 599):
        assert trained.decision_function(new[row : row + 1])[0] == together[row]


def test_the_encoding_shows_its_blocks(trained):
    blocks = trained.model_.encoding.blocks
    assert blocks[:3] == [
        Block("job", "levels", 3),
        Block("day: days", "amount", 1),
        Block("day: weekday", "amount", 1),
    ]
    assert blocks[3:] == [
        Block("amount", "missable", 2), Block("grade", "amount", 1), Block("member", "levels", 2),
        Block("noise", "amount", 1),
    ]  # fmt: skip
    X = np.random.default_rng(0).normal(size=(200, 3))
    plain = sp.SetpointClassifier(ASK, solver=CE).fit(X, X[:, 0] > 0)
    assert [block.width for block in plain.model_.encoding.blocks] == [1, 1, 1]


@pytest.mark.parametrize("kind", ["category", "polars category", "kinds"])
def test_whole_numbers_are_categories_where_the_user_says_so(kind):
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 800)
    y, frame = np.isin(code, (0, 3)).astype(int), pl.DataFrame({"code": code, "x": rng.normal(size=800)})
    as_number = sp.SetpointClassifier(ASK, solver=CE).fit(frame, y)
    how = {"kinds": {"code": "categorical"}} if kind == "kinds" else {}
    if kind == "category":
        frame = pandas.DataFrame({"code": pandas.Series(code).astype("category"), "x": frame["x"].to_list()})
    if kind == "polars category":
        frame = frame.with_columns(pl.col("code").cast(pl.String).cast(pl.Categorical))
    model = sp.SetpointClassifier(ASK, solver=CE, **how).fit(frame, y)
    assert roc_auc_score(y, model.decision_function(frame)) > 0.99
    assert roc_auc_score(y, as_number.decision_function(pl.DataFrame({"code": code, "x": frame["x"].to_list()}))) < 0.6


def test_arrays_with_missing_numbers_know_that_they_are_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = rng.integers(0, 2, 600)
    X[(y == 1) & (rng.random(600) < 0.9), 1] = np.nan
    model = sp.SetpointClassifier(ASK, solver=CE).fit(X, y)
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    assert [block.kind for block in model.model_.encoding.blocks] == ["amount", "missable", "amount"]
    assert len(model.predict(X[:1])) == 1


def test_where_training_missed_nothing_the_mean_stands_in():
    X = np.random.default_rng(0).normal(size=(300, 2)) + 5
    model = sp.SetpointClassifier(ASK, solver=CE).fit(X, X[:, 0] > 5)
    mean = model.model_.encoding.mean.numpy()
    gap = model.decision_function([[np.nan, 5.0]])
    np.testing.assert_allclose(gap, model.decision_function([[mean[0], 5.0]]), atol=1e-5)


def test_arrays_of_words_are_taken_too():
    frame, y = draw()
    X = np.array(frame.select("job", "amount").rows(), dtype=object)
    model = sp.SetpointClassifier(ASK, solver=CE).fit(X, y)
    assert [block.name for block in model.model_.encoding.blocks] == ["x0", "x1"]
    assert set(model.predict(X)) == {0, 1}


def test_names_and_order_of_columns_are_held_to(trained):
    new, _ = draw(5)
    with pytest.raises(ValueError, match="feature names"):
        trained.predict(new.select(new.columns[::-1]))
    with pytest.raises(ValueError, match=r"feature names|features"):
        trained.predict(new.drop("job"))
    with pytest.raises(sp.SetpointError, match="'grade' held numbers in training but holds 'high'"):
        trained.predict(new.with_columns(grade=pl.lit("high")))


def test_columns_of_one_name_are_refused():
    frame, y = draw(100)
    same = as_pandas(frame)[["amount", "noise"]].set_axis(["a", "a"], axis=1)
    with pytest.raises(sp.SetpointError, match="more than one column named 'a'; rename them"):
        sp.SetpointClassifier(ASK, solver=CE).fit(same, y)


@pytest.mark.parametrize("kind", ["auto", "trees"])
def test_kinds_that_choose_by_held_out_rows_say_so_where_there_are_none(kind):
    frame, y = draw(100)
    said = f"'{kind}' chooses by held-out rows, and there are none; set held_out to a share"
    warnings.simplefilter("ignore", UserWarning)
    with pytest.raises(sp.SetpointError, match=said):
        sp.SetpointClassifier(ASK, module=kind).fit(frame, np.arange(100) == 0)
    for solver in ("auto", "default"):
        with pytest.raises(sp.SetpointError, match=said):
            sp.SetpointClassifier(ASK, solver=solver, module=kind, held_out=0).fit(frame, y)


def test_columns_of_no_use_are_named_in_a_warning():
    frame, y = draw(300)
    frame = frame.with_columns(name=pl.Series([f"name {i}" for i in range(300)]))
    with pytest.warns(UserWarning, match="column 'name' is not used: no value occurs twice"):
        sp.SetpointClassifier(ASK, solver=CE).fit(frame, y)
    model = sp.SetpointClassifier(ASK, solver=CE, kinds={"name": "hash"}).fit(frame, y)
    assert model.model_.encoding.blocks[-1].width == 256
    with pytest.raises(sp.SetpointError, match="no column 'nam' to take as hash; did you mean 'name'"):
        sp.SetpointClassifier(ASK, solver=CE, kinds={"nam": "hash"}).fit(frame, y)


def test_frames_go_through_clones_pickles_searches_and_pipelines(trained):
    frame, y = draw()
    again = pickle.loads(pickle.dumps(trained))
    np.testing.assert_array_equal(again.decision_function(frame), trained.decision_function(frame))
    assert clone(trained).get_params()["kinds"] is None
    assert cross_val_score(trained, as_pandas(frame), y, cv=2, scoring="roc_auc").mean() > 0.9
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]))
    assert len(make_pipeline(encoder, clone(trained)).fit(as_pandas(frame), y).predict(as_pandas(frame))) == 600


def test_weights_leave_rows_of_a_frame_out():
    frame, y = draw()
    weights = np.ones(600)
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    some = sp.SetpointClassifier(ASK, solver=CE).fit(frame, y, sample_weight=weights)
    other = sp.SetpointClassifier(ASK, solver=CE).fit(frame[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(some.decision_function(frame), other.decision_function(frame))
