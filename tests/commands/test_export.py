"""`setpoint export`: the file, and the script beside it, answer as `setpoint predict` does."""

from __future__ import annotations

import json
import sys

import onnx
import polars as pl
import pytest

from doors import main_ok
from setpoint.cli import main
from setpoint.export import predict
from setpoint.run.artefact import save_run
from tables import loans


@pytest.fixture
def exported(table, run, capsys):
    """A directory to be in, with the loans, a run and its exported model."""
    save_run("run", run)
    main_ok("export", "run", "out/model.onnx", "--data", "loans.csv")
    return table


def test_the_command_says_what_was_tried_and_written(exported, capsys):
    said = capsys.readouterr().out
    assert "400 given rows: all decisions equal, scores too" in said
    assert "Written to out/model.onnx and out/predict.py." in said
    held = {each.key: each.value for each in onnx.load("out/model.onnx").metadata_props}
    about = json.loads((exported / "run" / "setpoint.json").read_text())
    assert json.loads(held["setpoint.files"]) == about["files"]
    assert json.loads(held["setpoint.point"]) == about["point"]


def test_the_script_writes_what_setpoint_predict_writes(exported, capsys):
    new = loans(300, seed=5).with_columns(
        job=pl.Series([" clerk", "?", "pilot", "NA", "nurse"] * 60), married=pl.col("married").cast(pl.String)
    )
    new.write_csv("new.csv")
    main_ok("predict", "run", "new.csv", "--quiet", "--out", "answers.csv")
    capsys.readouterr()
    predict.main("out/model.onnx", "new.csv")
    assert capsys.readouterr().out == (exported / "answers.csv").read_text()


def test_the_script_refuses_files_that_it_cannot_read(exported):
    loans().drop("age").write_csv("less.csv")
    with pytest.raises(SystemExit, match=r"less\.csv lacks column 'age'"):
        predict.main("out/model.onnx", "less.csv")
    loans().with_columns(age=pl.lit("old")).write_csv("odd.csv")
    with pytest.raises(SystemExit, match=r"odd\.csv, rows 1 to 400: .*'old'"):
        predict.main("out/model.onnx", "odd.csv")


def test_the_script_is_short_and_needs_numpy_and_onnxruntime_alone(exported):
    text = (exported / "out" / "predict.py").read_text()
    assert len(text.splitlines()) < 60
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported - set(sys.stdlib_module_names) == {"numpy", "onnxruntime"}


def test_a_run_that_is_not_there_is_refused_before_anything_is_written(table, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["export", "nowhere", "model.onnx"])
    assert ended.value.code == 2
    assert "no run at nowhere" in capsys.readouterr().err
    assert not (table / "model.onnx").exists()
