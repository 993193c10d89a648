"""How columns are read: what text is found to hold, and which changes of kind are refused."""

from __future__ import annotations

import datetime
import json

import polars as pl
import pytest

from setpoint.data.reading import Reading, learn_readings
from setpoint.errors import BadTable

KINDS = {
    "number": ["1", " 2.5 ", "-1e3", "NA", None],
    "boolean": ["true", "FALSE", "True", "", None],
    "time": ["2024-01-05", "2024-01-05 10:00", "2024-01-05T10:00:00.5", "?", None],
    "time with a zone": ["2024-01-05T10:00:00Z", "2024-01-05 10:00+02:00", None, None, None],
    "time of day": ["10:00", "23:59:59.5", None, None, None],
    "list of numbers": ["[1, 2.5]", "[3,4]", "[-1e3, 0]", None, "NA"],
    "words": ["01", "02", "3", None, "?"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_text_spells_is_found_and_read_again(kind):
    column = pl.Series("a", KINDS[kind], dtype=pl.String)
    readings, read = learn_readings(pl.DataFrame(column))
    assert readings["a"].kind == kind
    again = Reading(**json.loads(json.dumps(readings["a"].to_dict())))
    assert again.read(column).equals(read["a"])
    assert again.read(read["a"]).equals(read["a"])
    if kind == "words":
        assert again.read(column).equals(column)


def test_times_are_the_same_instants_however_they_are_written():
    naive = Reading("time").read(pl.Series("a", ["2024-01-05", "2024-01-05 10:00", "2024-01-05T10:00:00.5"]))
    assert naive.to_list() == [
        datetime.datetime(2024, 1, 5),
        datetime.datetime(2024, 1, 5, 10),
        datetime.datetime(2024, 1, 5, 10, 0, 0, 500_000),
    ]
    zoned = Reading("time with a zone").read(pl.Series("a", ["2024-01-05T10:00:00Z", "2024-01-05 12:00+0200"]))
    assert zoned[0] == zoned[1]
    days = pl.Series("a", [datetime.date(2024, 1, 5), None])
    for unit in ("ms", "us", "ns"):
        assert Reading("time").read(days.cast(pl.Datetime(unit))).equals(Reading("time").read(days))


TYPED = {
    "number": pl.Series("a", [1, 2]),
    "boolean": pl.Series("a", [True, False]),
    "time": pl.Series("a", [datetime.date(2024, 1, 5)]),
    "time with a zone": pl.Series("a", [datetime.datetime(2024, 1, 5, tzinfo=datetime.timezone.utc)]),
    "time of day": pl.Series("a", [datetime.time(10)]),
    "duration": pl.Series("a", [datetime.timedelta(1)]),
    "list of numbers": pl.Series("a", [[1.0, 2.0]]),
    "words": pl.Series("a", ["x"]),
    "bytes": pl.Series("a", [b"x"]),
}


@pytest.mark.parametrize("trained", [kind for kind in TYPED if kind != "bytes"])
def test_a_change_of_kind_is_refused_by_name(trained):
    reading = Reading(trained, 2 if trained == "list of numbers" else 0)
    for given, values in TYPED.items():
        if trained == given:
            assert len(reading.read(values)) == len(values)
            continue
        with pytest.raises(BadTable, match=r"^column 'a' held .* in training but holds .*; give it as"):
            reading.read(values)


@pytest.mark.parametrize("trained", [kind for kind in TYPED if kind != "bytes"])
def test_a_column_with_nothing_in_it_is_missing_in_every_row(trained):
    reading = Reading(trained, 2 if trained == "list of numbers" else 0)
    assert reading.read(pl.Series("a", [None, None])).null_count() == 2


def test_lists_of_another_length_are_refused():
    with pytest.raises(BadTable, match="held lists of numbers of length 2 in training but holds a list of 3"):
        Reading("list of numbers", 2).read(pl.Series("a", [[1.0, 2.0], [1.0, 2.0, 3.0]]))


@pytest.mark.parametrize("odd", [{"kind": "odd"}, {"kind": "number", "length": 3}, {"kind": "list of numbers"}])
def test_an_odd_reading_in_a_file_is_refused(odd):
    with pytest.raises(TypeError):
        Reading(**odd)


def test_integers_of_128_bits_are_numbers():
    readings, read = learn_readings(pl.DataFrame({"a": pl.Series([2**100, 1], dtype=pl.Int128)}))
    assert readings["a"].kind == "number"
    assert read["a"].to_list() == [float(2**100), 1.0]


def test_single_precision_is_the_number_that_its_text_spells():
    column = pl.Series("a", [0.1, 1e-3, 16777217.0, -3.4e38, None, float("inf")], dtype=pl.Float32)
    text = column.cast(pl.String)
    assert Reading("number").read(column).equals(Reading("number").read(text))
    assert Reading("number").read(column)[0] == 0.1
