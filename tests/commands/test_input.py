"""The input of the commands: files of all kinds, standard input, and columns, rows and classes by option."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import setpoint
from doors import ASK, main_ok
from marks import slow
from setpoint import ask
from setpoint.cli import main
from setpoint.data.scan import scan_table
from setpoint.run.artefact import UNFINISHED, load_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.run.unfinished import COPY
from setpoint.train.checkpoint import STATE
from tables import loans

QUICK = ["--target", "default", "--ask", ASK, "--solver", "cross-entropy", "--epochs", "2"]


def process(*arguments, cwd, stdin=b""):
    """`python -m setpoint` in a process of its own, fed with bytes."""
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    command = [sys.executable, "-m", "setpoint", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, timeout=100, check=False)


def refused(capsys, *arguments):
    """The sentence of a refusal."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def thresholds(*places):
    return [load_run(place).point.threshold for place in places]


def without_names(run):
    """What a run stores of its data, but for the names of the files."""
    return {name: value for name, value in run.about["data"].items() if name != "files"}


@slow
def test_fit_from_standard_input_is_fit_from_the_file(table):
    text = loans().write_csv(separator=";").encode("utf-16")
    piped = process("fit", "-", *QUICK, cwd=table, stdin=text)
    assert piped.returncode == 0, piped.stderr
    said = piped.stderr.decode()
    assert "note: standard input is UTF-16; --encoding sets another" in said
    assert "note: standard input is separated by ';'; --separator sets another" in said
    main_ok("fit", "loans.csv", *QUICK, "--out", "file")
    one, other = load_run("run"), load_run("file")
    assert one.point == other.point
    assert without_names(one) == without_names(other)
    assert "standard input is UTF-16; --encoding sets another" in one.about["notes"]
    assert not (table / "run" / COPY).exists()


@slow
def test_a_run_from_standard_input_goes_on_after_a_kill(table):
    """The table has gone with the pipe, so a copy is kept until the run is whole."""
    asked = [*QUICK[:-1], "8", "--model", "mlp", "--batch-size", "20"]
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    child = subprocess.Popen(
        [sys.executable, "-m", "setpoint", "fit", "-", *asked], cwd=table, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    child.stdin.write(loans().write_csv().encode())
    child.stdin.close()
    patience = time.monotonic() + 60
    while not (table / "run" / UNFINISHED / STATE).exists() and time.monotonic() < patience:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert (table / "run" / COPY).is_file()
    answer = process("fit", "--resume", "run", cwd=table)
    assert answer.returncode == 0, answer.stderr
    assert not (table / "run" / COPY).exists()
    main_ok("fit", "loans.csv", *asked, "--out", "file")
    assert load_run("run").point == load_run("file").point


def test_what_is_wrong_with_standard_input_leaves_nothing_behind(table, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert refused(capsys, "fit", "-", *QUICK) == "setpoint: no column 'default' to predict; there are 'a', 'b'\n"
    assert not Path("run").exists()


def test_standard_input_can_be_streamed(table, monkeypatch):
    main_ok("fit", "loans.csv", *QUICK, "--stream", "--out", "file")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("loans.csv").read_bytes())))
    main_ok("fit", "-", *QUICK, "--stream")
    assert len(set(thresholds("run", "file"))) == 1
    assert not Path("run", COPY).exists()


@slow
def test_a_folder_and_several_files_are_the_table(table):
    os.mkdir("months")
    for month, rows in enumerate((loans()[:150], loans()[150:260], loans()[260:])):
        rows.write_parquet(f"months/{month}.parquet")
        rows.write_csv(f"{month}.csv")
    fitted = process("fit", "months", *QUICK, "--out", "folder", cwd=table)
    assert fitted.returncode == 0, fitted.stderr
    main_ok("fit", "loans.parquet", *QUICK, "--out", "one")
    main_ok("fit", "0.csv", "1.csv", "2.csv", *QUICK, "--out", "several")
    main_ok("fit", "loans.csv", *QUICK, "--out", "text")
    assert without_names(load_run("folder")) == without_names(load_run("one"))
    assert without_names(load_run("several")) == without_names(load_run("text"))
    assert len(set(thresholds("folder", "one", "several", "text"))) == 1
    main_ok("predict", "one", "months", "--out", "answer.csv")
    main_ok("predict", "one", "loans.parquet", "--out", "expected.csv")
    assert Path("answer.csv").read_bytes() == Path("expected.csv").read_bytes()
    main_ok("predict", "one", "0.csv", "1.csv", "2.csv", "--stream", "--out", "streamed.csv")
    assert Path("streamed.csv").read_bytes() == Path("expected.csv").read_bytes()


@slow
def test_predict_and_evaluate_read_compressed_files(table, capsys):
    main_ok("fit", "loans.csv", *QUICK)
    Path("new.csv.gz").write_bytes(gzip.compress(loans(30, seed=1).write_csv(separator="\t").encode()))
    answer = process("predict", "run", "new.csv.gz", cwd=table)
    assert (answer.returncode, answer.stderr) == (
        0,
        b"note: new.csv.gz is separated by tabs; --separator sets another\n",
    )
    assert pl.read_csv(io.BytesIO(answer.stdout))["score"].to_list() == pytest.approx(
        load_run("run").scores(loans(30, seed=1)).tolist(), rel=1e-6
    )
    capsys.readouterr()
    loans(300, seed=2).write_ndjson("later.jsonl")
    main_ok("evaluate", "run", "later.jsonl", "--json")
    assert json.loads(capsys.readouterr().out)["rows"] == 300


@slow
def test_compare_reads_what_fit_reads(table, capsys):
    loans().write_csv("loans.txt", separator="|")
    common = ["--target", "default", "--ask", ASK, "--epochs", "1", "--trials", "1", "--solvers", "weighted", "--json"]
    answers = []
    for path in ("loans.txt", "loans.csv"):
        main_ok("compare", path, *common, "--drop", "id,currency")
        answers.append(json.loads(capsys.readouterr().out))
    assert "loans.txt is separated by '|'; --separator sets another" in answers[0]["notes"]
    best = [[one["best_on_test"] for one in answer["solvers"]] for answer in answers]
    assert best[0] == best[1]


@pytest.mark.parametrize("more", [[], ["--stream"]], ids=["in memory", "streamed"])
def test_columns_by_name(table, capsys, more):
    chosen = ["--columns", "amount,job", "--columns", "married", "--drop", "job"]
    main_ok("fit", "loans.csv", *QUICK, *chosen, *more)
    saved = load_run("run")
    assert [column.name for column in saved.schema.columns] == ["amount", "married"]
    assert dict(saved.schema.dropped)["job"] == "--drop names it"
    assert dict(saved.schema.dropped)["age"] == "--columns does not name it"
    assert (saved.about["settings"]["drop"], saved.about["settings"]["columns"]) == (["job"], ["amount,job", "married"])
    assert not [note for note in saved.about["notes"] if "is not used" in note]
    # Nor are the other columns needed later, nor are they in the way.
    new = loans(20, seed=1)
    new.write_csv("all.csv")
    new.select("amount", "married").write_csv("few.csv")
    main_ok("predict", "run", "all.csv", "--out", "a.csv", *more)
    main_ok("predict", "run", "few.csv", "--out", "b.csv", *more)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    capsys.readouterr()
    new.with_columns(other=1).write_csv("odd.csv")
    assert "the table has 'other', which training never had" in refused(capsys, "predict", "run", "odd.csv", *more)


def test_a_run_on_some_columns_is_the_run_on_a_table_of_them(table):
    main_ok("fit", "loans.csv", *QUICK, "--drop", "age,region", "--out", "dropped")
    loans().drop("age", "region").write_csv("fewer.csv")
    main_ok("fit", "fewer.csv", *QUICK, "--out", "fewer")
    assert len(set(thresholds("dropped", "fewer"))) == 1


def test_a_column_that_is_not_there_gets_the_nearest_name(table, capsys):
    said = refused(capsys, "fit", "loans.csv", *QUICK, "--drop", "age,regoin")
    assert said == "setpoint: no column 'regoin' for --drop; did you mean 'region'?\n"
    said = refused(capsys, "fit", "loans.csv", *QUICK, "--columns", "Amount")
    assert said == "setpoint: no column 'Amount' for --columns; did you mean 'amount'?\n"
    said = refused(capsys, "fit", "loans.csv", *QUICK, "--drop", "default")
    assert said == "setpoint: 'default' is the column to predict; leave it out of --drop\n"


def test_a_name_with_a_comma_in_it_is_one_column():
    names = ["a,b", "a", "c", "y"]
    assert list(Settings(drop=("a,b",)).left_out(names, ("y",))) == ["a,b"]
    assert list(Settings(drop=("a, c",)).left_out(names, ("y",))) == ["a", "c"]
    assert list(Settings(columns=("a,b", "y")).left_out(names, ("y",))) == ["a", "c"]
    assert Settings().left_out(names, ("y",)) == {}


def test_a_dropped_column_can_still_name_the_groups(table):
    grouped = "minimize error where recall.gap(married) <= 90%"
    options = ["--target", "default", "--ask", grouped, "--solver", "cross-entropy", "--epochs", "2"]
    main_ok("fit", "loans.csv", *options, "--drop", "married")
    saved = load_run("run")
    assert "married" not in [column.name for column in saved.schema.columns]
    assert set(saved.point.thresholds.by_group) == {"true", "false"}
    main_ok("predict", "run", "loans.csv", "--out", "answer.csv")


def unlabelled(frame):
    """The frame with a row without a label after every second one."""
    gap = frame.with_columns(default=pl.Series(["?", None] * (frame.height // 2), dtype=pl.String))
    both = [
        frame[i : i + 1] if part == 0 else gap[i : i + 1] for i in range(frame.height) for part in (0, 1)[: 1 + i % 2]
    ]
    return pl.concat(both)


@pytest.mark.parametrize("more", [[], ["--stream"]], ids=["in memory", "streamed"])
def test_rows_without_a_label_are_left_out_and_counted(table, capsys, monkeypatch, more):
    for place in ("setpoint.run.unfinished.scan_table", "setpoint.data.exchange.scan_table"):
        monkeypatch.setattr(place, lambda path, **how: scan_table(path, 4000, **how))
    unlabelled(loans()).write_csv("gaps.csv")
    said = refused(capsys, "fit", "gaps.csv", *QUICK, *more)
    assert "'default' is missing in 200 of 600 rows; fill it in, or drop those rows, as setpoint fit does" in said
    # A column of positions tells the table with gaps from the one without; all else is the same.
    main_ok("fit", "gaps.csv", *QUICK, "--drop-missing-target", "--drop", "id", "--out", "gaps", *more)
    main_ok("fit", "loans.csv", *QUICK, "--drop", "id", "--out", "whole", *more)
    assert "note: 200 rows without a label in 'default' are left out" in capsys.readouterr().err
    assert len(set(thresholds("gaps", "whole"))) == 1
    assert load_run("gaps").about["rows"] == load_run("whole").about["rows"]
    unlabelled(loans(100, seed=1)).write_csv("later.csv")
    loans(100, seed=1).write_csv("complete.csv")
    answers = []
    for run, path in (("gaps", "later.csv"), ("whole", "complete.csv")):
        with pytest.raises(SystemExit):
            main(["evaluate", run, path, "--json", *more])
        heard = capsys.readouterr()
        answers.append(json.loads(heard.out))
        assert ("note: 50 rows without a label are left out, as in training" in heard.err) == (run == "gaps")
    assert answers[0] == answers[1]
    assert "fill it in" in refused(capsys, "evaluate", "whole", "later.csv", *more)
    loans(20).with_columns(default=pl.lit("?")).write_csv("none.csv")
    assert "'default' is missing in every row" in refused(capsys, "evaluate", "gaps", "none.csv", *more)


@pytest.mark.parametrize("more", [[], ["--stream"]], ids=["in memory", "streamed"])
def test_one_class_against_the_rest(table, capsys, more):
    kinds = np.where(loans()["default"] == "yes", "late", np.where(np.arange(400) % 2, "paid", "open"))
    frame = loans().with_columns(default=pl.Series(kinds))
    frame.write_csv("kinds.csv")
    said = refused(capsys, "fit", "kinds.csv", *QUICK, *more)
    assert "must hold two classes, but holds 3" in said
    assert "or find one among the rest with --positive" in said
    assert "no class 'lost' in target 'default', which holds" in refused(
        capsys, "fit", "kinds.csv", *QUICK, "--positive", "lost", *more
    )
    main_ok("fit", "kinds.csv", *QUICK, "--positive", "Late", *more)
    said = capsys.readouterr()
    assert "Positive is 'late' in 'default', as asked." in said.out
    (note,) = [line for line in said.err.splitlines() if "classes" in line]
    assert note in {
        f"note: 'default' holds 3 classes: 'late' against {two}" for two in ("'open', 'paid'", "'paid', 'open'")
    }
    # The same as one class against one other.
    two = frame.with_columns(default=pl.col("default").replace({"paid": "no", "open": "no"}))
    two.write_csv("two.csv")
    main_ok("fit", "two.csv", *QUICK, "--positive", "late", "--out", "two", *more)
    assert len(set(thresholds("run", "two"))) == 1
    # Evaluation knows the three classes and no other.
    capsys.readouterr()
    codes = []
    for run, path in (("run", "kinds.csv"), ("two", "two.csv")):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", run, path, "--quiet"])
        codes.append(ended.value.code)
    assert codes[0] == codes[1] != 2
    frame.with_columns(default=pl.col("default").replace({"paid": "lost"})).write_csv("odd.csv")
    assert "holds 'lost'; known are" in refused(capsys, "evaluate", "run", "odd.csv")
    main_ok("report", "run")
    assert "against " in Path("run/report.html").read_text()


def test_a_comma_at_the_end_of_each_line_is_no_column_that_training_lacked(table, capsys):
    main_ok("fit", "loans.csv", *QUICK)
    lines = loans(20, seed=1).write_csv().splitlines()
    Path("new.csv").write_text("".join(f"{line},\n" for line in lines))
    main_ok("predict", "run", "new.csv", "--out", "answer.csv")
    assert pl.read_csv("answer.csv").height == 20


def test_how_the_file_was_read_is_told_where_the_table_is_refused(table, capsys):
    Path("t.csv").write_text("5.1;3.5;0\n4.9;3.0;1\n")
    said = refused(capsys, "fit", "t.csv", *QUICK).splitlines()
    assert said == [
        "note: t.csv is separated by ';'; --separator sets another",
        "note: t.csv has numbers such as '5.1' in its line of names; if that line is a row, use --no-header",
        "setpoint: no column 'default' to predict; there are '5.1', '3.5', '0'",
    ]


def test_a_table_without_names(table):
    Path("bare.csv").write_text(loans().write_csv(include_header=False))
    main_ok("fit", "bare.csv", "--no-header", *QUICK[2:], "--target", "column_8")
    main_ok("fit", "loans.csv", *QUICK, "--out", "named")
    assert len(set(thresholds("run", "named"))) == 1
    main_ok("predict", "run", "bare.csv", "--no-header", "--out", "answer.csv")


def test_standard_input_stands_alone(table, capsys):
    assert "give - alone, or files alone" in refused(capsys, "fit", "-", "loans.csv", *QUICK)


def test_settings_of_columns_go_through_python_too():
    kinds = pl.Series(["a", "b", "c"] * 100)
    frame = pl.DataFrame({"x": np.arange(300) % 3, "z": np.arange(300) * 1.0, "y": kinds})
    run = fit_table(frame, "y", ask(ASK), Settings(epochs=1, drop=("z",)), positive="c")
    assert run.schema.target.rest
    assert run.notes[0].startswith("'y' holds 3 classes: 'c' against ")
    assert run.schema.labels(frame).tolist() == [0.0, 0.0, 1.0] * 100
