"""The command line as a user meets it: real files, real processes, one sentence for every mistake."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import setpoint
from doors import ASK, FIT, main_ok
from marks import quick_first, slow
from setpoint import ask, cli
from setpoint.cli import COMMANDS, main
from setpoint.commands.show import progress, result_table
from setpoint.data.frame import read_table
from setpoint.decide.paired import Difference
from setpoint.problem.point import OperatingPoint
from setpoint.report.names import method_words
from setpoint.report.verdict import against, first_line, sentences
from setpoint.run.artefact import load_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans


def setpoint_process(*arguments, cwd, path=(), stdin=None, **variables):
    """`python -m setpoint` in a process of its own."""
    source = str(Path(setpoint.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), source]), **variables}
    command = [sys.executable, "-m", "setpoint", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, timeout=100, check=False
    )


def test_fit_and_predict_in_processes_of_their_own(table):
    fit = setpoint_process("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "20", cwd=table)
    assert fit.returncode == 0, fit.stderr
    assert fit.stderr.splitlines() == [
        "note: column 'id' is not used: no value occurs twice, as in a name or an identifier",
        "note: column 'currency' is not used: it is constant",
        "note: the model was retrained on training and held-out rows together; --no-refit turns that off",
    ]
    assert "linear model for" in fit.stdout
    assert "cross-entropy" in fit.stdout
    assert "Positive is 'yes' in 'default', the value that means yes; --positive changes it." in fit.stdout
    assert "Look at it: setpoint report " in fit.stdout
    assert sorted(p.name for p in table.iterdir()) == ["loans.csv", "loans.parquet", "run"]

    saved = load_run(table / "run")
    test = json.loads((table / "run" / "setpoint.json").read_text())["results"]["default"]["test"]
    assert f"{saved.point.threshold:.4g}: fnr {100 * test['objective']:.2f}% on test" in fit.stdout

    # From a pipe to a pipe, with columns that are kept.
    new = loans(7, seed=1).drop("default")
    keep = ["--keep", "id", "--keep", "age"]
    predict = setpoint_process("predict", "run", "-", *keep, cwd=table, stdin=new.write_csv())
    assert (predict.returncode, predict.stderr) == (0, "")
    answer = pl.read_csv(io.StringIO(predict.stdout))
    assert answer.columns == ["id", "age", "score", "decision"]
    assert answer["id"].to_list() == new["id"].to_list()
    scores = saved.scores(new)
    assert answer["decision"].to_list() == saved.point.predict(scores).tolist()
    assert answer["score"].to_list() == pytest.approx(scores.tolist(), rel=1e-6)


def test_decisions_are_those_that_fit_judged(table):
    main_ok("fit", "loans.parquet", "--target", "default", "--ask", ASK, "--epochs", "5", "--model", "mlp")
    main_ok("predict", "run", "loans.parquet", "--out", "answer.csv")
    frame = loans().with_columns(decision=pl.read_csv("answer.csv")["decision"])
    run = fit_table(loans(), "default", ask(ASK), Settings(epochs=5, model="mlp"))
    labels = run.schema.labels(frame)
    judged = {part: run.chosen.judged(part) for part in run.sizes}
    counted = sum(point.rates["recall"] * run.sizes[part]["positives"] for part, point in judged.items())
    assert int(frame["decision"].to_numpy()[labels.numpy() > 0].sum()) == round(counted)


@slow
def test_tuning_chooses_auto_and_shows_what_it_chose_from(table, capsys):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--tune", "2", "--out", "tuned")
    shown = capsys.readouterr().out
    saved = json.loads((table / "tuned" / "setpoint.json").read_text())
    trials = saved["results"]["auto"]["comparison"]
    (chosen,) = [trial["name"] for trial in trials if trial["chosen"]]
    assert saved["results"]["auto"]["method"] == f"auto: {chosen}"
    assert f"{method_words(chosen)} (kept)" in shown
    assert "the best of 2 trials" in shown
    assert all(method_words(trial["name"]) in shown for trial in trials)


@pytest.mark.parametrize(
    ("solver", "question"),
    [
        ("lagrangian", ASK),
        ("mixture", ASK),
        ("augmented", ASK),
        ("augmented-auc", ASK),
        ("auto", ASK),
        ("pairwise", "maximize recall over fpr in [0%, 20%]"),
    ],
)
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_solvers_by_name(table, capsys, solver, question, model):
    asked = ["--target", "default", "--ask", question, "--epochs", "4", "--json", "--model", model, "--solver", solver]
    main_ok("fit", "loans.csv", *asked, "--confidence", "none", "--out", "named")
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["results"]) == [solver, "cross-entropy"]
    assert answer["point"]["objective"] < 1


def test_a_mixture_is_stored_whole_and_decides_a_row_alone_as_among_others(table, capsys):
    asked = ["--target", "default", "--ask", ASK, "--epochs", "6", "--model", "mlp", "--solver", "mixture", "--quiet"]
    main_ok("fit", "loans.csv", *asked, "--out", "mixed")
    run, frame = load_run("mixed"), pl.read_csv("loans.csv")
    assert isinstance(run.model, setpoint.methods.Mixed)
    whole = run.scores(frame).tolist()
    assert [float(run.scores(frame[row])[0]) for row in range(5)] == whole[:5]


@slow
def test_an_ensemble_over_splits_by_options(table, capsys):
    asked = ["--target", "default", "--ask", ASK, "--epochs", "2", "--json", "--model", "mlp"]
    main_ok("fit", "loans.csv", *asked, "--ensemble", "2", "--over-splits", "--out", "split")
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["over_splits"]
    assert not answer["results"]["default"]["refitted"]
    main_ok("fit", "loans.csv", *asked, "--ensemble", "2", "--no-refit", "--out", "seeds")
    split, seeds = (load_run(place).model.members for place in ("split", "seeds"))
    assert not split[1][0].weight.equal(seeds[1][0].weight)


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
    main_ok("predict", "run", "new.csv", "--out", "decided.csv", "--ignore-extra")
    assert capsys.readouterr().out == "Written to decided.csv: 5 rows.\n"
    main_ok("predict", "run", "new.csv", "--out", "decided.csv", "--ignore-extra", "--quiet")
    assert capsys.readouterr().out == ""


MISTAKES = {
    "no file": (["fit", "no.csv", *FIT[2:]], "no file at no.csv"),
    "no target": (["fit", "loans.csv", "--target", "defalt", *FIT[4:]], "did you mean 'default'"),
    "three classes": (["fit", "loans.csv", "--target", "job", *FIT[4:]], "is missing in"),
    "many classes": (["fit", "loans.csv", "--target", "age", *FIT[4:]], "must hold two classes"),
    "one class": (["fit", "loans.csv", "--target", "currency", *FIT[4:]], "two classes, but holds 1: 'EUR'"),
    "bad ask": ([*FIT, "--ask", "minimize fnr wher fpr <= 1%"], "did you mean 'where'"),
    "gap of nothing": ([*FIT, "--ask", "minimize fnr where recall.gap(maried) <= 1%"], "did you mean 'married'"),
    "gap of too many": ([*FIT, "--ask", "minimize fnr where recall.gap(age) <= 1%"], "at most 20 groups"),
    "positive": ([*FIT, "--positive", "maybe"], "no class 'maybe'"),
    "model": ([*FIT, "--model", "tree"], "model 'tree' is none of auto, linear, trees, mlp"),
    "solver": ([*FIT, "--solver", "magic"], "solver 'magic' is none of"),
    "a kind as a solver": ([*FIT, "--solver", "trees"], "; trees is a kind of model: --model trees"),
    "epochs": ([*FIT, "--epochs", "0"], "epochs must be at least 1"),
    "confidence": ([*FIT, "--confidence", "95"], "confidence must lie between 0 and 1"),
    "sure in words": ([*FIT, "--confidence", "high"], "confidence must be a number such as 0.95, auto or none"),
    "shares": ([*FIT, "--shares", "0.5,0.5"], "shares must be four numbers"),
    "out is a file": ([*FIT, "--out", "loans.csv"], "is not a directory"),
    "out under a file": ([*FIT, "--out", "loans.csv/run"], "choose another place"),
    "out is not ours": ([*FIT, "--out", "."], "which no run wrote"),
    "empty file": (["fit", "empty.csv", *FIT[2:]], "is empty"),
    "carets": (["fit", "carets.csv", *FIT[2:]], "--separator '^'"),
    "twice": (["fit", "twice.csv", *FIT[2:]], "more than one column named 'a'"),
    "latin": (["fit", "latin.csv", "--encoding", "utf-8", *FIT[2:]], "not UTF-8"),
    "holes": (["fit", "holes.csv", *FIT[2:]], "'default' is missing in 3 of 400 rows"),
    "few rows": (["fit", "few.csv", *FIT[2:]], "too few to split"),
    "no table": (["fit", *FIT[2:]], "a table is missing"),
    "no ask": (FIT[:4], "--ask is missing"),
    "nothing to resume": (["fit", "--resume", "nowhere"], "no unfinished run at nowhere"),
    "to tune another": (
        [*FIT, "--solver", "weighted", "--tune", "3"],
        "adds trials to solver 'auto', not to 'weighted'",
    ),
    "to tune backwards": ([*FIT, "--tune", "-3"], "tune must be a number of trials"),
    "resume and more": (["fit", "--resume", "nowhere", "--epochs", "3"], "leave out epochs"),
    "checkpoints": ([*FIT, "--checkpoint-seconds", "-1"], "0 or more"),
    "no run": (["predict", "nowhere", "loans.csv"], "no run at nowhere"),
    "no run to evaluate": (["evaluate", "nowhere", "loans.csv"], "no run at nowhere"),
    "no such command": (["fti"], "No such command 'fti'"),
    "no such option": ([*FIT, "--epoch", "3"], "--epoch"),
    "no number": ([*FIT, "--epochs", "many"], "'--epochs'"),
    "no data": (["fit"], "see setpoint fit --help"),
    "compared with a kind": (["compare", *FIT[1:], "--solvers", "trees"], "; trees is a kind of model: --models trees"),
    "compared with nothing known": (["compare", *FIT[1:], "--solvers", "weighted,magic"], "solver 'magic' is none of"),
    "no trial": (["compare", *FIT[1:], "--trials", "0"], "trials must be at least 1"),
    "no program": (["compare", *FIT[1:], "--solvers", "program"], "no linear program for"),
    "unreadable ask": (["explain", "maximise happiness"], "'happiness' is not a rate"),
}


#: Demands of a certificate that cannot be met: too few rows, a bound no data can show, one without an exact test.
REFUSED = {
    "minimize fnr where fpr <= 1%": "needs 299 negatives, but there are 44",
    "maximize precision where flagged == 20%": "no data can show that flagged == 20% holds exactly",
    "minimize fnr where fpr <= 0%": "no number of samples can certify fpr <= 0%",
    "maximize recall where f1 >= 30%": "no exact test of f_score(1) >= 30% is known",
    "minimize error where recall.gap(married) <= 5%": "positives of each group",
}


@slow
@pytest.mark.parametrize("question", quick_first(REFUSED, 2))
def test_a_demanded_certificate_that_cannot_be_given_is_exit_code_3_and_the_run_is_kept(table, capsys, question):
    fit = [*FIT, "--ask", question, "--solver", "cross-entropy", "--json"]
    with pytest.raises(SystemExit) as ended:
        main([*fit, "--confidence", "0.95", "--out", "kept"])
    heard = capsys.readouterr()
    assert ended.value.code == 3
    assert REFUSED[question] in heard.err.splitlines()[-1]
    assert json.loads(heard.out)["certified"] is False
    assert load_run("kept").point.certificate is None
    for sure in ("auto", "none"):
        main_ok(*fit, "--confidence", sure, "--out", sure)
        answer = json.loads(capsys.readouterr().out)
        told = answer["results"]["cross-entropy"]["refusal"]
        quiet = sure == "none" or "==" in question or "f1" in question
        assert (told is None) == quiet
        assert answer["point"]["threshold"] == load_run("kept").about["point"]["threshold"]
    with pytest.raises(SystemExit) as ended:
        main(["compare", *fit[1:-3], "--solvers", "weighted", "--trials", "2", "--confidence", "0.95", "--quiet"])
    assert ended.value.code == 3


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_in_one_sentence_and_leave_nothing(table, capsys, name):
    arguments, message = MISTAKES[name]
    (table / "empty.csv").write_text("")
    (table / "carets.csv").write_text("a^default\n1^2\n")
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


@slow
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


@slow
def test_a_mistake_in_a_process_of_its_own(table):
    failed = setpoint_process("fit", "loans.csv", "--target", "default", cwd=table)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "setpoint: --ask is missing; see setpoint fit --help\n"
    assert not (table / "run").exists()


def test_a_missing_typer_names_the_extra(table):
    (table / "typer.py").write_text("raise ModuleNotFoundError('none', name='typer')\n")
    failed = setpoint_process("--help", cwd=table, path=[table])
    assert failed.returncode == 2
    assert failed.stderr == "setpoint: the command line needs typer; install it with: pip install 'setpoint[cli]'\n"


@pytest.mark.parametrize("package", ["polars", "safetensors"])
@slow
def test_another_missing_package_names_the_extra(table, package):
    (table / f"{package}.py").write_text(f"raise ModuleNotFoundError('none', name={package!r})")
    failed = setpoint_process(*FIT, cwd=table, path=[table])
    expected = f"setpoint: the command line needs {package}; install it with: pip install 'setpoint[cli]'\n"
    assert (failed.returncode, failed.stderr) == (2, expected)


def test_version_and_help(capsys):
    main_ok("--version")
    assert capsys.readouterr().out == f"setpoint {setpoint.__version__}\n"
    main_ok("fit", "--help")
    assert '--ask "minimize fnr where fpr <= 1%"' in " ".join(capsys.readouterr().out.split())


def test_alone_it_leads_on(capsys):
    main_ok()
    alone = capsys.readouterr().out
    assert max(map(len, alone.splitlines())) <= 80
    main_ok("-h")
    listed = capsys.readouterr().out
    assert all(command.__name__ in listed for command in COMMANDS)
    shown = set(re.findall(r"^ +setpoint (\w+)", alone, flags=re.MULTILINE))
    assert shown <= {command.__name__ for command in COMMANDS}
    assert "fit" in shown


@pytest.mark.parametrize(
    ("word", "lead"),
    [
        ("ft", "Did you mean 'fit'?"),
        ("train", "Did you mean 'fit'?"),
        ("loans.csv", "setpoint fit loans.csv --target COLUMN"),
        ("qqq", "the commands are fit, compare"),
    ],
)
def test_a_wrong_command_leads_on(word, lead, capsys):
    with pytest.raises(SystemExit) as ended:
        main([word])
    heard = capsys.readouterr()
    assert (ended.value.code, heard.out, heard.err.count("\n")) == (2, "", 1)
    assert lead in heard.err


@pytest.mark.parametrize("command", [*(command.__name__ for command in COMMANDS), ""])
def test_help_has_examples_that_fit_a_narrow_screen(command, tmp_path):
    heard = setpoint_process(*command.split(), "--help", cwd=tmp_path, COLUMNS="80", TERMINAL_WIDTH="80")
    assert heard.returncode == 0
    assert max(map(len, heard.stdout.splitlines())) <= 80
    examples = [line for line in heard.stdout.splitlines() if line.startswith(f" setpoint {command}".rstrip())]
    assert len(examples) >= 2
    # A line of an example that is broken by the screen goes on at its edge; ours go on indented.
    after = [heard.stdout.splitlines()[heard.stdout.splitlines().index(line) + 1] for line in examples]
    assert all(line.strip() == "" or line.startswith("   --") for line in after), after


def test_the_help_of_fit_has_its_options_in_groups_and_describes_them_in_the_full_width(tmp_path):
    heard = setpoint_process("fit", "--help", cwd=tmp_path, COLUMNS="80", TERMINAL_WIDTH="80").stdout
    groups = [line for line in heard.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == ["Arguments:", "The question:", "The training:", "The run:", "The table:", "Options:"]
    assert "  --target COLUMN     The column to predict." in heard
    assert len(heard.splitlines()) < 140


def test_completion_for_the_shell(tmp_path):
    script = setpoint_process(
        "--show-completion", "bash", cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert script.returncode == 0, script.stderr
    assert "_SETPOINT_COMPLETE=complete_bash" in script.stdout
    offered = setpoint_process(
        cwd=tmp_path, _SETPOINT_COMPLETE="complete_bash", COMP_WORDS="setpoint ev", COMP_CWORD="1"
    )  # fmt: skip
    assert offered.stdout.split() == ["evaluate"]


def test_progress_shows_on_a_terminal_only():
    for terminal in (True, False):
        heard = io.StringIO()
        with progress(Console(file=heard, force_terminal=terminal)) as on_epoch:
            on_epoch("implicit", 1, 2)
            on_epoch("implicit", 2, 2)
        assert ("training: implicit" in heard.getvalue()) == terminal
        assert terminal or heard.getvalue() == ""


def printed(run):
    heard = io.StringIO()
    Console(file=heard, width=80).print(result_table(run))
    return heard.getvalue()


class Retold:
    """A run whose results on some parts are said to be others."""

    def __init__(self, run, judged=(), best=()):
        self.run, self.told, self.cuts, self.beside = run, dict(judged), dict(best), run.beside

    def judged(self, part):
        return self.told.get(part) or self.run.judged(part)

    def best(self, part):
        return self.cuts.get(part) or self.run.best(part)

    def __getattr__(self, name):
        return getattr(self.run, name)


def with_test(run, place, **changes):
    """The run with one solver's result on test changed."""
    assert place == 0
    judged = dataclasses.replace(run.chosen.judged("test"), **changes)
    return dataclasses.replace(run, chosen=Retold(run.chosen, judged={"test": judged}))


def test_the_table_fits_a_narrow_screen_and_marks_what_is_beyond_the_bound(run):
    kept = with_test(run, 0, feasible=True, rates={**run.chosen.judged("test").rates, "fpr": 0.1234})
    broken = with_test(run, 0, feasible=False, rates={**run.chosen.judged("test").rates, "fpr": 0.2345})
    assert max(map(len, printed(run).splitlines())) <= 80
    (row,) = [line.split() for line in printed(run).splitlines() if line.split()[:2] == ["the", "ask"]]
    assert len(row) == 9
    assert row[-1] == f"{run.chosen.point.threshold:.4g}"
    assert "threshold" in printed(run)
    assert "\u2026" not in printed(run)
    assert "12.34% " in printed(kept)
    assert "23.45%*" in printed(broken)
    # A small share is not rounded to nothing.
    small = with_test(run, 0, feasible=True, rates={**run.chosen.judged("test").rates, "fpr": 0.000012})
    assert "0.0012% " in printed(small)


@slow
def test_the_sentences_say_whether_the_bound_held(run):
    kept = with_test(run, 0, feasible=True)
    broken = with_test(run, 0, feasible=False)
    assert "The bound held on test." in sentences(kept)
    assert "The bound did not hold on test, where 80 rows have noise of their own." in sentences(broken)
    bare = fit_table(loans(), "default", ask(ASK), Settings(epochs=2, confidence=None))
    unlucky = with_test(bare, 0, feasible=False)
    assert "The bound did not hold on test, as happens at bare cuts about half the time." in sentences(unlucky)
    equal = fit_table(loans(), "default", ask("maximize precision where flagged == 20%"), Settings(epochs=2))
    assert any("no data can certify such a bound" in line for line in sentences(equal))
    assert first_line(equal) == []
    score = fit_table(loans(), "default", ask("maximize f1"), Settings(epochs=2, confidence=0.9))
    assert any("an estimate" in line and "not a certificate" in line for line in sentences(score))


@slow
def test_the_first_line_says_what_is_promised_and_what_it_costs():
    run = fit_table(loans(800), "default", ask("minimize fnr where fpr <= 8%"), Settings())
    certificate, bare = run.chosen.point.certificate, run.chosen.bare
    cost = run.chosen.point.objective - bare.objective
    assert cost > 0
    assert first_line(run) == [
        f"Certified: fpr <= 8% with confidence 95%, from {certificate.samples} calibration samples. Its cost: "
        f"{100 * cost:.1f} points of fnr more than at the bare cut of the calibration rows; --confidence none takes "
        "that cut."
    ]
    asked = ask("minimize fnr where fpr <= 1%")
    (few,) = first_line(fit_table(loans(), "default", asked, Settings(epochs=2)))
    assert few.startswith("Not certified: fpr <= 1% at confidence 95% needs 299 negatives, but there are 44")
    assert "the bare cut of the 60 calibration rows" in few
    (none,) = first_line(fit_table(loans(), "default", asked, Settings(epochs=2, confidence=None)))
    assert none.startswith("Not certified, as --confidence none asks")
    assert first_line(fit_table(loans(), "default", ask("maximize f1"), Settings(epochs=2))) == []


def told_of_the_rival(low, high, ours=0.3, theirs=0.2, *, names=("default", "cross-entropy"), feasible=True):
    problem = ask(ASK)
    found = Difference(problem, ours, theirs, low, high, 0.95, 80, "by hand")
    rates = {"fpr": 0.1}
    points = [
        OperatingPoint(problem, 0.0, value, rates, held, 0.0) for value, held in ((ours, True), (theirs, feasible))
    ]
    return against(found, names, points, "As shipped")


def test_the_verdict_is_about_the_shipped_models_and_honest_about_cross_entropy(run):
    numbers, size = told_of_the_rival(-0.05, 0.2)
    assert numbers == (
        "As shipped, on the same 80 test rows: fnr 30.00% for default (fpr 10.00%), against 20.00% for cross-entropy "
        "(fpr 10.00%)."
    )
    assert (
        size == "The difference is +10.0 points (95% interval -5.0 to +20.0, paired): within the noise of these rows."
    )
    worse = told_of_the_rival(0.05, 0.2)[1]
    assert worse.endswith("beyond noise, in favour of cross-entropy; --solver cross-entropy ships it.")
    assert "though it breaks its bound there" in told_of_the_rival(0.05, 0.2, feasible=False)[1]
    assert told_of_the_rival(-0.2, -0.05, 0.2, 0.3)[1].endswith("beyond noise, in favour of default.")
    swapped = told_of_the_rival(0.05, 0.2, names=("cross-entropy", "default"))[1]
    assert swapped.endswith("in favour of default; these rows judge, they do not choose.")

    # The numbers of the run are those at its own thresholds; the best cuts come after them.
    own, plain = (one.judged("test").objective for one in run.runs)
    best = [one.best("test").objective for one in run.runs]
    lines = sentences(run)
    (place,) = [i for i, line in enumerate(lines) if line.startswith("As shipped")]
    assert f"fnr {100 * own:.2f}% for linear model for the ask" in lines[place]
    assert f"against {100 * plain:.2f}% for cross-entropy" in lines[place]
    assert lines[place + 2].endswith(f"labels: {100 * best[0]:.2f}% against {100 * best[1]:.2f}%.")


def test_an_ask_that_cannot_be_met_says_so():
    strict = fit_table(
        loans(), "default", ask("maximize recall where precision >= 99.9% and flagged >= 60%"), Settings(epochs=2)
    )
    text = " ".join([*first_line(strict), *sentences(strict)])
    assert "on the calibration rows no threshold meets" in text
    assert "nothing to compare" in text


def test_every_row_of_a_file_gets_an_answer(table):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1")
    loans(1).write_csv("one.csv")
    main_ok("predict", "run", "one.csv", "--out", "answer.csv")
    assert read_table("answer.csv").height == 1


def test_nothing_in_the_pipe(table, capsys, monkeypatch):
    main_ok(*FIT, "--quiet")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "-"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("setpoint: standard input is empty")


def test_predict_writes_what_the_ending_says(table, capsys):
    main_ok(*FIT)
    for name in ("answer.csv", "answer.tsv", "answer.parquet"):
        main_ok("predict", "run", "loans.csv", "--keep", "id", "--out", name)
        answer = read_table(name)
        assert answer.columns == ["id", "score", "decision"]
        assert answer["id"].to_list() == loans()["id"].to_list()
    for kept in (["--keep", "id,age"], ["--keep", "id", "--keep", "age,id", "--keep", "age"]):
        main_ok("predict", "run", "loans.csv", *kept, "--out", "answer.csv")
        assert read_table("answer.csv").columns == ["id", "age", "score", "decision"]
    capsys.readouterr()
    before = sorted(table.iterdir())
    for arguments, message in (
        (["--out", "answer.xlsx"], "setpoint writes .csv, .tsv and .parquet"),
        (["--out", "no/where.csv"], "no directory no"),
        (["--keep", "nothing"], "no column 'nothing' for --keep"),
        (["--keep", "id,nothing"], "no column 'nothing' for --keep"),
        (["--keep", "score"], "cannot be named 'score'"),
    ):
        loans().with_columns(score=1.0).write_csv("loans.csv")
        with pytest.raises(SystemExit) as ended:
            main(["predict", "run", "loans.csv", "--quiet", "--ignore-extra", *arguments])
        heard = capsys.readouterr()
        assert (ended.value.code, heard.out, heard.err.count("\n")) == (2, "", 1)
        assert message in heard.err
    assert sorted(table.iterdir()) == before


PIPED = {
    "fit": [*FIT, "--out", "other"],
    "compare": ["compare", "loans.csv", "--target", "default", "--ask", ASK, "--trials", "2", "--models", "linear"],
    "evaluate": ["evaluate", "run", "loans.csv"],
    "predict": ["predict", "run", "loans.csv"],
    "watch": ["watch", "run", "loans.csv"],
    "calibrate": ["calibrate", "run", "loans.csv", "--confidence", "none"],
    "export": ["export", "run", "model.onnx"],
    "report": ["report", "run"],
    "explain": ["explain", ASK],
    "": [],
    "--help": ["--help"],
    "fit --help": ["fit", "--help"],
    "--version": ["--version"],
}


def into_a_closed_pipe(place, arguments):
    """A command whose reader has gone before it writes its first line, as head does after enough lines."""
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    ended = subprocess.run(
        [sys.executable, "-m", "setpoint", *arguments], cwd=place, env=environment, stdout=writer,
        stderr=subprocess.PIPE, text=True, timeout=100, check=False,
    )  # fmt: skip
    os.close(writer)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("name", ["explain", "--help", pytest.param("", marks=slow)])
def test_a_reader_that_has_gone(name, tmp_path):
    assert into_a_closed_pipe(tmp_path, PIPED[name]) == (141, "")


@slow
def test_a_reader_that_has_gone_is_not_a_broken_promise(table):
    assert set(PIPED) >= {command.__name__ for command in COMMANDS}
    main_ok(*FIT)
    codes = {name: into_a_closed_pipe(table, arguments)[0] for name, arguments in PIPED.items()}
    assert codes == dict.fromkeys(PIPED, 141)


def test_groups_from_fit_to_predict(table, capsys):
    main_ok("fit", "loans.csv", "--target", "default", "--ask", "minimize error where recall.gap(married) <= 10%")
    heard = capsys.readouterr().out
    saved = load_run("run")
    thresholds = saved.point.threshold
    assert f"Run at threshold false {thresholds['false']:.4g}, true {thresholds['true']:.4g}" in heard
    new = loans(50, seed=1).drop("default")
    new.write_csv("new.csv")
    main_ok("predict", "run", "new.csv", "--out", "answer.csv", "--quiet")
    limits = np.where(new["married"], thresholds["true"], thresholds["false"])
    answer = pl.read_csv("answer.csv")
    assert answer["decision"].to_list() == (saved.scores(new).numpy() > limits).astype(int).tolist()
    new.with_columns(married=pl.lit("unknown")).write_csv("odd.csv")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "odd.csv", "--quiet"])
    assert ended.value.code == 2
    assert "column 'married' held booleans in training but holds 'unknown'" in capsys.readouterr().err


def test_a_fault_of_our_own_is_not_taken_for_a_broken_promise(monkeypatch, capsys):
    def faulty(_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli.importlib, "import_module", faulty)
    with pytest.raises(SystemExit) as ended:
        main(["explain", "maximize f1"])
    assert ended.value.code == 70
    assert "please report it" in capsys.readouterr().err


def test_the_page_on_the_command_line_knows_every_option_and_field(capsys):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    for command in COMMANDS:
        assert f"## setpoint {command.__name__}" in page
        main_ok(command.__name__, "--help")
        options = set(re.findall(r"(--[a-z][a-z-]+)", capsys.readouterr().out)) - {"--help"}
        section = page.partition(f"## setpoint {command.__name__}")[2].partition("\n## setpoint")[0]
        assert {option for option in options if f"`{option}" not in section} == set()
    main_ok("explain", "minimize fnr where fpr <= 1%", "--json")
    fields = set(json.loads(capsys.readouterr().out))
    assert {field for field in fields if f"`{field}`" not in page} == set()
