"""Tables: what is read from a file, what training learns of it, and the features that come out."""

from __future__ import annotations

import datetime
import json
import math

import polars as pl
import pytest
import torch

from setpoint.data.column import Categorical, Numeric
from setpoint.data.frame import read_table
from setpoint.data.reading import learn_readings
from setpoint.data.schema import Schema
from setpoint.data.target import Target
from setpoint.errors import BadFile, BadTable, SetpointError
from tables import loans


def learned(columns, labels=None, **how):
    """The schema of a table of these columns, with a target that alternates."""
    frame = pl.DataFrame(columns)
    frame = frame.with_columns(target=pl.Series([i % 2 for i in range(frame.height)] if labels is None else labels))
    return Schema.of(frame, Target.of(frame, "target"), **how), frame


def notes_on(schema, frame, **how):
    """The notes on the rows of a frame."""
    notes = schema.notes()
    schema.encode(frame, ignore_extra=True, notes=notes)
    return notes.sentences(**how)


def slow_features(schema, row):
    """The features of one row, by plain loops."""
    features = []
    for column in schema.columns:
        value = row[column.name]
        if isinstance(column, Numeric):
            missing = value is None or not math.isfinite(value)
            z = 0.0 if missing else (value - column.mean) / column.deviation
            features.append(z if abs(z) <= 5 else math.copysign(5 + math.log(abs(z) - 4), z))
            features += [float(missing)] if column.missing else []
            continue
        text = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        text = None if text in (None, "?") else str(text)
        hit = [float(text == level) for level in column.levels]
        features += hit
        features += [float(text is None)] if column.missing else []
        features += [float(not any(hit) and not (text is None and column.missing))] if column.other else []
    return features


def test_features_equal_the_slow_reference():
    frame = loans()
    schema = Schema.of(frame[:200], Target.of(frame, "default"))
    expected = torch.tensor([slow_features(schema, row) for row in frame.iter_rows(named=True)])
    assert schema.encode(frame).dtype == torch.float32
    assert len(schema.features) == expected.shape[1]
    torch.testing.assert_close(schema.encode(frame), expected, atol=1e-5, rtol=0)


def test_kinds_of_columns():
    frame = loans()
    schema = Schema.of(frame, Target.of(frame, "default"))
    kinds = {column.name: type(column) for column in schema.columns}
    assert kinds == {
        "amount": Numeric, "age": Numeric, "region": Numeric, "job": Categorical, "married": Categorical,
    }  # fmt: skip
    reasons = dict(schema.dropped)
    assert "twice" in reasons["id"]
    assert "constant" in reasons["currency"]
    assert "amount is missing" in schema.features
    assert "job is missing" in schema.features


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_every_file_format_gives_the_same_features(tmp_path, ending):
    frame = loans()
    path = tmp_path / f"loans.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    read = read_table(path)
    target = Target.of(frame, "default")
    assert Target.of(read, "default") == target
    assert Schema.of(read, target) == Schema.of(frame, target)
    torch.testing.assert_close(Schema.of(frame, target).encode(read), Schema.of(frame, target).encode(frame))


def test_numbers_behind_blanks_and_words_for_missing_are_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\ufeffa, b, flag\r\n 1, NA, True\r\n2.5, ?,false\r\n , 3,TRUE\r\n-1e3,nan,\r\n", encoding="utf-8")
    readings, frame = learn_readings(read_table(path))
    assert [reading.kind for reading in readings.values()] == ["number", "number", "boolean"]
    assert frame["a"].to_list() == [1.0, 2.5, None, -1000.0]
    assert frame["b"].to_list() == [None, None, 3.0, None]
    assert frame["flag"].to_list() == [True, False, True, None]


def test_training_rows_are_standardised_and_far_ones_keep_their_order():
    schema, frame = learned({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.5]})
    column = schema.encode(frame)[:, 0].double()
    assert abs(float(column.mean())) < 1e-6
    assert abs(float(column.std(correction=0)) - 1) < 1e-6
    far = pl.DataFrame({"a": [-1.7e308, -1e9, -1e3, 1e3, 1e9, 1e300]})
    assert (schema.encode(far)[:, 0].diff() > 0).all()
    assert schema.encode(far).abs().max() < 720


def test_missing_numbers_are_the_mean_and_flagged_only_if_training_missed_some():
    with_missing, _ = learned({"a": [1.0, None, 3.0, 4.0]})
    without, _ = learned({"a": [1.0, 2.0, 3.0, 4.0]})
    hole = pl.DataFrame({"a": [None, 2.0]}, schema={"a": pl.Float64})
    assert with_missing.features == ["a", "a is missing"]
    assert with_missing.encode(hole)[0].tolist() == [0.0, 1.0]
    assert without.encode(hole)[0].tolist() == [0.0]


def test_infinite_numbers_are_missing_and_noted():
    schema, frame = learned({"a": [1.0, math.inf, 3.0, -math.inf, 2.0, math.nan]})
    assert (schema.columns[0].low, schema.columns[0].high) == (1.0, 3.0)
    assert schema.encode(frame)[:, 1].tolist() == [0, 1, 0, 1, 0, 1]
    assert notes_on(schema, frame) == ["column 'a': 2 infinite values are taken as missing"]


def test_huge_numbers_do_not_overflow():
    schema, frame = learned({"a": [1e308, -1e308, 1.7e308, 0.0]})
    assert torch.isfinite(schema.encode(frame)).all()
    assert math.isfinite(schema.columns[0].deviation)


def test_at_most_a_hundred_levels_and_the_rest_are_other():
    values = [f"level {i:03d}" for i in range(120) for _ in range(120 - i)]
    schema, frame = learned({"a": values})
    (column,) = schema.columns
    assert column.levels == tuple(f"level {i:03d}" for i in range(100))
    features = schema.encode(frame)
    assert (features.sum(1) == 1).all()
    assert int(features[:, -1].sum()) == sum(120 - i for i in range(100, 120))
    assert schema.encode(pl.DataFrame({"a": ["new", None]}))[:, -1].tolist() == [1.0, 1.0]


def test_levels_never_seen_are_all_zeros_and_noted():
    schema, _ = learned({"a": ["x", "y"] * 3})
    new = pl.DataFrame({"a": ["z", "x", None]})
    assert schema.encode(new).tolist() == [[0, 0], [1, 0], [0, 0]]
    assert notes_on(schema, new) == [
        "column 'a': levels that training never saw in 1 of 3 rows, such as 'z'",
        "column 'a': missing in 1 of 3 rows but never in training",
    ]


def test_whole_numbers_are_amounts_unless_they_are_to_be_categories():
    amounts, _ = learned({"a": [1, 2, 3] * 20})
    assert amounts.features == ["a"]
    assert isinstance(amounts.columns[0], Numeric)
    schema, _ = learned({"a": [1, 2, 3] * 20}, kinds={"a": "categorical"})
    assert sorted(schema.features) == ["a=1", "a=2", "a=3"]
    as_float = schema.encode(pl.DataFrame({"a": [3.0, 1.0]}))
    as_text = schema.encode(pl.DataFrame({"a": ["3", "1"]}))
    assert torch.equal(as_float, as_text)
    assert (as_float.sum(1) == 1).all()


def test_a_value_that_is_there_or_not_is_used():
    schema, _ = learned({"a": [7.0, None] * 5})
    assert schema.features == ["a=7", "a is missing"]


def test_dates_become_their_parts_and_lists_a_number_for_each_place():
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(40)]
    lists = [[float(i), 7.0, float(i % 5)] if i else None for i in range(40)]
    schema, frame = learned({"day": days, "list": lists, "uneven": [[1] * (i % 3) for i in range(40)]})
    features = schema.encode(frame)
    assert schema.features == [
        "day: days", "day: month", "day: weekday", "list[0]", "list[0] is missing", "list[2]", "list[2] is missing"
    ]  # fmt: skip
    assert (features[:, 0].diff() > 0).all()
    assert (features[1:, 3].diff() > 0).all()
    assert features[0, 3:].tolist() == [0, 1, 0, 1]
    assert "differ in length" in dict(schema.dropped)["uneven"]
    assert torch.equal(schema.encode(frame.with_columns(pl.col("list").list.to_array(3))), features)
    assert notes_on(schema, frame.with_columns(day=pl.col("day") + datetime.timedelta(days=7)))[-1] == (
        "column 'day': 7 of 40 rows outside the range that training saw, 2024-01-01 00:00:00 to 2024-02-09 00:00:00"
    )


def test_encode_wants_the_columns_of_training_in_any_order():
    frame = loans()
    schema = Schema.of(frame, Target.of(frame, "default"))
    assert torch.equal(schema.encode(frame[frame.columns[::-1]]), schema.encode(frame))
    with pytest.raises(BadTable, match="lacks 'age', 'job'"):
        schema.encode(frame.drop("age", "job"))
    extra = frame.drop("default", "id").with_columns(more=1)
    with pytest.raises(BadTable, match="the table has 'more', which training never had"):
        schema.encode(extra)
    assert torch.equal(schema.encode(extra, ignore_extra=True), schema.encode(frame))
    assert notes_on(schema, extra) == ["column 'more' was not there in training and is ignored"]
    beyond = frame[:5].with_columns(age=pl.Series([17, 200, 40, None, 30]))
    low, high = frame["age"].min(), frame["age"].max()
    assert (
        notes_on(schema, beyond)[-1]
        == f"column 'age': 2 of 5 rows outside the range that training saw, {low} to {high}"
    )
    assert not any("range" in note for note in notes_on(schema, beyond, ranges=False))


def test_of_many_columns_beyond_their_range_a_few_are_named():
    frame = pl.DataFrame({f"x{i}": [0.0, 1.0, 0.5, 0.2] for i in range(9)} | {"y": [0, 1, 0, 1]})
    schema = Schema.of(frame, Target.of(frame, "y"))
    notes = notes_on(schema, frame.with_columns(pl.exclude("y") + 5))
    assert [note.split(":")[0] for note in notes[:5]] == [f"column 'x{i}'" for i in range(5)]
    assert notes[5:] == ["4 more columns have rows outside the range that training saw"]


def test_a_table_without_its_columns_is_refused():
    frame = loans()
    schema = Schema.of(frame, Target.of(frame, "default"))
    with pytest.raises(BadTable, match="'age' held numbers in training but holds 'old'"):
        schema.encode(frame.with_columns(age=pl.lit("old")))


@pytest.mark.parametrize(
    ("values", "positive", "why"),
    [
        ([0, 1, 1, 1], "1", "the larger number"),
        ([-1, 1, 1, 1], "1", "the larger number"),
        ([10.0, 9.0, 10.0, 10.0], "10", "the larger number"),
        ([True, False, True, True], "true", "the value that means yes"),
        (["Yes", "No", "Yes", "Yes"], "Yes", "the value that means yes"),
        ([">50K", "<=50K", "<=50K", "<=50K"], ">50K", "the rarer class"),
        (["b", "a", "a", "b"], "b", "the rarer class"),
    ],
)
def test_which_class_is_positive(values, positive, why):
    frame = pl.DataFrame({"target": values})
    target = Target.of(frame, "target")
    assert (target.positive, target.why) == (positive, why)
    other = Target.of(frame, "target", positive=target.negative)
    assert (other.positive, other.negative, other.why) == (target.negative, positive, "as asked")
    assert torch.equal(target.labels(frame), 1 - other.labels(frame))
    assert target.labels(frame).dtype == torch.float32


def test_the_positive_class_may_be_named_carelessly():
    frame = pl.DataFrame({"target": [True, False]})
    assert Target.of(frame, "target", positive=" False").positive == "false"


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        (["a", "b", None, "NA"], None, "'target' is missing in 2 of 4 rows"),
        ([0.0, 1.0, math.nan, 1.0], None, "'target' is missing in 1 of 4 rows"),
        ([0.0, math.inf, math.inf, 0.0], None, "'target' is inf or -inf in 2 of 4 rows"),
        (["0", "-inf", "0", "0"], None, "'target' is inf or -inf in 1 of 4 rows"),
        (["a"] * 4, None, "two classes, but holds 1: 'a'"),
        (["a", "b", "c", "d"], None, "two classes, but holds 4"),
        (["a", "b", "a", "b"], "c", "no class 'c' in target 'target', which holds 'a' and 'b'"),
    ],
)
def test_targets_that_cannot_be_used(values, positive, message):
    with pytest.raises(BadTable, match=message):
        Target.of(pl.DataFrame({"target": values}), "target", positive)


def test_targets_that_are_not_there():
    frame = pl.DataFrame({"income": [1, 0]})
    with pytest.raises(BadTable, match="no column 'incom' to predict; did you mean 'income'"):
        Target.of(frame, "incom")
    with pytest.raises(BadTable, match="there are 'income'"):
        Target.of(frame, "qqq")
    with pytest.raises(BadTable, match="holds '2'; known are '0' and '1'"):
        Target.of(frame, "income").labels(pl.DataFrame({"income": [0, 2]}))


def test_a_table_with_nothing_to_learn_from():
    with pytest.raises(BadTable, match=r"no column to learn 'target' from .*constant"):
        learned({"a": [1, 1, 1]})


FILES = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n", "empty"),
    "header.csv": (b"a,b\n", "no rows"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
    "ragged.csv": (b"a,b\n1,2,3\n", "cannot be read as a table"),
    "broken.parquet": (b"PAR1 but not really", "cannot be read as Parquet"),
    "table.xlsx": (b"PK", "ends in .xlsx; setpoint reads .csv"),
    "none": (b"a,b\n", "ends in nothing"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_are_refused_in_one_sentence(tmp_path, name):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SetpointError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    for path, message in ((tmp_path / "no.csv", "no file at"), (tmp_path, "a directory that holds no table")):
        with pytest.raises(BadFile, match=message):
            read_table(path)


def test_schema_round_trip():
    frame = loans()
    schema = Schema.of(frame, Target.of(frame, "default"))
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("target"),
        lambda data: data["target"].update(positive=1),
        lambda data: data["columns"][0].update(mean="0"),
        lambda data: data["columns"][0].update(deviation=0.0),
        lambda data: data["columns"][0].update(low=float("inf")),
        lambda data: data["columns"][0].pop("mean"),
        lambda data: data["columns"][0].update(kind="code"),
        lambda data: data["columns"][3].update(levels=[1, 2]),
        lambda data: data["columns"][3].update(more=True),
        lambda data: data.update(dropped=["a"]),
    ],
)
def test_damaged_schemas_are_refused(damage):
    frame = loans()
    data = Schema.of(frame, Target.of(frame, "default")).to_dict()
    damage(data)
    with pytest.raises(BadFile, match="damaged schema"):
        Schema.from_dict(data)
