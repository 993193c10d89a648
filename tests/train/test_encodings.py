"""Columns whose encoding the labels choose: whole numbers as levels too, words by the target."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

import setpoint as sp
from setpoint.data.column import Categorical, Numeric
from setpoint.data.layout import Layout
from setpoint.data.schema import Schema, Target
from setpoint.data.split import split
from setpoint.data.target_mean import TargetMean, Truth
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.encodings import LEAST_ROWS, choose_encodings
from setpoint.train.scoring import score_rows

ROWS = 1500


def drawn(signal=True, seed=0, rows=ROWS):
    """Months that matter by their name, grades that matter in order, zips of which each has its own odds."""
    draw = np.random.default_rng(seed)
    month, grade = draw.integers(1, 13, rows), draw.integers(1, 6, rows)
    zips = draw.integers(0, 300, rows)
    own = 1.5 * draw.normal(size=300)[zips] + np.where(np.isin(month, (2, 7, 11)), 2.0, 0.0) + 0.4 * grade
    y = draw.random(rows) < 1 / (1 + np.exp(2.5 - own * signal))
    return pl.DataFrame({"month": month, "grade": grade, "zip": [f"z{z}" for z in zips], "y": y.astype(int)})


def chosen(frame, asked=None):
    target = Target.of(frame, "y")
    schema = Schema.of(frame, target, kinds=asked)
    return choose_encodings(schema, frame, Truth(target.labels(frame).numpy()), asked or {})


def by_name(schema):
    return {column.name: column for column in schema.columns}


def test_levels_are_added_where_they_tell_more_than_the_amount():
    schema, notes = chosen(drawn())
    found = by_name(schema)
    assert isinstance(found["month"], Numeric)
    assert found["month"].levels == tuple(map(float, range(1, 13)))
    assert found["grade"].levels == ()
    assert isinstance(found["zip"], TargetMean)
    assert len(notes) == 2
    assert "'month' have a feature each" in notes[1]


@pytest.mark.parametrize("seed", range(3))
def test_noise_changes_nothing(seed):
    schema, notes = chosen(drawn(signal=False, seed=seed))
    found = by_name(schema)
    assert notes == []
    assert isinstance(found["zip"], Categorical)
    assert found["month"].levels == found["grade"].levels == ()


def test_columns_that_the_user_named_stay():
    frame = drawn()
    schema, notes = chosen(frame, {"month": "numeric", "zip": "hash"})
    assert notes == []
    assert schema == Schema.of(frame, Target.of(frame, "y"), kinds={"month": "numeric", "zip": "hash"})


def test_trees_read_the_amount_alone_and_unknown_values_have_no_level():
    column = Numeric("month", 6.0, 3.0, 1.0, 12.0, missing=True, levels=(1.0, 2.0))
    x = column.encode(pl.Series("month", [1.0, 2.0, None, 7.0]))
    assert x[:, 2:].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    plain = Numeric("month", 6.0, 3.0, 1.0, 12.0, missing=True)
    np.testing.assert_array_equal(x[:, :2], plain.encode(pl.Series("month", [1.0, 2.0, None, 7.0])))
    values = [Layout(one.blocks).values(one.encode(pl.Series("m", [1.0, None]))) for one in (column, plain)]
    np.testing.assert_array_equal(*values)


def test_rare_values_have_no_level():
    frame = drawn()
    months = frame["month"].to_numpy().copy()
    months[np.flatnonzero(months == 2)[LEAST_ROWS - 1 :]] = 3
    schema, _ = chosen(frame.with_columns(month=pl.Series(months)))
    assert 2.0 not in by_name(schema)["month"].levels
    assert 7.0 in by_name(schema)["month"].levels


def test_too_few_rows_or_more_features_than_rows_change_nothing():
    frame = drawn()
    few = frame.with_columns(y=pl.Series([1] * 9 + [0] * (ROWS - 9)))
    assert chosen(few)[1] == []
    wide = frame.head(60).hstack(pl.DataFrame(np.random.default_rng(0).normal(size=(60, 70))))
    assert chosen(wide)[1] == []


@pytest.fixture(scope="module")
def run():
    ask = sp.ask("maximize precision over recall in [50%, 90%] with 5 points")
    return fit_table(drawn(rows=2 * ROWS), "y", ask, Settings(model="linear", solver="cross-entropy", confidence=None))


def test_a_run_trains_on_values_out_of_fold_and_says_so(run):
    assert isinstance(by_name(run.schema)["zip"], TargetMean)
    assert sum("cross-validates better" in note for note in run.notes) == 2
    frame, labels = drawn(rows=2 * ROWS), run.schema.labels(drawn(rows=2 * ROWS))
    own = split(labels, run.settings.shares, run.settings.seed)[0]
    train, truth = frame[own.numpy()], Truth(labels[own].numpy())
    plain = run.schema.encode(train)
    scores = run.chosen.sample("train").scores
    assert torch.equal(scores, score_rows(run.chosen.trained.model, run.schema.of_training(plain, train, truth)))
    assert not torch.equal(scores, score_rows(run.chosen.trained.model, plain))


def test_the_estimator_encodes_words_by_the_target_too():
    frame = drawn(rows=400)
    model = sp.SetpointClassifier(
        "minimize fnr where fpr <= 20%", solver=sp.CrossEntropy(), epochs=2, confidence=None,
        kinds={"zip": "target-encode"},
    )  # fmt: skip
    model.fit(frame.drop("y", "month"), frame["y"].to_numpy())
    columns = model.model_.encoding.columns.columns
    assert [type(column) for column in columns] == [Numeric, TargetMean]
    scores = model.decision_function(frame.drop("y", "month"))
    alone = np.concatenate([model.decision_function(frame.drop("y", "month")[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(alone, scores[:20])
