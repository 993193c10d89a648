"""Cautions about a run: told where they should be, and nowhere else; a doubtful bound has no green tick."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from doors import main_ok
from marks import slow
from setpoint import ask
from setpoint.problem.caution import Caution
from setpoint.report.of_run import read_material
from setpoint.report.page import make_page
from setpoint.report.verdict import first_line, sentences
from setpoint.report.words import verdicts
from setpoint.run.artefact import save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans

QUICK = {"solver": "cross-entropy", "epochs": 2}


def noise(rows=600, columns=250, share=0.5, seed=0):
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame({f"x{i}": draw.normal(size=rows) for i in range(columns)})
    return frame.with_columns(y=pl.Series((draw.random(rows) < share).astype(int)))


def codes(run):
    return [caution.code for caution in run.cautions]


def test_a_good_run_has_nothing_against_it(tmp_path):
    run = fit_table(loans(2000), "default", ask("minimize fnr where fpr <= 10%"), Settings(**QUICK))
    assert codes(run) == []
    assert run.to_dict()["warnings"] == []
    told = read_material(save_run(tmp_path / "run", run))
    assert [kind for kind, _ in verdicts(told)] == ["holds"]
    assert 'class="cautions"' not in make_page(told)


@slow
def test_rows_learned_by_heart_are_told():
    settings = Settings(solver="cross-entropy", confidence=None)
    run = fit_table(noise(), "y", ask("minimize fnr where fpr <= 50%"), settings)
    (caution,) = [one for one in run.cautions if one.code == "gap-between-train-and-test"]
    train, test = (f"{100 * run.chosen.judged(part).objective:.1f}%" for part in ("train", "test"))
    assert f"fnr is {train} on the training rows and {test} on the test rows" in caution.sentence
    area = ask("maximize recall over fpr in [0%, 20%]")
    assert "gap-between-train-and-test" in codes(fit_table(noise(), "y", area, settings))


@pytest.mark.parametrize(("noise_of_leak", "told"), [(0.01, True), (1.0, False)])
def test_a_column_that_gives_the_outcome_away_is_told(noise_of_leak, told):
    frame, draw = noise(600, 3, share=0.4), np.random.default_rng(1)
    leak = frame["y"] + noise_of_leak * draw.normal(size=600)
    run = fit_table(frame.with_columns(leak=leak), "y", ask("minimize fnr where fpr <= 10%"), Settings(**QUICK))
    assert ("tells-all-apart" in codes(run)) is told


def test_too_few_rows_that_are_told_apart_are_no_sign_of_a_leak():
    frame = noise(600, 2, share=0.1)
    run = fit_table(
        frame.with_columns(leak=frame["y"] * 1.0), "y", ask("minimize fnr where fpr <= 10%"), Settings(**QUICK)
    )
    assert "tells-all-apart" not in codes(run)


def test_few_rows_of_a_class_are_told():
    run = fit_table(loans(), "default", ask("maximize f1"), Settings(**QUICK))
    (caution,) = [one for one in run.cautions if one.code == "few-positives"]
    assert "16 among the held-out rows, 16 among the calibration rows" in caution.sentence
    assert "test rows" not in caution.sentence
    assert "few-negatives" not in codes(run)


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("minimize fnr where fpr <= 1%", "flags-nearly-nothing"),
        ("maximize tnr where recall >= 99%", "flags-nearly-everything"),
    ],
)
def test_a_decision_that_flags_nearly_nothing_or_everything_has_no_green_tick(tmp_path, question, code):
    settings = Settings(solver="cross-entropy", epochs=2, confidence=None)
    run = fit_table(noise(2000, 2), "y", ask(question), settings)
    assert code in codes(run)
    told = read_material(save_run(tmp_path / "run", run))
    assert told.cautions == list(run.cautions)
    assert "holds" not in [kind for kind, _ in verdicts(told)]
    page = make_page(told)
    assert f'data-code="{code}"' in page
    assert '<p class="verdict holds">' not in page


def test_a_share_that_allows_few_to_be_found_is_not_blamed():
    asked = ask("maximize precision where flagged == 0.75%")
    run = fit_table(loans(2000), "default", asked, Settings(**QUICK))
    assert run.chosen.judged("test").rates["recall"] < 0.05
    assert codes(run) == []


def test_an_equality_that_the_test_rows_cannot_tell_from_its_bound_holds(tmp_path):
    asked = ask("maximize precision where flagged == 15%")
    run = fit_table(loans(2000), "default", asked, Settings(**QUICK, confidence=0.95))
    (said,) = first_line(run)
    assert said.startswith("Not certified: no data can show that flagged == 15% holds exactly")
    assert said.endswith("; the threshold is the bare cut of the 300 calibration rows.")
    assert not run.chosen.judged("test").feasible
    told = read_material(save_run(tmp_path / "run", run))
    ((kind, said),) = verdicts(told)
    assert kind == "holds"
    assert "held on test" in said
    assert any("held on test, within the noise of its rows" in sentence for sentence in sentences(run))


def test_warnings_are_printed_explained_and_stored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    loans().write_csv("t.csv")
    question = "maximize precision where flagged <= 5%"
    fit = ["fit", "t.csv", "--target", "default", "--ask", question, "--solver", "cross-entropy", "--epochs", "1"]
    main_ok(*fit)
    assert "warning: precision is best when almost nothing is flagged" in capsys.readouterr().out
    main_ok(*fit, "--force", "--json")
    told = json.loads(capsys.readouterr().out)["warnings"]
    assert told == json.loads((tmp_path / "run" / "setpoint.json").read_text())["warnings"]
    assert told[0]["code"] == "best-when-little-is-flagged"
    assert Caution.from_dict(told[0]).sentence in read_material("run").cautions[0].sentence
    main_ok("explain", question)
    assert f"warning: {told[0]['sentence']}" in capsys.readouterr().out
    main_ok("explain", question, "--json")
    assert json.loads(capsys.readouterr().out)["warnings"] == [told[0]]


def test_reviewed_positives_count_among_the_positives_that_are_not_found():
    question = ask("minimize review where fpr <= 0.1% and fnr <= 90%")
    run = fit_table(noise(2000, 2), "y", question, Settings(solver="cross-entropy", confidence=None))
    (caution,) = [one for one in run.cautions if one.code == "flags-nearly-nothing"]
    found = round(run.chosen.judged("test").rates["recall"] * run.sizes["test"]["positives"])
    said = f"at its pair of cuts the model finds {found} of {run.sizes['test']['positives']} positives on the test rows"
    assert caution.sentence.startswith(said)
