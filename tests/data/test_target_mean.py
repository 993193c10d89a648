"""Words by the target: the log-odds of each level, out of fold for training rows."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
import torch

from setpoint.data.schema import Schema, Target
from setpoint.data.target_mean import FOLDS, PRIOR_ROWS, TargetMean, Truth, learn_target_mean, out_of_fold
from setpoint.errors import BadFile, BadTable

DRAW = np.random.default_rng(0)
STREETS = pl.Series("street", [None if i % 40 == 0 else f"street {i % 30}" for i in range(300)] + ["once"])
LABELS = (DRAW.random(301) < 0.3).astype(np.float32)
WEIGHTS = DRAW.uniform(0.5, 3, 301)


def by_hand(value, column, labels, weights):
    """The number of one value, from the definition."""
    total, positives = weights.sum(), (weights * labels).sum()
    share = (positives + 0.5) / (total + 1)
    own = np.array([other == value for other in column])
    if own.sum() < 2 and value is not None:
        return 0.0
    shrunk = ((weights * labels)[own].sum() + PRIOR_ROWS * share) / (weights[own].sum() + PRIOR_ROWS)
    return math.log(shrunk / (1 - shrunk)) - math.log(share / (1 - share))


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_each_level_has_its_shrunk_log_odds(weights):
    column = learn_target_mean(STREETS, Truth(LABELS, weights))
    assert len(column.levels) == 30
    ones = np.ones(301) if weights is None else weights
    expected = [by_hand(value, STREETS, LABELS, ones) for value in STREETS]
    np.testing.assert_allclose(column.encode(STREETS)[:, 0], expected, atol=1e-6)
    assert column.encode(pl.Series("street", ["never seen", "once"])).tolist() == [[0.0], [0.0]]


def test_no_row_has_its_own_label_in_its_feature():
    found = out_of_fold(STREETS, Truth(LABELS))
    fold = np.zeros(301, dtype=int)
    for own in (LABELS == 0, LABELS == 1):
        fold[own] = np.arange(own.sum()) % FOLDS
    for turn in range(FOLDS):
        rest = fold != turn
        kept = [value for value, stays in zip(STREETS, rest) if stays]
        expected = [by_hand(v, kept, LABELS[rest], np.ones(rest.sum())) for v in STREETS.filter(~rest)]
        np.testing.assert_allclose(found[~rest, 0], expected, atol=1e-6)


def schema_of(kind="target-encode"):
    frame = pl.DataFrame({"street": STREETS, "x": DRAW.normal(size=301), "y": LABELS.astype(int)})
    return Schema.of(frame, Target.of(frame, "y"), kinds={"street": kind}), frame


def test_the_schema_is_read_again_and_encodes_each_row_by_itself():
    schema, frame = schema_of()
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert isinstance(schema.columns[0], TargetMean)
    assert schema.features == ["street: log-odds", "x"]
    whole = again.encode(frame)
    assert torch.equal(torch.cat([again.encode(frame[place]) for place in range(40)]), whole[:40])
    trained_on = again.of_training(whole, frame, Truth(LABELS))
    assert torch.equal(trained_on[:, 1], whole[:, 1])
    np.testing.assert_array_equal(trained_on[:, :1].numpy(), out_of_fold(STREETS, Truth(LABELS)))
    assert not torch.equal(trained_on[:, 0], whole[:, 0])


@pytest.mark.parametrize(
    "damage",
    [
        lambda column: column["values"].pop(),
        lambda column: column["levels"].__setitem__(1, column["levels"][0]),
        lambda column: column["values"].__setitem__(0, float("nan")),
        lambda column: column.update(missing="none"),
    ],
)
def test_damaged_columns_by_the_target_are_refused(damage):
    data = json.loads(json.dumps(schema_of()[0].to_dict()))
    damage(data["columns"][0])
    with pytest.raises(BadFile, match="damaged schema"):
        Schema.from_dict(data)


def test_notes_tell_of_missing_values_that_training_never_saw():
    column = learn_target_mean(STREETS.fill_null("none"), Truth(LABELS))
    seen = column.look(pl.Series("street", ["street 1", None, None]))
    assert column.notes(seen) == ["column 'street': missing in 2 of 3 rows but never in training"]
    assert column.mostly(seen) == column.notes(seen)[0]
    assert learn_target_mean(STREETS, Truth(LABELS)).notes(seen) == []


def test_three_classes_are_refused():
    frame = pl.DataFrame({"street": ["a", "b", "c"] * 20, "y": [0, 1, 2] * 20})
    with pytest.raises(BadTable, match="'street' cannot be encoded by the target, which must have two classes"):
        Schema.of(frame, Target.of_classes(frame, "y"), kinds={"street": "target-encode"})
