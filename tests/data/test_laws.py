"""Laws of scoring: a row's score depends on that row alone, whatever file, door or order it comes in."""

from __future__ import annotations

import csv
import datetime
import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from marks import cases, quick_first
from setpoint import ask
from setpoint.cli import main
from setpoint.data import exchange
from setpoint.data.frame import read_table
from setpoint.data.scan import scan_table
from setpoint.data.schema import Schema
from setpoint.data.target import Target
from setpoint.run.artefact import load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table

DAY = datetime.date(2024, 1, 1)
TYPES = {
    "amount": pl.Float64, "big": pl.Int64, "code": pl.String, "zip": pl.String, "flag": pl.String, "paid": pl.Boolean,
    "day": pl.Date, "seen": pl.Datetime("us"), "month": pl.Int64, "single": pl.Float32,
}  # fmt: skip
#: What may stand in each column of a row to be scored: known and unknown levels, ranges, missing values.
VALUES = {
    "amount": st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 1e300, float("inf")])),
    "big": st.one_of(st.none(), st.integers(2**53 - 5, 2**53 + 5), st.integers(-(2**63), 2**63 - 1)),
    "code": st.sampled_from(["01", "02", "A1", "1", "1.0", "new", "=SUM(A1)", None]),
    "zip": st.sampled_from(["007", "0100", "7", "99999", None]),
    "flag": st.sampled_from(["True", "False", "Unknown", "true", "TRUE", None]),
    "paid": st.sampled_from([True, False, None]),
    "day": st.one_of(st.none(), st.dates(datetime.date(1990, 1, 1), datetime.date(2040, 1, 1))),
    "seen": st.one_of(st.none(), st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2030, 1, 1))),
    "month": st.one_of(st.none(), st.integers(0, 15)),
    "single": st.one_of(st.none(), st.floats(width=32, allow_nan=False), st.sampled_from([0.1, 0.2, 1e-3])),
}
ROWS = st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=6)


def framed(rows) -> pl.DataFrame:
    return pl.DataFrame({name: pl.Series([row[name] for row in rows], dtype=kind) for name, kind in TYPES.items()})


def training(size: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    rows = [
        {
            "amount": float(draw.normal()) if draw.random() > 0.1 else None,
            "big": int(2**53 + draw.integers(-50, 50)),
            "code": str(draw.choice(["01", "02", "A1"])),
            "zip": str(draw.choice(["007", "0100", "0200"])),
            "flag": str(draw.choice(["True", "False", "Unknown"])),
            "paid": bool(draw.random() < 0.5),
            "day": DAY + datetime.timedelta(days=int(draw.integers(0, 300))),
            "seen": datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(draw.integers(0, 10**8))),
            "month": int(draw.integers(1, 13)),
            "single": float(draw.normal()),
        }
        for _ in range(size)
    ]
    bad = [(row["code"] == "01") ^ (row["flag"] == "True") ^ (draw.random() < 0.1) for row in rows]
    return framed(rows).with_columns(y=pl.Series(bad).cast(pl.Int64))


class Arrow:
    """A table that shows itself through the Arrow interface alone."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


class Trained:
    def __init__(self, place):
        self.place, self.run = place, load_run(place / "run")


@pytest.fixture(scope="module", params=quick_first(["csv linear", "parquet linear", "csv trees", "parquet auto"]))
def trained(request, tmp_path_factory):
    """A run of each kind of model, trained on a text file or on a typed file with the same rows."""
    place = tmp_path_factory.mktemp("laws")
    kind, model = request.param.split()
    table = place / f"train.{kind}"
    training().write_csv(table) if kind == "csv" else training().write_parquet(table)
    run = fit_table(read_table(table), "y", ask("minimize fnr where fpr <= 20%"), Settings(epochs=3, model=model))
    save_run(place / "run", run)
    return Trained(place)


def scored(trained, data):
    notes = trained.run.schema.notes()
    return trained.run.scores(data, notes=notes), notes.sentences()


@cases(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, order=st.randoms(use_true_random=False))
def test_a_row_is_scored_by_itself(trained, rows, order):
    place = trained.place / "new.csv"
    framed(rows).write_csv(place)
    text = read_table(place)
    together, notes = scored(trained, text)
    for i, row in enumerate(rows):
        framed([row]).write_csv(place)
        assert torch.equal(scored(trained, read_table(place))[0], together[i : i + 1])
        assert torch.equal(scored(trained, framed([row]))[0], together[i : i + 1])
    assert scored(trained, framed(rows))[1] == notes
    # Reordering rows or columns changes nothing.
    places, names = list(range(len(rows))), text.columns
    order.shuffle(places)
    order.shuffle(names)
    moved, moved_notes = scored(trained, text[places].select(names))
    assert torch.equal(moved, together[places])
    assert moved_notes == notes


@cases(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_every_door_gives_the_same_scores_and_notes(trained, rows):
    frame, place = framed(rows), trained.place
    expected, notes = scored(trained, frame)
    plain = frame.with_columns(pl.col("single").cast(pl.String).cast(pl.Float64)).to_dict(as_series=False)
    frames = [pd.DataFrame(plain, dtype=object), plain]
    frames += [frame.with_columns(pl.col("day").cast(pl.Datetime(unit))) for unit in ("ms", "us", "ns")]
    frames += [frame.with_columns(pl.col("code", "flag").cast(pl.Categorical)), Arrow(frame)]
    for other in frames:
        found, told = scored(trained, other)
        assert torch.equal(found, expected)
        assert told == notes
    frame.write_csv(place / "new.csv")
    frame.write_parquet(place / "new.parquet")
    chunked = pytest.MonkeyPatch()
    chunked.setattr(exchange, "scan_table", lambda path, **how: scan_table(path, 60, **how))
    try:
        for data, *more in (["new.csv"], ["new.parquet"], ["-"], ["new.csv", "--stream"], ["new.parquet", "--stream"]):
            out, aside = predicted(place, data, *more)
            assert out["score"].cast(pl.Float32).to_list() == expected.tolist()
            assert [line.removeprefix("note: ") for line in aside] == notes
    finally:
        chunked.undo()


def predicted(place, data, *more):
    """The answer of `setpoint predict` and the lines beside it."""
    with pytest.MonkeyPatch.context() as patch:
        out, aside = io.StringIO(), io.StringIO()
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((place / "new.csv").read_bytes())))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", aside)
        with pytest.raises(SystemExit) as ended:
            main(["predict", str(place / "run"), data if data == "-" else str(place / data), *more])
    assert ended.value.code == 0, aside.getvalue()
    return pl.read_csv(io.StringIO(out.getvalue())), aside.getvalue().splitlines()


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=8)


@cases(12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells=st.lists(st.one_of(CELLS, st.sampled_from(["007", " 7 ", "9007199254740993", "NA"])), min_size=1))
def test_kept_columns_come_back_as_they_were(trained, cells):
    frame = training(len(cells)).drop("y").with_columns(customer=pl.Series(cells))
    frame.write_csv(trained.place / "new.csv")
    frame.write_parquet(trained.place / "new.parquet")
    for data, *more in (["new.csv"], ["new.parquet"], ["new.csv", "--stream"]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", io.StringIO())
            with pytest.raises(SystemExit):
                main(["predict", str(trained.place / "run"), str(trained.place / data), *more, "--keep", "customer",
                      "--out", str(trained.place / "kept.csv")])  # fmt: skip
        with (trained.place / "kept.csv").open(encoding="utf-8", newline="") as file:
            assert [row["customer"] for row in csv.DictReader(file)] == cells


WORDS = st.sampled_from(["01", "1", "1.0", "true", "Unknown", "2024-01-05", "2024-01-05 10:00", "[1, 2]", "x", "", "?"])


@cases(80)
@given(values=st.lists(WORDS, min_size=4, max_size=12))
def test_whatever_a_text_column_was_found_to_hold_each_value_is_read_alone(values):
    frame = pl.DataFrame({"a": values * 3, "x": np.arange(3.0 * len(values))})
    frame = frame.with_columns(y=pl.int_range(pl.len()) % 2)
    schema = Schema.of(frame, Target.of(frame, "y"))
    together = schema.encode(frame)
    for i in range(len(values)):
        assert torch.equal(schema.encode(frame[i : i + 1]), together[i : i + 1])
