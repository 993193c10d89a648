"""`setpoint export`: the file, and the script beside it, answer as `setpoint predict` does."""

from __future__ import annotations

import json
import sys

import onnx
import polars as pl
import pytest

from doors import main_ok
from marks import quick_first
from questions import QUESTIONS
from questions import table as questions_table
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


@pytest.mark.parametrize("kind", quick_first(dict.fromkeys(["lists", "several labels", "review bands", *QUESTIONS]), 3))
def test_every_kind_of_question_is_exported_and_answered_alike(kind, tmp_path, monkeypatch, capsys):
    question = QUESTIONS[kind]
    monkeypatch.chdir(tmp_path)
    others = [name for name in ("y", "kind", "z", "query") if name not in question.target.split(",")]
    lists = ("--lists", "query") if question.about_lists else ()
    questions_table().drop([name for name in others if name not in lists]).write_csv("t.csv")
    asked = ("--target", question.target, "--ask", question.ask, *lists)
    main_ok("fit", "t.csv", *asked, "--model", "linear", "--solver", "cross-entropy", "--quiet")
    main_ok("export", "run", "model.onnx", "--data", "t.csv", "--quiet")
    main_ok("predict", "run", "t.csv", "--quiet", "--out", "answers.csv")
    capsys.readouterr()
    predict.main("model.onnx", "t.csv")
    assert capsys.readouterr().out == (tmp_path / "answers.csv").read_text()


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
