"""`setpoint export`: the file, and the script beside it, answer as `setpoint predict` does."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
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
    held = onnx_about("out/model.onnx")
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
    says = "odd.csv, row 1: column 'age' held numbers in training but holds 'old'; give it as numbers such as 1234.5"
    with pytest.raises(SystemExit, match=says):
        predict.main("out/model.onnx", "odd.csv")
    for model, rows, said in (
        ("odd.csv", "odd.csv", "odd.csv is no model that setpoint export wrote"),
        ("out/model.onnx", "none.csv", "none.csv cannot be read: No such file or directory"),
        ("out/model.onnx", "latin.csv", "latin.csv, row 1 or later: it cannot be read as UTF-8 text"),
    ):
        Path("latin.csv").write_bytes(b"age,caf\xe9\n1,2\n")
        with pytest.raises(SystemExit, match=said):
            predict.main(model, rows)


@pytest.mark.parametrize(
    "lines",
    {
        "a value too few": ("1,2,u\n1,2\n", "row 2: it holds 2 values for 3 columns"),
        "a value too many, as of a decimal comma without quotes": ("1,2,u\n1,5,2,u\n", "row 2: it holds 4 values"),
        "quotes that do not end": ('1,2,"u\n3,4,v\n', "row 1 or later: it cannot be read as UTF-8 text with values"),
        "digits of another script": (
            "\uff11,2,u\n",
            "row 1: column 'a' held numbers in training but holds '\uff11'; give",
        ),
        "an underscore": (
            "1_0,2,u\n",
            "row 1: column 'a' held numbers in training but holds '1_0'; give it as numbers",
        ),
    }.items(),
    ids=lambda each: each[0],
)
def test_the_script_refuses_lines_that_setpoint_predict_refuses(lines, tmp_path, monkeypatch, capsys):
    a_run_of_two_numbers_and_a_word(tmp_path, monkeypatch)
    text, said = lines[1]
    (tmp_path / "new.csv").write_text("a,b,w\n" + text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "new.csv"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit, match=f"new.csv, {said}"):
        predict.main("model.onnx", "new.csv")


def test_the_script_refuses_a_column_that_stands_twice(tmp_path, monkeypatch):
    a_run_of_two_numbers_and_a_word(tmp_path, monkeypatch)
    (tmp_path / "new.csv").write_text("a,b,w,a\n1,2,u,9\n")
    with pytest.raises(SystemExit, match="lacks column 'a', which the model takes, or has it twice"):
        predict.main("model.onnx", "new.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_script_reads_the_separators_that_setpoint_predict_reads(separator, tmp_path, monkeypatch, capsys):
    table = a_run_of_two_numbers_and_a_word(tmp_path, monkeypatch).drop("y")
    table.rename({"b": " b "}).write_csv("new.csv", separator=separator)
    assert_same_answers(capsys)


def a_run_of_two_numbers_and_a_word(place, monkeypatch):
    """A table, and a run with its exported model."""
    monkeypatch.chdir(place)
    draw = np.random.default_rng(0)
    a = draw.normal(size=300)
    table = pl.DataFrame({"a": a, "b": draw.normal(size=300), "w": draw.choice(["u", "v"], 300), "y": a > 0.3})
    table.write_csv("t.csv")
    exported_from("t.csv")
    return table


def exported_from(file):
    main_ok("fit", file, "--target", "y", "--ask", "minimize fnr where fpr <= 20%", "--model", "linear", "--quiet")
    main_ok("export", "run", "model.onnx", "--quiet")


def assert_same_answers(capsys):
    main_ok("predict", "run", "new.csv", "--quiet", "--out", "answers.csv")
    capsys.readouterr()
    predict.main("model.onnx", "new.csv")
    assert capsys.readouterr().out == Path("answers.csv").read_text()


def test_numbers_and_dates_as_people_write_them_are_answered_alike(tmp_path, monkeypatch, capsys):
    # The script once took 1.234 for 1.234 where training took it for 1234, and decided by it.
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    amount = np.abs(draw.normal(size=400)) * 3000
    german = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in amount]
    days = [f"{day:02d}.{month:02d}.2024" for day, month in zip(draw.integers(1, 29, 400), draw.integers(1, 13, 400))]
    pl.DataFrame({
        "plain": german, "money": [f"€ {text}" for text in german], "thousands": [f"{value:,.1f}" for value in amount],
        "share": [f"{share:.1f}%" for share in 100 * draw.random(400)], "day": days,
        "y": amount > 2000 + 1500 * draw.normal(size=400),
    }).write_csv("t.csv", separator=";")  # fmt: skip
    exported_from("t.csv")
    awkward = [
        "1.234", "12.500", "999", "-0", "1.234,5", "", "(1.000,50)", "\u221212,5", "1'000", " 2 500,0 ", "NA", "-inf",
    ]  # fmt: skip
    new = pl.read_csv("t.csv", separator=";", infer_schema=False)[: len(awkward)].drop("y")
    behind = [f"{text} €" for text in german[: len(awkward)]]
    days[:3] = ["1.2.2024", "", "29.02.2024"]
    new = new.with_columns(
        pl.Series("plain", awkward), pl.Series("money", behind), pl.Series("day", days[: new.height])
    )
    new.with_columns(pl.Series("day", days[: new.height])).write_csv("new.csv")
    assert_same_answers(capsys)
    assert json.loads(onnx_about("model.onnx")["setpoint.inputs"])[0]["spelling"]
    odds = {"plain": "1.5", "money": "$ 1", "thousands": "1,5", "share": "5 €", "day": "2024-03-01"}
    for column, odd in odds.items():
        new.with_columns(pl.lit(odd).alias(column)).write_csv("odd.csv")
        with pytest.raises(SystemExit) as ended:
            main(["predict", "run", "odd.csv"])
        assert ended.value.code == 2
        said = re.escape(f"holds {odd!r}; give it as")
        with pytest.raises(SystemExit, match=f"odd.csv, row 1: column '{column}' held .* {said}"):
            predict.main("model.onnx", "odd.csv")


DAYS = [f"2024-{1 + row % 12:02d}-{1 + row % 28:02d}" for row in range(300)]
#: Columns of one kind, other texts that `setpoint predict` reads, and texts that it refuses.
OTHER_FORMS = {
    "days": (DAYS, ["2024-03-01T12:30", "2024-03-01 12:30:00.25", " 2024-02-29 ", "NA"],
             ["2024-02-30", "2024-03-01T12:30Z", "01.03.2024", "soon", "20240301", "2024-03-01T25:00"]),
    "times with a zone": ([f"{day}T12:00:00+01:00" for day in DAYS],
                          ["2024-03-01T12:30Z", "2024-03-01 12:30:00.5-0530", "2024-03-01T12:30:01 +02:00", ""],
                          ["2024-03-01", "2024-03-01T12:30 +02:00", "2023-02-29T12:30Z", "2024-03-01T12:30:00+02"]),
    "times of day": ([f"{row % 24:02d}:{row % 60:02d}" for row in range(300)], ["01:02:03.25", "?"],
                     ["24:00", "1:30", "12:30 PM", "2024-03-01"]),
    "days with dots": ([".".join(reversed(day.split("-"))) for day in DAYS], ["1.2.2024 17:05", "01.02.2024 5:05 PM"],
                       ["2024-03-01", "31.02.2024", "01/02/2024"]),
    "lists": ([f"[{row % 7}, {row % 5}.5]" for row in range(300)], ["[1,2]", "[nan, 1]", "[1, inf]", ""],
              ["[1]", "[1, null]", "[true, 1]", '["1", 2]', "(1, 2)", "[1, 2", "1"]),
    "booleans": (["true", "false", ""] * 100, ["True", " FALSE ", "n/a"], ["yes", "1", "t"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_FORMS)
def test_other_forms_are_answered_alike_or_refused_in_the_same_words(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    column, read, refused = OTHER_FORMS[kind]
    x = np.random.default_rng(0).normal(size=300)
    pl.DataFrame({"x": x, "c": column, "y": x > 0.3}).write_csv("t.csv")
    exported_from("t.csv")
    pl.DataFrame({"x": 0.25, "c": [column[0], *read]}).write_csv("new.csv")
    assert_same_answers(capsys)
    for odd in refused:
        pl.DataFrame({"x": 0.25, "c": [column[0], odd]}).write_csv("odd.csv")
        with pytest.raises(SystemExit):
            main(["predict", "run", "odd.csv"])
        wanted, _, advice = capsys.readouterr().err.strip().partition("holds ")
        with pytest.raises(SystemExit) as ended:
            predict.main("model.onnx", "odd.csv")
        found = str(ended.value).removeprefix("odd.csv, row 2: ")
        assert found.partition("holds ")[0] == wanted.removeprefix("setpoint: ")
        assert found.partition("; ")[0].endswith(f"holds {odd!r}")
        assert found.partition("; ")[2] == advice.partition("; ")[2]
        assert not capsys.readouterr().err


def test_a_row_that_the_model_refuses_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    x, g = draw.normal(size=600), draw.choice(["a", "b"], 600)
    pl.DataFrame({"x": x, "g": g, "y": x > 0.3 * draw.normal(size=600)}).write_csv("t.csv")
    asked = ("--ask", "minimize fnr where fpr.gap(g) <= 20%", "--model", "linear")
    main_ok("fit", "t.csv", "--target", "y", *asked, "--quiet")
    main_ok("export", "run", "model.onnx", "--quiet")
    pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "c"]}).write_csv("new.csv")
    with pytest.raises(SystemExit, match=r"new\.csv, row 3: the model has no decision for its group or its list"):
        predict.main("model.onnx", "new.csv")


def test_a_mark_of_utf_8_on_standard_input_is_no_part_of_a_name(exported, capsys, monkeypatch):
    new = loans(30, seed=5)
    new.select(sorted(new.columns, reverse=True)).write_csv("new.csv")
    capsys.readouterr()
    predict.main("out/model.onnx", "new.csv")
    expected = capsys.readouterr().out
    marked = b"\xef\xbb\xbf" + (exported / "new.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(marked), encoding="utf-8", newline=""))
    predict.main("out/model.onnx", "-")
    assert capsys.readouterr().out == expected


def onnx_about(file):
    return {each.key: each.value for each in onnx.load(file).metadata_props}


def test_the_script_is_short_and_needs_numpy_and_onnxruntime_alone(exported):
    text = (exported / "out" / "predict.py").read_text()
    assert len(text.splitlines()) < 120
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported - set(sys.stdlib_module_names) == {"numpy", "onnxruntime"}


def test_a_run_that_is_not_there_is_refused_before_anything_is_written(table, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["export", "nowhere", "model.onnx"])
    assert ended.value.code == 2
    assert "no run at nowhere" in capsys.readouterr().err
    assert not (table / "model.onnx").exists()
