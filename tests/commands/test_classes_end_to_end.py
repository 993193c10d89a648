"""Several classes through the command line: fit, predict, evaluate, report and resume on wine and digits."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_wine

import setpoint as sp
from marks import quick_first, slow
from setpoint.cli import main
from setpoint.errors import BadFile
from setpoint.run import table as module
from setpoint.run.artefact import load_run
from setpoint.train.work import Work

NAMES = ["barolo", "grignolino", "barbera"]
ASK = "maximize macro recall where recall of class barolo >= 70%"


def wine():
    data = load_wine()
    columns = {name: data.data[:, place] for place, name in enumerate(data.feature_names)}
    return pl.DataFrame({**columns, "cultivar": np.array(NAMES)[data.target]})


def digits():
    data = load_digits()
    return pl.DataFrame({**{f"p{i}": data.data[:, i] for i in range(64)}, "digit": data.target})


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return (ended.value.code, *capsys.readouterr())


@pytest.fixture
def here(tmp_path, monkeypatch):
    wine().write_csv(tmp_path / "wine.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("model", quick_first(["trees", "linear"]))
def test_a_run_is_fitted_applied_judged_and_reported(model, here, capsys):
    code, out, _ = call(
        capsys, "fit", "wine.csv", "--target", "cultivar", "--ask", ASK, "--model", model, "--out", "run", "--json"
    )
    assert code == 0
    told = json.loads(out)
    assert list(told["point"]["threshold"]) == told["point"]["classes"] == ["barbera", "barolo", "grignolino"]
    assert told["rows"]["test"]["classes"] == {"barbera": 10, "barolo": 12, "grignolino": 14}
    assert told["results"]["default"]["test"]["objective"] > 0.85
    assert list(told["results"]) == ["default", "cross-entropy"]

    assert call(capsys, "predict", "run", "wine.csv", "--out", "answers.csv", "--quiet")[0] == 0
    answers = pl.read_csv("answers.csv")
    assert answers.columns == ["score of barbera", "score of barolo", "score of grignolino", "decision"]
    saved = load_run("run")
    scores = saved.scores(wine().drop("cultivar")).numpy()
    assert (answers[:, :3].to_numpy() == pytest.approx(scores, rel=1e-4)) if model == "trees" else True
    shifts = np.array(list(told["point"]["threshold"].values()))
    chosen = np.array(told["point"]["classes"])[(scores.astype(float) - shifts).argmax(1)]
    assert (answers["decision"].to_numpy() == chosen).all()
    assert (chosen == wine()["cultivar"].to_numpy()).mean() > 0.85
    # A prediction depends on its own row alone.
    alone = saved.predict(wine().drop("cultivar")[7:8])
    assert saved.point.classes[int(alone[0])] == chosen[7]

    code, out, _ = call(capsys, "evaluate", "run", "wine.csv", "--json")
    judged = json.loads(out)
    assert code == 0
    assert judged["rates"]["recall of class barolo"] >= 0.7
    assert judged["bounds"][0]["bound"] == "recall of class barolo >= 70%"
    assert call(capsys, "report", "run")[0] == 0
    page = (here / "run" / "report.html").read_text(encoding="utf-8")
    assert 'Each class, <span id="rows">test</span> rows' in page
    assert call(capsys, "report", "run", "--png")[0] == 0
    assert (here / "run" / "report.png").is_file()


def test_the_terminal_shows_classes_and_shifts(here, capsys):
    code, out, _ = call(
        capsys,
        "fit",
        "wine.csv",
        "--target",
        "cultivar",
        "--ask",
        "minimize error",
        "--model",
        "linear",
        "--out",
        "run",
    )
    assert code == 0
    assert "The 3 classes of 'cultivar' are 'barbera', 'barolo', 'grignolino'." in out
    assert "Run at shifts barbera" in out
    code, out, _ = call(capsys, "evaluate", "run", "wine.csv")
    assert code == 0
    assert "on 178 rows:" in out
    assert "recall of class grignolino" in out


@slow
@pytest.mark.parametrize("model", ["linear", "trees", "auto"])
def test_digits_by_one_command(model, here, capsys):
    digits().write_parquet(here / "digits.parquet")
    ask = "minimize error where recall of class 8 >= 80% and precision of class 1 >= 75%"
    code, out, _ = call(
        capsys, "fit", "digits.parquet", "--target", "digit", "--ask", ask, "--model", model, "--out", "run", "--json"
    )
    assert code == 0
    told = json.loads(out)
    assert told["point"]["classes"] == [str(k) for k in range(10)]
    assert told["results"]["default"]["test"]["objective"] < 0.1
    assert load_run("run").point.feasible


@slow
@pytest.mark.parametrize("solver", ["implicit", "augmented", "program"])
def test_solvers_of_classes_by_name(solver, here, capsys):
    more = ["--solver", solver, "--epochs", "40", "--confidence", "none", "--out", "run", "--json"]
    ask = "maximize macro recall where coverage of class barolo <= 40%"
    code, out, _ = call(capsys, "fit", "wine.csv", "--target", "cultivar", "--ask", ask, *more)
    assert code == 0
    assert json.loads(out)["results"][solver]["test"]["objective"] > 0.7


def test_a_run_of_classes_that_was_killed_goes_on_to_the_same_parameters(tmp_path, monkeypatch):
    frame, ask = wine(), sp.ask(ASK)

    class Killed(RuntimeError):
        pass

    def trained(store, stop_after=None):
        work = Work(sp.Checkpoint(store, keep=True))
        done = 0

        def on_row(*told):
            nonlocal done
            done += 1
            if stop_after is not None and done > stop_after:
                raise Killed

        settings = module.Settings(model="linear", solver="default", refit=False)
        return module.fit_table(frame, "cultivar", ask, settings, on_row=on_row, work=work)

    whole = trained(tmp_path / "whole")
    with pytest.raises(Killed):
        trained(tmp_path / "killed", stop_after=2)
    again = trained(tmp_path / "killed")
    for one, other in zip(whole.chosen.model.parameters(), again.chosen.model.parameters()):
        assert one.equal(other)
    assert again.chosen.point == whole.chosen.point


def test_a_saved_run_of_classes_that_was_changed_is_refused(here, capsys):
    call(
        capsys, "fit", "wine.csv", "--target", "cultivar", "--ask", ASK, "--model", "linear", "--out", "run", "--quiet"
    )
    about = json.loads((here / "run" / "setpoint.json").read_text())
    about["point"]["classes"] = ["barbera", "barolo", "chianti"]
    (here / "run" / "setpoint.json").write_text(json.dumps(about))
    with pytest.raises(BadFile):
        load_run("run")
