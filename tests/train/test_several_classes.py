"""Training for several classes: the multinomial linear model, cross-entropy of K classes, networks, trees and auto."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

import setpoint as sp
from marks import slow
from setpoint.errors import BadLabels, BadSetting
from setpoint.measure.sample import Sample
from setpoint.train.class_loss import class_losses
from setpoint.train.default import Case, make_solver
from setpoint.train.refined import refined_loss

ASK = "maximize macro recall where coverage of class 0 <= 40%"


def wine():
    x, labels = load_wine(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0)).float()
    return x, torch.tensor(labels)


def parts(**how):
    x, labels = wine()
    return [sp.Batches(x[k::3], labels[k::3], **how) for k in range(3)]


def test_the_multinomial_model_is_that_of_scikit_learn():
    train, held_out, rest = parts()
    method = sp.methods.Multinomial(lambda: torch.nn.Linear(13, 3, dtype=torch.float64), strengths=(1.0,))
    result = sp.fit(None, ASK, train, held_out, method, calibration=rest, confidence=None)
    rows = train.resident
    x = rows.x.double().numpy()
    spread = x.std(0)
    theirs = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit((x - x.mean(0)) / spread, rows.labels.numpy())
    ours = result.model(rows.x.double()).detach().numpy()
    expected = theirs.decision_function((x - x.mean(0)) / spread)
    np.testing.assert_allclose(
        ours - ours.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), atol=2e-3
    )


def test_cross_entropy_of_classes_is_that_of_torch():
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 4, generator=draw, requires_grad=True)
    labels, weights = torch.arange(20) % 4, torch.rand(20, generator=draw)
    loss = sp.CrossEntropy()(scores, labels, weights=weights)
    each = F.cross_entropy(scores, labels, reduction="none")
    torch.testing.assert_close(loss, (weights * each).sum() / weights.sum())
    torch.testing.assert_close(sp.CrossEntropy()(scores, labels), each.mean())
    with pytest.raises(BadSetting, match="pos_weight weighs the positives of two classes"):
        sp.CrossEntropy("balanced")(scores, labels)


def test_the_rescaled_loss_ignores_scale_and_shifts():
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3
    scores = torch.randn(300, 3, generator=draw, dtype=torch.float64) + F.one_hot(labels, 3)
    plain = class_losses(Sample(scores, labels)).sum()
    moved = class_losses(Sample(7 * scores + torch.tensor([5.0, -3.0, 0.0]), labels)).sum()
    assert float(moved) == pytest.approx(float(plain), rel=1e-4)
    assert float(plain) <= float(class_losses(Sample(scores, labels), rescaled=False).sum()) + 1e-3
    assert refined_loss(Sample(scores, labels)) == pytest.approx(float(plain) / 300)


@pytest.mark.parametrize("kind", ["linear", "network", "trees"])
def test_every_kind_of_model_is_fitted(kind):
    train, held_out, rest = parts(batch_size=16, shuffle=True)
    layers = torch.nn.Sequential(torch.nn.Linear(13, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    model = {"linear": torch.nn.Linear(13, 3), "network": layers, "trees": "trees"}[kind]
    result = sp.fit(model, ASK, train, held_out, calibration=rest, epochs=15)
    assert result.point.classes == ("0", "1", "2")
    assert result.point.objective > 0.9
    assert result.point.rates["coverage of class 0"] <= 0.4
    assert {"soft", "train", "held_out", "bounds"} <= set(result.history[0])


def test_an_ask_of_errors_is_about_all_classes_of_the_labels():
    train, held_out, rest = parts()
    result = sp.fit(torch.nn.Linear(13, 3), "minimize error", train, held_out, calibration=rest)
    assert result.point.problem.kind == "classes"
    assert result.point.objective < 0.1


def test_a_problem_that_knows_the_names_of_its_classes_gives_them_to_the_point():
    named = sp.ask("minimize error where recall of class cat >= 30%").resolved(("dog", "cat", "bird"))
    train, held_out, rest = parts()
    point = sp.fit(torch.nn.Linear(train.resident.x.shape[1], 3), named, train, held_out, calibration=rest).point
    assert list(point.threshold) == ["dog", "cat", "bird"]
    assert "recall of class bird" in point.rates
    with pytest.raises(BadLabels, match=r"names 2 classes \(dog, cat\), but a label is 2"):
        sp.fit("linear", sp.ask("maximize macro recall").resolved(("dog", "cat")), train, held_out, calibration=rest)


@slow
def test_auto_is_the_contest_of_the_kinds():
    train, held_out, rest = parts()
    result = sp.fit("auto", ASK, train, held_out, calibration=rest)
    notes = {trial.name: trial.note for trial in result.comparison}
    assert "are not stacked" in notes["stack"]
    assert result.point.objective > 0.85


def test_training_for_shifts_goes_through_fit():
    problem = sp.ask(ASK).resolved("012")
    train, held_out, rest = parts(batch_size=30, shuffle=True)
    solver = sp.classes.ImplicitShifts(problem, 3)
    result = sp.fit(torch.nn.Linear(13, 3), problem, train, held_out, solver, calibration=rest, epochs=30)
    assert result.point.objective > 0.8


def test_a_checkpoint_of_classes_continues_with_the_same_parameters(tmp_path):
    class Killed(RuntimeError):
        pass

    def trained(checkpoint=None, stop=None):
        def on_epoch(row):
            if row["epoch"] == stop:
                raise Killed

        torch.manual_seed(0)
        model = torch.nn.Linear(13, 3)
        train, held_out, rest = parts(batch_size=20, shuffle=True)
        how = {"calibration": rest, "epochs": 6, "checkpoint": checkpoint, "on_epoch": on_epoch}
        return sp.fit(model, ASK, train, held_out, sp.CrossEntropy(), **how)

    whole = trained()
    with pytest.raises(Killed):
        trained(sp.Checkpoint(tmp_path / "state", seconds=0), stop=3)
    again = trained(sp.Checkpoint(tmp_path / "state", seconds=0))
    assert all(a.equal(b) for a, b in zip(whole.model.parameters(), again.model.parameters()))
    assert whole.point == again.point


def test_solvers_by_name_are_those_of_classes_or_refused():
    case = Case(sp.ask(ASK).resolved("012"), n_classes=3, rows=10)
    assert isinstance(make_solver("implicit", case), sp.classes.ImplicitShifts)
    assert isinstance(make_solver("augmented", case), sp.classes.AugmentedMulticlass)
    assert isinstance(make_solver("program", case), sp.losses.MulticlassAUCLoss)
    assert make_solver("auto", case) is None
    for name in ("lagrangian", "pairwise", "weighted"):
        with pytest.raises(BadSetting, match=f"solver '{name}' is for two classes"):
            make_solver(name, case)
    with pytest.raises(BadSetting, match="names none or all of them"):
        make_solver("augmented", Case(sp.ask("maximize macro recall").resolved("012"), n_classes=3, rows=10))
