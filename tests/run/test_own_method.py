"""A method of one's own goes through every door without a line anywhere else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

import setpoint as sp
from doors import main_ok
from k_neighbours import KNeighbours, Neighbours, register
from setpoint.cli import main
from setpoint.data.frame import read_table
from setpoint.errors import BadSetting, NotEnoughMemory
from setpoint.report.of_run import write_report
from setpoint.run.artefact import load_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.run.unfinished import Plan, begin, resume
from setpoint.serve.models import RESTORERS
from setpoint.train.kinds import KINDS
from tables import loans

ASK = "minimize fnr where fpr <= 20%"


@pytest.fixture(autouse=True)
def known():
    register()
    yield
    KINDS.pop("k-neighbours")
    RESTORERS.pop("k-neighbours")


def rows(seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(300, 2, generator=draw)
    return x, ((x**2).sum(1) < 1).float()


def parts():
    return [sp.Batches(*rows(seed)) for seed in range(3)]


def test_the_file_is_as_short_as_the_guide_says_and_the_guide_shows_it():
    root = Path(__file__).parents[2]
    code = (root / "tests" / "k_neighbours.py").read_text()
    assert code[code.index("from dataclasses") :].strip() in (root / "CONTRIBUTING.md").read_text()
    method = code[code.index("@dataclass(frozen=True)") :]
    assert len(method.splitlines()) <= 30


def test_fit_trains_it_sets_its_threshold_and_certifies_it():
    train, held_out, calibration = parts()
    result = sp.fit(None, ASK, train, held_out, KNeighbours(), calibration=calibration, confidence=0.9)
    peer = KNeighborsClassifier(15).fit(*(part.numpy() for part in rows(0)))
    x, labels = rows(2)
    expected = peer.predict_proba(x.numpy())[:, 1]
    np.testing.assert_allclose(result.model(x).numpy(), expected, atol=1e-6)
    assert result.point.certificate is not None
    judged = result.point.judge(expected, labels)
    assert judged.rates["fpr"] == pytest.approx(result.point.rates["fpr"])
    assert isinstance(result.solver, KNeighbours)


def test_it_is_wrapped_like_any_other():
    train, held_out, calibration = parts()
    again = sp.fit(None, ASK, train, held_out, sp.methods.BestOf({"a": KNeighbours(5)}), calibration=calibration)
    assert again.history[0]["candidate"] == "a"
    crossed = sp.fit(None, ASK, train, held_out, KNeighbours(), calibration=calibration, ensemble=sp.methods.Folds(3))
    assert [len(member.x) for member in crossed.model.members] == [400, 400, 400]


def test_the_estimator_takes_it_by_name_and_as_an_object():
    x, labels = (part.numpy() for part in rows())
    by_name = sp.SetpointClassifier(ASK, module="k-neighbours").fit(x, labels)
    given = sp.SetpointClassifier(ASK, solver=KNeighbours()).fit(x, labels)
    assert isinstance(by_name.model_.network, Neighbours)
    assert np.array_equal(by_name.decision_function(x), given.decision_function(x))
    assert [row["name"] for row in by_name.comparison_] == ["k-neighbours", "cross-entropy"]
    assert by_name.comparison_[0]["objective"] < by_name.comparison_[1]["objective"], "a circle is not linear"
    with pytest.raises(BadSetting, match="trained by its own method; leave out solver='implicit'"):
        sp.SetpointClassifier(ASK, module="k-neighbours", solver="implicit").fit(x, labels)


def test_the_command_line_fits_predicts_evaluates_compares_and_reports_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    loans().write_csv("loans.csv")
    main_ok("fit", "loans.csv", "--target", "default", "--ask", ASK, "--model", "k-neighbours", "--confidence", "0.9")
    told = json.loads((tmp_path / "run" / "setpoint.json").read_text())
    assert told["model"]["kind"] == "k-neighbours"
    assert told["results"]["default"]["method"] == "default: KNeighbours"
    assert list(told["results"]) == ["default", "cross-entropy"]
    main_ok("predict", "run", "loans.csv", "--out", "answer.csv")
    saved, frame = load_run("run"), read_table("loans.csv")
    answer = pl.read_csv("answer.csv")
    np.testing.assert_allclose(answer["score"].to_numpy(), saved.scores(frame).numpy(), rtol=1e-6)
    assert answer["decision"].to_list() == saved.point.predict(saved.scores(frame)).tolist()
    main_ok("evaluate", "run", "loans.csv")
    main_ok("report", "run")
    assert "KNeighbours" in (tmp_path / "run" / "report.html").read_text()
    capsys.readouterr()
    asked = ["loans.csv", "--target", "default", "--ask", ASK, "--model", "k-neighbours"]
    main_ok("compare", *asked, "--solvers", "default", "--trials", "2", "--json")
    compared = json.loads(capsys.readouterr().out)
    assert [one["solver"] for one in compared["solvers"]] == ["cross-entropy", "default"]
    main_ok("fit", *asked, "--ensemble", "3", "--over-splits", "--out", "three")
    assert len(load_run("three").model.members) == 3
    with pytest.raises(SystemExit):
        main(["fit", *asked, "--solver", "implicit", "--out", "none"])
    assert "trained by its own method, so it takes no solver" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_run_that_was_killed_goes_on_from_what_the_method_has_done(tmp_path, monkeypatch):
    path = tmp_path / "loans.csv"
    loans().write_csv(path)
    plan = Plan((str(path),), "default", ASK, Settings(model="k-neighbours"))
    calm = begin(plan, tmp_path / "calm")
    trained, whole = [], KNeighbours.train

    def counting(self, problem, data, work):
        once = work.once
        work.once = lambda name, make: once(name, lambda: (trained.append(name), make())[1])
        return whole(self, problem, data, work)

    monkeypatch.setattr(KNeighbours, "train", counting)

    class Killed(BaseException): ...

    def stop(name, done, rows):
        if name == "cross-entropy":
            raise Killed

    with pytest.raises(Killed):
        begin(plan, tmp_path / "run", on_epoch=stop)
    resumed = resume(tmp_path / "run")
    assert trained == ["kept"]
    for name, value in calm.chosen.model.state_dict().items():
        assert torch.equal(resumed.chosen.model.state_dict()[name], value)
    assert resumed.chosen.point == calm.chosen.point
    write_report(tmp_path / "run")


def test_what_it_refuses_is_said_before_any_work(tmp_path):
    x, labels = rows()
    stream = [(x, labels)]
    with pytest.raises(NotEnoughMemory, match="neighbours need rows in memory"):
        sp.fit(None, ASK, stream, stream, KNeighbours(), calibration=stream)
    with pytest.raises(BadSetting, match="a solver needs a model to train"):
        sp.fit(None, ASK, stream, stream, sp.Ridge(), calibration=stream)
    run = fit_table(loans(), "default", sp.ask(ASK), Settings(model="k-neighbours"))
    assert run.chosen.method == "default: KNeighbours"
