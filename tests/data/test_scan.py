"""A table read in chunks holds what it holds when read at once, and so does what is learned of it."""

from __future__ import annotations

import csv
from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from marks import cases
from setpoint.data import counts
from setpoint.data.counts import Levels
from setpoint.data.frame import read_table
from setpoint.data.reading import Guess, learn_readings
from setpoint.data.scan import learn_readings_of, scan_table
from setpoint.data.schema import Schema
from setpoint.data.stream import Division
from setpoint.data.target import Target
from setpoint.errors import BadTable
from setpoint.run.stream import learn
from tables import loans

VALUES = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.sampled_from(["", "?", "NA", "true", "FALSE", "1", " 2 ", 'a "b"', "c, d", "e\nf", "g\r\nh", "é", '"']),
)
ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=20)


def whole(scan):
    return pl.concat([frame for _, frame in scan.frames()])


@cases(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, size=st.integers(1, 200), end=st.sampled_from(["\n", "\r\n"]), blank=st.booleans())
def test_chunks_of_text_are_the_table(tmp_path, rows, size, end, blank):
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerow(["a", "b\nb", "c"])
        for row in rows:
            writer.writerow(row)
            if blank:
                file.write(end)
    scan = scan_table(path, size)
    assert whole(scan).equals(read_table(path))
    assert learn_readings_of(scan) == learn_readings(read_table(path))[0]
    assert [chunk.first for chunk in scan.chunks] == [
        sum(c.rows for c in scan.chunks[:i]) for i in range(len(scan.chunks))
    ]


#: Ways to write a number; a column mixes those of one line.
WAYS = (
    ("{:.0f}%", "{:.1f} %", "?"), ("${:,.2f}", "${:.0f}", "{:.0f}"), ("{:.0f} EUR", "{:,.1f} EUR"),
    ("{:,.0f}", "{:.1f}"), ("({:.0f})", "{:.0f}", "-{:,.1f}"), ("{:.0f}%", "{:.0f}"), ("${:.0f}", "{:.0f} EUR"),
)  # fmt: skip
WRITTEN = st.sampled_from(WAYS).flatmap(
    lambda ways: st.lists(st.tuples(st.sampled_from(ways), st.integers(1, 10**6)), min_size=1, max_size=6)
)


@given(values=WRITTEN, swapped=st.booleans(), size=st.integers(1, 4))
def test_the_form_of_numbers_is_the_same_in_chunks(values, swapped, size):
    texts = [way.format(number / 10) for way, number in values]
    column = pl.Series("a", [text.translate(str.maketrans(",.", ".,")) if swapped else text for text in texts])
    at_once, by_chunks = Guess(), Guess()
    at_once.add(column)
    for first in range(0, len(column), size):
        by_chunks.add(column[first : first + size])
    assert by_chunks.found() == at_once.found()


@pytest.mark.parametrize("size", [500, 5000, 10**6])
def test_chunks_of_parquet_are_the_table_in_any_order(tmp_path, size):
    frame = loans(300).with_columns(number=pl.Series(["1.5", "?", " 2"] * 100))
    path = tmp_path / "t.parquet"
    frame.write_parquet(path, row_group_size=70)
    scan = scan_table(path, size)
    expected = read_table(path)
    assert whole(scan).equals(expected)
    assert learn_readings_of(scan) == learn_readings(expected)[0]
    assert learn_readings_of(scan)["number"].kind == "number"
    for chunk in reversed(scan.chunks):
        assert scan.read(chunk).equals(expected[chunk.first : chunk.first + chunk.rows])


def test_a_column_is_words_if_the_last_chunk_holds_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,true\n" * 500 + "x,3\n")
    scan = scan_table(path, 100)
    assert len(scan.chunks) > 5
    assert [reading.kind for reading in learn_readings_of(scan).values()] == ["words", "words"]
    assert whole(scan).equals(read_table(path))


@pytest.mark.parametrize(("line", "says"), [("7,8,9\n", "line 302 holds 3 values"), ("7\n", "line 302 holds 1 value")])
def test_a_ragged_line_is_named(tmp_path, line, says):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 300 + line + "3,4\n" * 300)
    with pytest.raises(BadTable, match=says):
        scan_table(path, 100)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_without_rows_is_refused(tmp_path, name):
    path = tmp_path / name
    frame = pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int64, "b": pl.Int64})
    frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
    with pytest.raises(BadTable, match="no rows"):
        scan_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_is_learned_in_chunks_is_what_is_learned_at_once(tmp_path, name):
    frame = loans(600).with_columns(
        sometimes=pl.Series([3, None] * 300), huge=pl.Series([1e300, -1e300, 5e299] * 200), when=pl.Series([0.5] * 600)
    )
    path = tmp_path / name
    frame.write_csv(path) if name.endswith("csv") else frame.write_parquet(path)
    scan = scan_table(path, 4000)
    assert len(scan.chunks) > 5
    division = Division.of(600, (0.7, 0.1, 0.1, 0.1), seed=3)
    whole_frame = read_table(path)
    training = pl.concat([f.filter(division.parts(c) == 0) for c, f in scan.frames()])
    expected = Schema.of(training, Target.of(whole_frame, "default"), learn_readings(whole_frame)[0])
    found = learn(scan, division, "default")
    assert found.target == expected.target
    assert found.features == expected.features
    assert [name for name, _ in found.dropped] == [name for name, _ in expected.dropped]
    for mine, theirs in zip(found.to_dict()["columns"], expected.to_dict()["columns"]):
        for key, value in theirs.items():
            assert mine[key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), key


def test_no_more_levels_are_counted_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(counts, "MOST_KEPT", 50)
    levels = Levels()
    for part in range(20):
        levels.add(pl.Series([f"rare {part}-{i}" for i in range(40)] + ["often"] * 30 + ["at times"] * 10))
        assert levels.counts.height <= 50
    found = levels.found(2)
    assert found.times == {"often": 600, "at times": 200}
    assert found.different > 50


def test_a_stream_learns_dates_and_lists_as_the_whole_table_does(tmp_path):
    path, seen = tmp_path / "t.parquet", datetime(2024, 3, 1)
    frame = pl.DataFrame(
        {
            "closed": [seen, None] * 50,
            "uneven": [[1.0]] * 50 + [[1.0, 2.0]] * 50,
            "amount": [i / 2 for i in range(100)],
            "default": [0, 0, 1, 1] * 25,
        }
    )
    frame.write_parquet(path, row_group_size=10)
    found = learn(scan_table(path, 200), Division.of(100, (1.0, 0, 0, 0), seed=0), "default")
    expected = Schema.of(frame, Target.of(frame, "default"))
    assert found.features == expected.features == ["closed=2024-03-01 00:00:00.000000", "closed is missing", "amount"]
    assert found.dropped == expected.dropped


def test_chunks_of_lists_and_long_texts_are_as_small_as_those_of_numbers(tmp_path):
    draw = np.random.default_rng(0)
    vectors = pl.DataFrame({"v": draw.normal(size=(4000, 100)).tolist(), "y": [0, 1] * 2000})
    texts = pl.DataFrame({"t": [f"{row} " * 300 for row in range(4000)], "y": [0, 1] * 2000})
    for frame in (vectors, texts):
        frame.write_parquet(tmp_path / "t.parquet")
        scan = scan_table(tmp_path / "t.parquet", 200_000)
        assert max(part.estimated_size() for part in scan) < 300_000
        assert pl.concat(scan).equals(frame)
    numbers = pl.DataFrame(draw.normal(size=(4000, 5)))
    numbers.write_parquet(tmp_path / "n.parquet")
    assert [chunk.rows for chunk in scan_table(tmp_path / "n.parquet", 80_000).chunks] == [2000, 2000]
