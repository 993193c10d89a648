"""The best kind of model: chosen by rows that no member saw, the simplest where all tie, behind each door."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from test_trees import parts, rings

import setpoint as sp
from doors import main_ok
from marks import slow
from setpoint.data.frame import read_table
from setpoint.data.scan import scan_table
from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.report.names import method_words
from setpoint.run.artefact import load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.run.table import fit_table
from setpoint.train.boosting import Boosting
from setpoint.train.contest import Contest
from setpoint.train.full_batch import FullBatch
from setpoint.train.stack import Stack, stacked

ASK = "minimize fnr where fpr <= 10%"


def tilted(size=600, seed=0):
    """A linear truth: nothing can beat a linear model."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 3, generator=draw)
    return x, (torch.rand(size, generator=draw) < torch.sigmoid(2 * x[:, 0] - x[:, 1])).float()


def chosen(result):
    return [trial.name for trial in result.comparison if trial.chosen]


def test_trees_are_chosen_for_rings_and_the_simplest_for_a_line():
    ring = sp.fit("auto", ASK, *parts(2), calibration=parts()[2])
    assert chosen(ring)[0] in ("trees", "stack")
    train, held_out, rest = (sp.Batches(*tilted(seed=seed)) for seed in range(3))
    line = sp.fit("auto", ASK, train, held_out, calibration=rest)
    assert chosen(line) == ["cross-entropy"]
    notes = {trial.name: trial.note for trial in ring.comparison}
    assert "left out: cross-entropy is more than 2 standard errors behind trees" in notes["linear"]
    assert notes["mlp"] == "left out: a network needs 5,000 rows, here are 1,200"
    assert [trial.name for trial in line.comparison] == ["cross-entropy", "linear", "trees", "mlp", "stack"]


def test_the_judged_value_is_that_of_rows_no_member_saw():
    """With labels drawn by a coin, no candidate looks better than a coin does."""
    draw = torch.Generator().manual_seed(1)
    made = [(torch.randn(400, 6, generator=draw), (torch.rand(400, generator=draw) < 0.5).float()) for _ in range(3)]
    train, held_out, rest = (sp.Batches(*rows) for rows in made)
    coin = sp.fit("auto", ASK, train, held_out, calibration=rest)
    for trial in coin.comparison:
        assert trial.point is None or trial.point.rates["fnr"] > 0.8


def test_the_stack_is_a_logistic_regression_on_out_of_fold_logits():
    draw = torch.Generator().manual_seed(0)
    x, labels = tilted(900)
    samples = [Sample(x[:, 0] + 0.3 * torch.randn(900, generator=draw), labels), Sample(-x[:, 1], labels)]
    folds = torch.arange(900) % 5
    (first, second, bias), out = stacked(samples, folds)
    logits = torch.stack([sample.scores for sample in samples], dim=1).numpy()
    # Ours has a ridge of 1/2 |w|^2 on the sum of losses, which is C=1.
    peer = LogisticRegression(C=1.0, tol=1e-10).fit(logits, labels.numpy())
    np.testing.assert_allclose([first, second, bias], [*peer.coef_[0], peer.intercept_[0]], rtol=1e-3)
    for fold in range(5):
        own = (folds == fold).numpy()
        without = LogisticRegression(C=1.0, tol=1e-10).fit(logits[~own], labels.numpy()[~own])
        np.testing.assert_allclose(
            out.scores[own].numpy(), without.decision_function(logits[own]), rtol=1e-3, atol=1e-3
        )


def test_a_stack_is_restored_whatever_the_order_of_its_file():
    members = {"trees": torch.nn.Linear(2, 1), "cross-entropy": torch.nn.Linear(2, 1)}
    stack = Stack(members, {"cross-entropy": 2.0, "trees": -1.0}, bias=0.25)
    x = torch.randn(20, 2)
    expected = 2 * members["cross-entropy"](x) - members["trees"](x) + 0.25
    torch.testing.assert_close(stack(x), expected.squeeze(-1))

    def linear(state):
        model = torch.nn.Linear(2, 1)
        model.load_state_dict(dict(state))
        return model

    backwards = dict(reversed(list(stack.state_dict().items())))
    again = Stack.restore(backwards, {"trees": linear, "cross-entropy": linear})
    assert torch.equal(again(x), stack(x))


@slow
def test_a_network_joins_where_it_is_not_behind_and_its_run_is_saved(tmp_path):
    x, y = rings(7800, width=3)
    frame = pl.DataFrame({name: x[:, i].numpy() for i, name in enumerate("abc")}).with_columns(y=pl.Series(y.numpy()))
    table = fit_table(frame, "y", sp.ask(ASK), Settings(model="auto"))
    names = [trial.name for trial in table.chosen.trials if trial.point is not None]
    assert "mlp" in names
    saved = load_run(save_run(tmp_path / "run", table))
    x = table.schema.encode(frame)
    assert torch.equal(saved.model(x), table.chosen.model(x))


@slow
def test_trees_beside_the_first_model_are_those_after_it(monkeypatch):
    def trained():
        train, held_out, rest = (sp.Batches(*tilted(seed=seed)) for seed in range(3))
        result = sp.fit("auto", ASK, train, held_out, calibration=rest)
        return result.history, [(trial.name, trial.note) for trial in result.comparison], result.point.thresholds

    beside = trained()
    monkeypatch.setattr(Contest, "meanwhile", lambda *_: nullcontext())
    assert trained() == beside


@pytest.mark.parametrize(("place", "method"), [(Boosting, "train"), (FullBatch, "train")])
def test_an_error_in_trees_or_beside_them_ends_both(monkeypatch, place, method):
    def fail(*_):
        raise BadSetting("on purpose")

    monkeypatch.setattr(place, method, fail)
    with pytest.raises(BadSetting, match="on purpose"):
        sp.fit("auto", ASK, *parts(2), calibration=parts()[2])
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_minutes_leave_candidates_out_and_say_so():
    train, held_out, rest = (sp.Batches(*tilted(seed=seed)) for seed in range(3))
    short = sp.fit(None, ASK, train, held_out, sp.methods.BestKind(minutes=1e-9), calibration=rest)
    notes = {trial.name: trial.note for trial in short.comparison}
    assert notes["trees"] == "left out: the minutes were over"
    assert chosen(short) == ["cross-entropy"]
    with pytest.raises(BadSetting, match="minutes is the time that the choice may take, above 0, got -1"):
        sp.methods.BestKind(minutes=-1)


def test_the_command_line_takes_auto_by_default_and_every_command_knows_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x, y = rings(900)
    frame = pl.DataFrame({name: x[:, i].numpy() for i, name in enumerate("abcd")})
    frame.with_columns(y=pl.Series(y.numpy()).cast(pl.Int64)).write_csv("rings.csv")
    asked = ["rings.csv", "--target", "y", "--ask", ASK]
    main_ok("fit", *asked)
    told = json.loads((tmp_path / "run" / "setpoint.json").read_text())
    assert told["model"]["kind"] == told["settings"]["model"] == "auto"
    method = told["results"]["default"]["method"]
    assert method in ("default: trees", "default: stack")
    assert told["results"]["default"]["test"]["rates"]["fnr"] < told["results"]["cross-entropy"]["test"]["rates"]["fnr"]
    said = capsys.readouterr().out
    assert "(kept)" in said
    assert f"3 kinds of models were tried. Kept: {method_words(method.removeprefix('default: '))}, since it" in said
    main_ok("predict", "run", "rings.csv", "--out", "answer.csv")
    answer, saved = pl.read_csv("answer.csv"), load_run("run")
    np.testing.assert_allclose(answer["score"].to_numpy(), saved.scores(read_table("rings.csv")).numpy(), rtol=1e-6)
    main_ok("evaluate", "run", "rings.csv", "--level", "0.001")
    main_ok("report", "run")
    main_ok("fit", *asked, "--model", "trees", "--monotone", "+a", "--out", "rising")
    rows = pl.DataFrame({"a": np.linspace(-2, 2, 50), "b": 0.1, "c": 0.2, "d": 0.3})
    assert (load_run("rising").scores(rows).diff() >= 0).all()
    capsys.readouterr()
    main_ok("compare", *asked, "--trials", "2", "--models", "trees,linear", "--json")
    compared = json.loads(capsys.readouterr().out)
    assert [one["solver"] for one in compared["solvers"]] == ["cross-entropy", "model trees", "model linear"]
    main_ok("explain", ASK, "--json")
    assert json.loads(capsys.readouterr().out)["solvers"]["trees"][0].startswith("boosted trees")


@slow
def test_the_estimator_takes_kinds_by_name():
    x, y = (part.numpy() for part in rings(900))
    for kind in ("trees", "auto"):
        found = sp.SetpointClassifier(ASK, module=kind).fit(x, y)
        fresh, labels = (part.numpy() for part in rings(900, seed=9))
        assert found.predict(fresh)[labels > 0].mean() > 0.5
        assert found.comparison_[0]["name"] == ("trees" if kind == "trees" else "cross-entropy")
    rising = sp.SetpointClassifier(ASK, module="trees", module__monotone={"x0": 1}).fit(x, y)
    grid = np.stack([np.linspace(-2, 2, 50), *np.zeros((3, 50))], axis=1)
    assert (np.diff(rising.decision_function(grid)) >= 0).all()
    with pytest.raises(BadSetting, match="Trees takes no depth; leave it out"):
        sp.SetpointClassifier(ASK, module="trees", module__depth=3).fit(x, y)
    linear = sp.SetpointClassifier(ASK).fit(x, y)
    assert linear.predict(fresh)[labels > 0].mean() < 0.3


def test_settings_of_the_method_are_refused_elsewhere():
    with pytest.raises(BadSetting, match="--minutes does not go with --model linear; leave it out"):
        Settings(minutes=1.0)
    with pytest.raises(BadSetting, match="monotone gives each column 1"):
        Settings(model="trees", monotone={"a": 2})
    with pytest.raises(BadSetting, match="BestKind takes no monotone; leave it out"):
        fit_table(_frame(), "y", sp.ask(ASK), Settings(model="auto", monotone={"a": 1}))
    train, held_out, rest = parts()
    with pytest.raises(BadSetting, match="a model of kind 'trees' is trained by its own method; leave out the solver"):
        sp.fit("trees", ASK, train, held_out, sp.CrossEntropy(), calibration=rest)


def _frame():
    x, y = rings(300)
    return pl.DataFrame({"a": x[:, 0].numpy(), "b": x[:, 1].numpy(), "y": y.numpy()})


def test_plain_cross_entropy_beside_it_is_the_candidate_itself():
    table = fit_table(_frame(), "y", sp.ask(ASK), Settings(model="auto"))
    (plain,) = table.chosen.beside
    assert plain.name == "cross-entropy"
    assert plain.model is table.chosen.trained.plain
    assert plain.trained.again
    candidate = next(trial for trial in table.chosen.trials if trial.name == "cross-entropy")
    assert candidate.seconds > 0


def test_a_stream_is_sampled_and_said(tmp_path):
    _frame().write_csv(tmp_path / "rings.csv")
    table = fit_stream(scan_table(tmp_path / "rings.csv"), "y", sp.ask(ASK), Settings(model="trees", epochs=2))
    assert "default trained on a sample of" in table.notes[-1]
    assert isinstance(table.chosen.model, sp.methods.Boosted)
