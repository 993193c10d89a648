"""`setpoint predict` and `setpoint evaluate`: rows unlike those of training, kept columns, odd files."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from setpoint.cli import main
from setpoint.data import exchange

FIT = ["--ask", "minimize fnr where fpr <= 20%", "--epochs", "3", "--quiet"]


def table(rows=300, seed=0):
    draw = np.random.default_rng(seed)
    code, flag = draw.choice(["01", "02", "A1"], rows), draw.choice(["True", "False", "Unknown"], rows)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(i)) for i in draw.integers(0, 300, rows)]
    return pl.DataFrame(
        {
            "x": draw.normal(size=rows).round(3),
            "code": code,
            "flag": flag,
            "paid": draw.random(rows) < 0.5,
            "day": days,
            "region": draw.integers(1, 6, rows),
            "y": ((code == "01") ^ (flag == "True") ^ (draw.random(rows) < 0.1)).astype(int),
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("predict")
    table().write_parquet(place / "train.parquet")
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(place / "train.parquet"), "--target", "y", *FIT, "--out", str(place / "run")])
    assert ended.value.code == 0
    return place / "run"


@pytest.fixture
def call(run, tmp_path, monkeypatch, capsys):
    """The exit code of a command on a frame, what it printed and what it said beside."""
    monkeypatch.chdir(tmp_path)

    def call(frame, *options, command="predict", name="new.csv"):
        frame.write_csv(name) if name.endswith("csv") else frame.write_parquet(name)
        with pytest.raises(SystemExit) as ended:
            main([command, str(run), name, *options])
        return (ended.value.code, *capsys.readouterr())

    return call


def test_a_row_that_comes_alone_is_read_as_in_training(call):
    row = table().filter(code="01", flag="True").drop("y")[:1]
    other = table().filter(code="A1", flag="Unknown").drop("y")[:1]
    for more in ([], ["--stream"]):
        alone, together = call(row, *more), call(pl.concat([row, other]), *more)
        assert together[1].splitlines()[:2] == alone[1].splitlines()


CHANGES = {
    "dates in a column of numbers": {"x": pl.date(2024, 1, 5)},
    "booleans in a column of numbers": {"x": pl.lit(True)},
    "lists in a column of numbers": {"x": pl.concat_list(pl.lit(1.0), pl.lit(2.0))},
    "bytes in a column of numbers": {"x": pl.lit(b"1")},
    "lists in a column of words": {"code": pl.concat_list(pl.lit("01"))},
    "numbers in a column of words": {"code": pl.lit(1)},
    "numbers in a column of booleans": {"paid": pl.lit(1)},
    "numbers in a column of dates": {"day": pl.lit(19_000)},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_a_change_of_kind_is_refused_by_name(call, change, more):
    (name,) = CHANGES[change]
    code, out, aside = call(table(20).drop("y").with_columns(**CHANGES[change]), *more, name="new.parquet")
    assert (code, out) == (2, "")
    assert f"column '{name}' held" in aside
    assert aside.count("\n") == 1


def test_the_same_days_give_the_same_scores_in_every_unit(call):
    frame = table(20).drop("y")
    expected = call(frame, name="new.parquet")
    for unit in ("ms", "us", "ns"):
        assert call(frame.with_columns(pl.col("day").cast(pl.Datetime(unit))), name="new.parquet") == expected
    assert call(frame.with_columns(pl.col("region").cast(pl.Float64).cast(pl.String).cast(pl.Categorical)),
                name="new.parquet") == expected  # fmt: skip


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_strict_stops_where_most_rows_are_unlike_those_of_training(call, command, more):
    odd = {
        "such as 'FALSE'": table(40).with_columns(pl.col("flag").str.to_uppercase()),
        "outside the range": table(40).with_columns(pl.col("x") + 100),
        "but never in training": table(40).with_columns(x=pl.lit(None, dtype=pl.Float64)),
    }
    for says, labelled in odd.items():
        frame = labelled.drop("y") if command == "predict" else labelled
        code, _, aside = call(frame, *more, command=command)
        assert says in aside
        code, out, aside = call(frame, "--strict", *more, command=command)
        assert (code, out) == (1, "")
        assert says in aside
        assert aside.count("\n") == 1
    ordinary = table(40) if command == "evaluate" else table(40).drop("y")
    assert call(ordinary, "--strict", *more, command=command)[:2] == call(ordinary, *more, command=command)[:2]


def test_kept_columns_are_copied_and_formulas_are_told_of(call):
    cells = ["9007199254740993", "007", "=HYPERLINK(A1)", "-5", " +1 2"]
    frame = table(5).drop("y").with_columns(customer=pl.Series(cells))
    _, out, aside = call(frame, "--keep", "customer")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == cells
    assert "note: column 'customer': 1 kept values start with =, +, - or @" in aside


@pytest.mark.parametrize("ends", ["\r", "mixed", "late"])
def test_lines_that_end_in_a_bare_return_are_refused(run, tmp_path, capsys, ends, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = table(50).write_csv()
    lines = text.replace("\n", "\r") if ends == "\r" else text.replace("\n", "\r", 3)
    if ends == "late":
        lines = text[::-1].replace("\n", "\r", 3)[::-1]
    (tmp_path / "t.csv").write_bytes(lines.encode())
    for more in ([], ["--stream"]):
        with pytest.raises(SystemExit) as ended:
            main(["fit", str(tmp_path / "t.csv"), "--target", "y", *FIT, *more])
        assert ended.value.code == 2
        assert "ends lines in carriage returns alone" in capsys.readouterr().err
    (tmp_path / "t.csv").write_bytes(text.replace("A1", '"A\r1"').replace("\n", "\r\n").encode())
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(run), str(tmp_path / "t.csv"), "--quiet", "--out", str(tmp_path / "out.csv")])
    assert ended.value.code == 0


def test_integers_of_128_bits_can_be_trained_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().with_columns(pl.col("region").cast(pl.Int128)).write_parquet("t.parquet")
    with pytest.raises(SystemExit) as ended:
        main(
            ["fit", "t.parquet", "--target", "y", "--ask", "minimize fnr where fpr <= 20%", "--epochs", "2", "--quiet"]
        )
    assert ended.value.code == 0


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_answers_have_the_values_and_types_of_many(rows, monkeypatch):
    odd = [np.nan, np.inf, 0.1, -0.0, 1e-45]
    answers = {
        "score": np.array(odd, dtype=np.float32), "wide": np.array(odd), "rank": np.arange(5), "in": np.arange(5) > 1,
        "name": np.array(["a", "b", "", "c", "review"]),
    }  # fmt: skip
    few = exchange.beside(table(rows), ["code"], {name: values[:rows] for name, values in answers.items()})
    monkeypatch.setattr(exchange, "FEW", -1)
    many = exchange.beside(table(rows), ["code"], {name: values[:rows] for name, values in answers.items()})
    assert few.schema == many.schema
    assert few.write_csv() == many.write_csv()
