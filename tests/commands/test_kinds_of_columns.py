"""Options that say what a column is taken as: in memory, streamed, stored with the run and applied to new rows."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import setpoint as sp
from setpoint.cli import main
from setpoint.run.settings import Settings
from setpoint.run.unfinished import Plan

ASK = "minimize fnr where fpr <= 20%"
OPTIONS = ["--categorical", "code", "--categorical", "size", "--numeric", "row", "--hash", "street", "--text", "note"]


def table(rows=400):
    draw = np.random.default_rng(0)
    code = draw.integers(0, 4, rows)
    return pl.DataFrame({
        "code": code, "size": draw.integers(1, 4, rows), "row": np.arange(rows),
        "street": [f"street {i}" for i in range(rows)],
        "note": [f"{word} {i}" for i, word in enumerate(draw.choice(["paid late", "paid"], rows))],
        "price": [f"{number:,.2f} €" for number in draw.uniform(1, 1e5, rows)],
        "y": np.isin(code, (0, 3)).astype(int),
    })  # fmt: skip


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_columns_are_taken_as_the_options_say(tmp_path, monkeypatch, capsys, more):
    monkeypatch.chdir(tmp_path)
    table().write_csv("t.csv")
    asked = ["fit", "t.csv", "--target", "y", "--ask", ASK, "--solver", "cross-entropy", "--epochs", "40", "--json"]
    with pytest.raises(SystemExit) as ended:
        main([*asked, *OPTIONS, *more])
    assert ended.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["kinds"] == {
        "code": "categorical", "size": "categorical", "row": "numeric", "street": "hash", "note": "text"
    }  # fmt: skip
    assert any("'price' holds numbers written as 1,234.5" in note and "€" in note for note in answer["notes"])
    run = sp.load_run("run")
    kinds = {column.name: type(column).__name__ for column in run.schema.columns}
    assert kinds == {
        "code": "Categorical", "size": "Categorical", "row": "Numeric", "street": "Hashed", "note": "Text",
        "price": "Numeric",
    }  # fmt: skip
    assert set(run.predict(table().drop("y")).tolist()) == {0, 1}


def test_a_plan_keeps_the_kinds_of_columns():
    plan = Plan("t.csv", "y", ASK, Settings(kinds={"code": "categorical"}))
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))).settings == plan.settings


def test_a_column_is_encoded_by_the_target(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = table().with_columns(zip=pl.Series([f"z{i % 40}" for i in range(400)]))
    frame = frame.with_columns(y=(pl.int_range(400) % 40 < 12).cast(pl.Int64))
    frame.write_csv("t.csv")
    with pytest.raises(SystemExit) as ended:
        main([
            "fit", "t.csv", "--target", "y", "--ask", ASK, "--solver", "cross-entropy", "--epochs", "40", "--json",
            "--columns", "zip,size,price", "--target-encode", "zip",
        ])  # fmt: skip
    assert ended.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"]["cross-entropy"]["test"]["objective"] < 0.1
    (column,) = (one for one in sp.load_run("run").schema.columns if one.name == "zip")
    assert type(column).__name__ == "TargetMean"
    # Training rows are known again, although training saw other numbers for them.
    frame.head(390).write_csv("most.csv")
    with pytest.raises(SystemExit):
        main(["evaluate", "run", "most.csv", "--ignore-extra", "--json"])
    assert [one["code"] for one in json.loads(capsys.readouterr().out)["warnings"]] == ["evaluated-on-training"]
