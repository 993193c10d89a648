"""The command line as a user meets it: real files, real processes, one sentence for every mistake."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import setpoint
from setpoint import ask
from setpoint.artefact import load_run, version
from setpoint.cli import main
from setpoint.run import fit_table
from setpoint.settings import Settings
from setpoint.show import progress, result_table, sentences
from setpoint.table.frame import read_table
from tables import loans

ASK = "minimize fnr where fpr <= 20%"


def setpoint_process(*arguments, cwd, path=()):
    """`python -m setpoint.cli` in a process of its own."""
    source = str(Path(setpoint.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), source])}
    command = [sys.executable, "-m", "setpoint.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A directory to be in, with the loans as CSV and as Parquet."""
    loans().write_csv(tmp_path / "loans.csv")
    loans().write_parquet(tmp_path / "loans.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fit_and_predict_in_processes_of_their_own(table):
    fit = setpoint_process("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "20", cwd=table)
    assert fit.returncode == 0, fit.stderr
    assert fit.stderr.splitlines() == [
        "note: column 'id' is not used: no value occurs twice, as in a name or an identifier",
        "note: column 'currency' is not used: it is constant",
    ]
    assert "Anchored(0.25)" in fit.stdout
    assert "cross-entropy" in fit.stdout
    assert "Positive is 'yes' in 'default', the one that says yes; --positive changes it." in fit.stdout
    assert sorted(p.name for p in table.iterdir()) == ["loans.csv", "loans.parquet", "run"]

    saved = load_run(table / "run")
    test = json.loads((table / "run" / "setpoint.json").read_text())["results"]["default"]["test"]
    assert f"{saved.point.threshold:.4g}: fnr {100 * test['objective']:.2f}% on test" in fit.stdout

    predict = setpoint_process("predict", "run", "loans.parquet", cwd=table)
    assert predict.returncode == 0, predict.stderr
    answer = pl.read_csv(io.StringIO(predict.stdout))
    assert answer.columns == ["score", "decision"]
    scores = saved.scores(loans())
    assert answer["decision"].to_list() == saved.point.predict(scores).tolist()
    assert answer["score"].to_list() == pytest.approx(scores.tolist(), rel=1e-6)


def test_decisions_are_those_that_fit_judged(table):
    main_ok("fit", "loans.parquet", "--target", "default", "--ask", ASK, "--epochs", "5", "--model", "mlp")
    main_ok("predict", "run", "loans.parquet", "--out", "answer.csv")
    frame = loans().with_columns(decision=pl.read_csv("answer.csv")["decision"])
    run = fit_table(loans(), "default", ask(ASK), Settings(epochs=5, model="mlp"))
    labels = run.schema.labels(frame)
    counted = sum(point.rates["recall"] * run.sizes[part]["positives"] for part, point in run.chosen.judged.items())
    assert int(frame["decision"].to_numpy()[labels.numpy() > 0].sum()) == round(counted)


def main_ok(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 0


def test_json_for_machines(table, capsys):
    main_ok(
        "fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "3", "--positive", "no", "--json",
        "--confidence", "0.9", "--out", "a/b", "--seed", "3", "--batch-size", "64", "--solver", "weighted",
    )  # fmt: skip
    answer = json.loads(capsys.readouterr().out)
    assert answer["out"] == "a/b"
    assert answer["schema"]["target"]["positive"] == "no"
    assert answer["point"]["certificate"]["confidence"] == 0.9
    assert list(answer["results"]) == ["weighted", "cross-entropy"]
    expected = {"epochs": 3, "batch_size": 64, "seed": 3, "solver": "weighted", "model": "linear"}
    assert expected.items() <= answer["settings"].items()
    assert load_run("a/b").schema.target.positive == "no"


def test_an_area_predicts_one_decision_a_point(table, capsys):
    area = "maximize recall over fpr in [0%, 20%] with 3 points"
    main_ok("fit", "loans.csv", "--target", "default", "--ask", area, "--epochs", "3")
    assert "recall over fpr" in capsys.readouterr().out
    main_ok("predict", "run", "loans.csv")
    answer = pl.read_csv(io.StringIO(capsys.readouterr().out))
    assert answer.columns == ["score", "decision_1", "decision_2", "decision_3"]


def test_predict_notes_what_training_did_not_see(table, capsys):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "2")
    capsys.readouterr()
    loans(5, seed=1).drop("default").with_columns(job=pl.lit("pilot"), more=1).write_csv("new.csv")
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "new.csv"])
    refused = capsys.readouterr()
    assert (ended.value.code, refused.out) == (2, "")
    assert "the table has 'more', which training never had" in refused.err
    main_ok("predict", "run", "new.csv", "--out", "-", "--ignore-extra")
    heard = capsys.readouterr()
    assert len(heard.out.splitlines()) == 6
    assert "note: column 'more' was not there in training" in heard.err
    assert "'job': levels that training never saw in 5 of 5 rows, such as 'pilot'" in heard.err


FIT = ["fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1"]
MISTAKES = {
    "no file": (["fit", "no.csv", *FIT[2:]], "no file at no.csv"),
    "no target": (["fit", "loans.csv", "--target", "defalt", *FIT[4:]], "did you mean 'default'"),
    "three classes": (["fit", "loans.csv", "--target", "job", *FIT[4:]], "is missing in"),
    "many classes": (["fit", "loans.csv", "--target", "age", *FIT[4:]], "must hold two classes"),
    "one class": (["fit", "loans.csv", "--target", "currency", *FIT[4:]], "two classes, but holds 1: 'EUR'"),
    "bad ask": ([*FIT, "--ask", "minimize fnr wher fpr <= 1%"], "did you mean 'where'"),
    "gap": ([*FIT, "--ask", "minimize fnr where recall.gap(married) <= 1%"], "compares groups"),
    "positive": ([*FIT, "--positive", "maybe"], "no class 'maybe'"),
    "model": ([*FIT, "--model", "tree"], "model 'tree' is none of linear, mlp"),
    "solver": ([*FIT, "--solver", "magic"], "solver 'magic' is none of"),
    "epochs": ([*FIT, "--epochs", "0"], "epochs must be at least 1"),
    "confidence": ([*FIT, "--confidence", "95"], "confidence must lie between 0 and 1"),
    "too few": ([*FIT, "--ask", "minimize fnr where fpr <= 1%", "--confidence", "0.95"], "needs 299 negatives"),
    "no certificate": ([*FIT, "--ask", "maximize f1", "--confidence", "0.95"], "no certificate"),
    "shares": ([*FIT, "--shares", "0.5,0.5"], "shares must be four numbers"),
    "out is a file": ([*FIT, "--out", "loans.csv"], "is not a directory"),
    "out under a file": ([*FIT, "--out", "loans.csv/run"], "choose another place"),
    "out is not ours": ([*FIT, "--out", "."], "which no run wrote"),
    "empty file": (["fit", "empty.csv", *FIT[2:]], "is empty"),
    "semicolons": (["fit", "semicolons.csv", *FIT[2:]], "separated by ';'"),
    "twice": (["fit", "twice.csv", *FIT[2:]], "more than one column named 'a'"),
    "latin": (["fit", "latin.csv", *FIT[2:]], "not UTF-8"),
    "holes": (["fit", "holes.csv", *FIT[2:]], "'default' is missing in 3 of 400 rows"),
    "few rows": (["fit", "few.csv", *FIT[2:]], "too few to split"),
    "no table": (["fit", *FIT[2:]], "name a table"),
    "no ask": (FIT[:4], "name a table, what to predict with --target, and --ask"),
    "nothing to resume": (["fit", "--resume", "nowhere"], "no unfinished run at nowhere"),
    "resume and more": (["fit", "--resume", "nowhere", "--epochs", "3"], "leave out epochs"),
    "checkpoints": ([*FIT, "--checkpoint-seconds", "-1"], "0 or more"),
    "no run": (["predict", "nowhere", "loans.csv"], "no run at nowhere"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_in_one_sentence_and_leave_nothing(table, capsys, name):
    arguments, message = MISTAKES[name]
    (table / "empty.csv").write_text("")
    (table / "semicolons.csv").write_text("a;default\n1;2\n")
    (table / "twice.csv").write_text("a,a,default\n1,2,3\n")
    (table / "latin.csv").write_bytes("a,default\n\xe9,1\n".encode("latin-1"))
    holes = pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("default"))
    loans().with_columns(default=holes).write_csv(table / "holes.csv")
    loans(8).write_csv(table / "few.csv")
    before = sorted(table.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    heard = capsys.readouterr()
    assert ended.value.code == 2
    assert heard.out == ""
    assert heard.err.startswith("setpoint: ")
    assert heard.err.count("\n") == 1
    assert message in heard.err
    assert sorted(table.rglob("*")) == before


def test_predict_refuses_tables_and_places_that_do_not_fit(table, capsys):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1")
    loans().drop("age").write_csv("short.csv")
    capsys.readouterr()
    for arguments, message in (
        (["predict", "run", "short.csv"], "lacks 'age'"),
        (["predict", "run", "loans.csv", "--out", "no/such/place.csv"], "no/such"),
        (FIT, "holds an earlier run; replace it with --force"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        heard = capsys.readouterr()
        assert (ended.value.code, heard.out) == (2, "")
        assert message in heard.err
        assert heard.err.count("\n") == 1
    main_ok(*FIT, "--force")


def test_a_mistake_in_a_process_of_its_own(table):
    failed = setpoint_process("fit", "loans.csv", "--target", "nothing", "--ask", ASK, cwd=table)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("setpoint: no column 'nothing' to predict")
    assert failed.stderr.count("\n") == 1
    assert not (table / "run").exists()


@pytest.mark.parametrize("package", ["typer", "polars"])
def test_a_missing_package_names_the_extra(table, package):
    hidden = table / "hidden"
    hidden.mkdir()
    (hidden / f"{package}.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})\n")
    failed = setpoint_process("--help", cwd=table, path=[hidden])
    assert failed.returncode == 2
    assert failed.stderr == (
        f"setpoint: the command line needs {package}; install it with: pip install 'setpoint[cli]'\n"
    )


def test_version_and_help(capsys):
    main_ok("--version")
    assert capsys.readouterr().out == f"setpoint {version()}\n"
    main_ok("fit", "--help")
    assert '--ask "minimize fnr where fpr <= 1%"' in " ".join(capsys.readouterr().out.split())


def test_progress_shows_on_a_terminal_only():
    for terminal in (True, False):
        heard = io.StringIO()
        with progress(Console(file=heard, force_terminal=terminal)) as on_epoch:
            on_epoch("implicit", 1, 2)
            on_epoch("implicit", 2, 2)
        assert ("training: implicit" in heard.getvalue()) == terminal
        assert terminal or heard.getvalue() == ""


@pytest.fixture(scope="module")
def run():
    return fit_table(loans(), "default", ask(ASK), Settings(epochs=5))


def printed(run):
    heard = io.StringIO()
    Console(file=heard, width=80).print(result_table(run))
    return heard.getvalue()


def with_test(run, place, **changes):
    """The run with one solver's result on test changed."""
    outcomes = list(run.outcomes)
    judged = dataclasses.replace(outcomes[place].judged["test"], **changes)
    outcomes[place] = dataclasses.replace(outcomes[place], judged={**outcomes[place].judged, "test": judged})
    return dataclasses.replace(run, outcomes=tuple(outcomes))


def with_best(run, ours, theirs):
    """The run with other objectives at the best cuts of the test rows."""
    outcomes = [
        dataclasses.replace(outcome, best_on_test=dataclasses.replace(outcome.best_on_test, objective=value))
        for outcome, value in zip(run.outcomes, (ours, theirs))
    ]
    return dataclasses.replace(run, outcomes=tuple(outcomes))


def test_the_table_fits_a_narrow_screen_and_marks_what_is_beyond_the_bound(run):
    kept = with_test(run, 0, feasible=True, rates={**run.chosen.judged["test"].rates, "fpr": 0.1234})
    broken = with_test(run, 0, feasible=False, rates={**run.chosen.judged["test"].rates, "fpr": 0.2345})
    assert max(map(len, printed(run).splitlines())) <= 80
    (row,) = [line.split() for line in printed(run).splitlines() if line.split()[:1] == ["Anchored(0.25)"]]
    assert len(row) == 8
    assert row[-1] == f"{run.chosen.point.threshold:.4g}"
    assert "threshold" in printed(run)
    assert "\u2026" not in printed(run)
    assert "12.34% " in printed(kept)
    assert "23.45%*" in printed(broken)


def test_the_sentences_say_whether_the_bound_held(run):
    kept = with_test(run, 0, feasible=True)
    broken = with_test(run, 0, feasible=False)
    assert any(line.startswith("The bound held on test, but nothing promises it") for line in sentences(kept))
    assert any(line.startswith("The bound did not hold on test") for line in sentences(broken))
    certified = fit_table(loans(), "default", ask(ASK), Settings(epochs=2, confidence=0.9))
    assert any("fpr <= 20% is certified with confidence 90%" in line for line in sentences(certified))
    unlucky = with_test(certified, 0, feasible=False)
    assert any("did not hold on test, where 80 rows have noise of their own" in line for line in sentences(unlucky))
    precise = fit_table(loans(), "default", ask("maximize precision where recall >= 50%"), Settings(epochs=2))
    assert any("certified" in line or "--confidence" in line for line in sentences(precise))
    equal = fit_table(loans(), "default", ask("maximize precision where flagged == 20%"), Settings(epochs=2))
    assert any("there is no certificate yet for such an ask" in line for line in sentences(equal))
    assert not any("--confidence" in line for line in sentences(equal))


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [(0.1, 0.9, "worse"), (0.9, 0.1, "better"), (0.5, 0.5, "just as well"), (0.5, 0.51, "about as well")],
)
def test_the_sentences_are_honest_about_cross_entropy(run, ours, theirs, verdict):
    last = sentences(with_best(run, ours, theirs))[-1]
    expected = f"did {verdict} on test: fnr {100 * theirs:.2f}% against {100 * ours:.2f}%"
    assert last.startswith(f"Plain cross-entropy {expected}")
    assert ("--solver cross-entropy" in last) == (verdict == "better")


def test_an_ask_that_cannot_be_met_says_so():
    strict = fit_table(
        loans(), "default", ask("maximize recall where precision >= 99.9% and flagged >= 60%"), Settings(epochs=2)
    )
    text = " ".join(sentences(strict))
    assert "On the calibration rows no threshold meets" in text
    assert "nothing to compare" in text


def test_every_row_of_a_file_gets_an_answer(table):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1")
    loans(1).write_csv("one.csv")
    main_ok("predict", "run", "one.csv", "--out", "answer.csv")
    assert read_table("answer.csv").height == 1
