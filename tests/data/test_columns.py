"""Dates, identifiers, hashed levels and words: what becomes of them, against plain Python."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from marks import cases, slow
from setpoint.data.column import Numeric
from setpoint.data.hashed import Text
from setpoint.data.kinds import read_column
from setpoint.data.schema import Schema
from setpoint.data.several import Times
from setpoint.data.target import Target
from setpoint.errors import BadFile, BadTable

UTC = datetime.timezone.utc
#: Tens of milliseconds apart: in days as double precision has them, a moment is known to a fifth of a microsecond.
MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 10_000 * 10_000)
)


def learned(columns, **how):
    """The schema of a table of these columns, with a target that alternates, and the table."""
    frame = pl.DataFrame(columns)
    frame = frame.with_columns(target=pl.Series([i % 2 for i in range(frame.height)]))
    return Schema.of(frame, Target.of(frame, "target"), **how), frame


def parts_of(moment):
    """The amounts of a time, by the datetime module."""
    return {
        "days": (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1),
        "year": moment.year, "month": moment.month, "weekday": moment.isoweekday(),
        "hour": moment.hour + moment.minute / 60,
    }  # fmt: skip


@cases(60)
@given(moments=st.lists(st.one_of(MOMENTS, st.none()), min_size=3, max_size=8))
def test_times_are_standardised_parts_by_the_datetime_module(moments):
    known = [moment for moment in moments if moment is not None]
    schema, frame = learned({"at": pl.Series(moments, dtype=pl.Datetime("us")), "x": np.sqrt(np.arange(len(moments)))})
    column = schema.columns[0]
    if len(set(known)) < 2:
        assert not isinstance(column, Times)
        return
    table = [parts_of(moment) for moment in known]
    varying = [part for part in table[0] if len({row[part] for row in table}) > 1]
    assert [amount.name for amount in column.amounts] == [f"at: {part}" for part in varying]
    encoded = dict(zip(schema.features, schema.encode(frame).T))
    for part in varying:
        values = np.array([row[part] for row in table], dtype=float)
        z = [0.0 if m is None else (parts_of(m)[part] - values.mean()) / values.std() for m in moments]
        np.testing.assert_allclose(encoded[f"at: {part}"], z, atol=1e-4)
    if len(known) < len(moments):
        assert encoded["at: days is missing"].tolist() == [float(moment is None) for moment in moments]


def test_times_with_a_zone_have_the_parts_of_utc():
    east = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2024, 1, 1, 1, tzinfo=east), datetime.datetime(2024, 7, 1, 13, tzinfo=east)]
    schema, frame = learned({"at": pl.Series(moments)})
    naive, own = learned({"at": [moment.astimezone(UTC).replace(tzinfo=None) for moment in moments]})
    assert schema.features == naive.features
    assert "at: year" in schema.features
    assert torch.equal(schema.encode(frame), naive.encode(own))


def test_a_schema_of_every_kind_is_read_again_from_json():
    days = [datetime.datetime(2024, 1, 1, 5) + datetime.timedelta(hours=7 * i) for i in range(150)]
    schema, frame = learned(
        {"day": days, "street": [f"street {i}" for i in range(150)], "note": ["a b"] * 75 + ["c"] * 75},
        kinds={"street": "hash", "note": "text"},
    )
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert torch.equal(again.encode(frame), schema.encode(frame))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["columns"][0]["amounts"].pop(0),
        lambda data: data["columns"][0]["amounts"][1].update(name="day: decade"),
        lambda data: data["columns"][0]["amounts"][1].update(missing=True),
        lambda data: data["columns"][0]["amounts"].append(data["columns"][0]["amounts"][1]),
        lambda data: data["columns"][1].update(width=0),
        lambda data: data["columns"][1].update(width=True),
        lambda data: data["columns"][2].update(width=10**9),
        lambda data: data["readings"]["day"].update(kind="number"),
        lambda data: data["readings"]["note"].update(kind="boolean"),
    ],
)
def test_damaged_columns_are_refused(damage):
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(150)]
    schema, _ = learned(
        {"day": days, "street": [f"s {i}" for i in range(150)], "note": ["a b"] * 75 + ["c"] * 75},
        kinds={"street": "hash", "note": "text"},
    )
    data = json.loads(json.dumps(schema.to_dict()))
    damage(data)
    with pytest.raises(BadFile, match="damaged schema"):
        Schema.from_dict(data)


def test_columns_of_unknown_kinds_are_refused():
    with pytest.raises(TypeError, match="of kind 'times of day'"):
        read_column("times of day", "a")


def rows(size=400):
    return np.random.default_rng(0).permutation(size)


IDENTIFIERS = {
    "row": (rows() + 1, "no whole number occurs twice"),
    "tens": (10 * rows() + 7, "no whole number occurs twice"),
    "half": (rows(800)[:400], "no whole number occurs twice"),
    "patient_id": (np.random.default_rng(0).integers(0, 10**9, 400), "its name is that of an identifier"),
    "customerId": (np.random.default_rng(0).integers(0, 4000, 400), "its name is that of an identifier"),
    "padded": ([f"{i:06d}" for i in range(400)], "no value occurs twice, as in a name or an identifier"),
    "comments": ([f"it broke after {i} days" for i in range(400)], "as in free text; --text learns from its words"),
    "street": ([f"street {i % 350}" for i in range(400)], "most of its values occur once"),
}
AMOUNTS = {
    "salary": np.random.default_rng(0).integers(0, 10**6, 400),
    "age": np.random.default_rng(0).integers(18, 90, 400),
    "almost": np.append(rows(399), 0),
    "halves": rows() / 2,
    "idle": np.random.default_rng(0).integers(0, 10**9, 400),
    "grid": np.random.default_rng(0).integers(0, 40, 400),
    "paid": np.random.default_rng(0).integers(0, 2, 400),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_left_out_and_named(name):
    values, why = IDENTIFIERS[name]
    schema, _ = learned({name: values, "x": np.sqrt(np.arange(400))})
    assert [column.name for column in schema.columns] == ["x"]
    assert why in dict(schema.dropped)[name]


@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_are_not_taken_for_identifiers(name):
    schema, _ = learned({name: AMOUNTS[name]})
    assert isinstance(schema.columns[0], Numeric)


def test_the_user_has_the_last_word():
    columns = {"row": rows(), "street": [f"street {i % 300}" for i in range(400)], "grade": [1, 2, 3, 4] * 100}
    kinds = {"row": "numeric", "street": "categorical", "grade": "categorical"}
    schema, _ = learned(columns, kinds=kinds)
    assert [block.kind for block in schema.blocks] == ["amount", "levels", "levels"]
    assert [block.width for block in schema.blocks] == [1, 101, 4]


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"agee": "numeric"}, r"no column 'agee' to take as numeric; did you mean 'age'\?"),
        ({"target": "numeric"}, "'target' is the target"),
        ({"age": "number"}, "'age' cannot be taken as 'number'; choose one of categorical, numeric, hash, text"),
        ({"word": "numeric"}, "'word' cannot be taken as numeric: it must hold numbers or dates"),
        ({"age": "text"}, "'age' cannot be taken as text: it must hold words"),
        ({"list": "categorical"}, "'list' cannot be taken as categorical"),
    ],
)
def test_kinds_that_cannot_be_met_are_refused(kinds, message):
    with pytest.raises(BadTable, match=message):
        learned({"age": [1, 2, 3, 5], "word": ["a", "b", "a", "b"], "list": [[1.0]] * 4}, kinds=kinds)


WORDS = st.lists(st.sampled_from(["Paid", "late", "in", "full", "Straße", "x1"]), max_size=6)


@given(texts=st.lists(WORDS, min_size=1, max_size=4))
def test_words_are_counted_by_their_hash(texts):
    column = pl.Series("note", ["; ".join(words) for words in texts])
    found = Text("note", 32).encode(column)
    for words, row in zip(texts, found):
        low = [word.lower() for word in words]
        counts = [0] * 32
        for term in [*low, *(f"{one} {two}" for one, two in itertools.pairwise(low))]:
            counts[crc32(term.encode()) % 32] += 1
        size = math.sqrt(sum(count**2 for count in counts) / 32) or 1.0
        np.testing.assert_allclose(row, [count / size for count in counts], rtol=1e-6)


def crc32(data):
    """The checksum of ISO 3309, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@slow
def test_hashed_levels_are_one_feature_each_and_the_same_in_every_process():
    streets = [f"street {i}" for i in range(300)]
    schema, frame = learned({"street": [*streets, None, "?"]}, kinds={"street": "hash"})
    features = schema.encode(frame)
    assert features.shape == (302, 257)
    assert (features.sum(1) == 1).all()
    assert features[-2:, -1].tolist() == [1, 1]
    assert features[:300].argmax(1).tolist() == [crc32(street.encode()) % 256 for street in streets]
    code = "from setpoint.data.hashed import Hashed as H; import polars as pl\n"
    code += "print(H('a', 256, True).encode(pl.Series(['street 7'])).argmax())"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(re.findall(r"\d+", again.stdout)[-1]) == int(features[7].argmax())


def test_values_missing_for_the_first_time_are_noted():
    day = datetime.date(2024, 1, 1)
    schema, frame = learned(
        {"street": [f"s {i}" for i in range(200)], "day": [day + datetime.timedelta(days=i) for i in range(200)]},
        kinds={"street": "hash"},
    )
    notes = schema.notes()
    empty = frame.with_columns(pl.lit(None, dtype=pl.String).alias("street"), pl.lit(None, dtype=pl.Date).alias("day"))
    assert torch.equal(schema.encode(empty, notes=notes), torch.zeros(200, len(schema.features)))
    assert notes.sentences() == [
        "column 'street': missing in 200 of 200 rows but never in training",
        "column 'day': missing in 200 of 200 rows but never in training; the mean stands in for it",
    ]
    assert len(notes.alarms()) == 2


def test_numbers_far_beyond_those_of_training_are_finite_without_a_warning():
    """A deviation of 1e-300 once made infinities, and with them a warning of NumPy on the terminal."""
    frame = pl.DataFrame({"x": [1e-300 * row for row in range(60)], "y": [0, 1] * 30})
    schema = Schema.of(frame, Target.of(frame, "y"))
    rows = [{"x": 1e308}, {"x": -1e308}]
    together = schema.encoded(pl.DataFrame(rows))
    assert np.isfinite(together).all()
    assert together[0, 0] > 100 > -100 > together[1, 0]
    assert np.concatenate([schema.encoded_row(row) for row in rows]).tolist() == together.tolist()
