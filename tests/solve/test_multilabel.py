"""Many labels at once are as many problems of one label."""

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadLabels, BadScores, BadSetting, ShapeMismatch
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.multilabel import OneVsRest

FNR = sp.ask("minimize fnr where fpr <= 20%")
F1 = sp.ask("maximize f1")


def batch(seed=0, size=40, n_labels=3):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, n_labels, generator=draw) < torch.tensor([0.5, 0.3, 0.1])).double()
    scores = torch.randn(size, n_labels, generator=draw, dtype=torch.float64) + labels
    return scores.requires_grad_(), labels


def state(solver):
    return {name: value.clone() for name, value in solver.state_dict().items()}


@pytest.mark.parametrize("problems", [FNR, [FNR, F1, FNR]], ids=["one for all", "one each"])
def test_the_loss_is_the_mean_of_the_labels_own(problems):
    together = OneVsRest(problems, 3, memory=100, temperature=2.0).double()
    each = problems if isinstance(problems, list) else [problems] * 3
    apart = [ImplicitThreshold(problem, memory=100, temperature=2.0).double() for problem in each]
    weights = torch.rand(40, 3, generator=torch.Generator().manual_seed(1)).double()
    for seed in range(3):
        scores, labels = batch(seed)
        loss = together(scores, labels, weights=weights)
        own = [solver(scores[:, j], labels[:, j], weights=weights[:, j]) for j, solver in enumerate(apart)]
        torch.testing.assert_close(loss, torch.stack(own).mean())
        (left,) = torch.autograd.grad(loss, scores)
        (right,) = torch.autograd.grad(torch.stack(own).mean(), scores)
        torch.testing.assert_close(left, right)
    for j, solver in enumerate(apart):
        assert torch.equal(together.thresholds[j], solver.thresholds)
        assert torch.equal(together.prices[j], solver.prices)
    assert together.status()["thresholds"] == [solver.thresholds.tolist() for solver in apart]


def test_weights_are_one_a_sample_or_one_an_entry():
    scores, labels = batch()
    rows = torch.rand(40, generator=torch.Generator().manual_seed(1)).double()
    settings = {"memory": 0, "temperature": 1.0}
    a_sample = OneVsRest(FNR, 3, **settings).double()(scores, labels, weights=rows)
    an_entry = OneVsRest(FNR, 3, **settings).double()(scores, labels, weights=rows[:, None].expand(40, 3))
    torch.testing.assert_close(a_sample, an_entry)
    known = torch.ones(40, 3).double()
    known[:, 2] = 0
    loss = OneVsRest(FNR, 3, **settings).double()(scores, labels, weights=known)
    (slope,) = torch.autograd.grad(loss, scores)
    assert slope[:, 2].abs().sum() == 0
    assert slope[:, :2].abs().sum() > 0


def test_eval_changes_no_state_and_a_label_of_one_kind_is_ordinary():
    solver = OneVsRest(FNR, 3).double()
    scores, labels = batch()
    labels[:, 2] = 0
    loss = solver(scores, labels)
    (slope,) = torch.autograd.grad(loss, scores)
    assert torch.isfinite(slope).all()
    assert slope[:, 2].abs().sum() == 0
    before = state(solver)
    solver.eval()
    solver(*batch(3))
    assert all(torch.equal(before[name], value) for name, value in solver.state_dict().items())


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda s, y: (s[:, :2], y[:, :2], None), ShapeMismatch),
        (lambda s, y: (s, y[:, 0], None), ShapeMismatch),
        (lambda s, y: (s, y, torch.ones(39)), ShapeMismatch),
        (lambda s, y: (s, y.index_fill(1, torch.tensor([2]), 2.0), None), BadLabels),
        (lambda s, y: (s.detach().index_fill(1, torch.tensor([2]), float("nan")), y, None), BadScores),
    ],
    ids=["labels", "shape", "weights", "values", "nan"],
)
def test_bad_batches_are_refused_before_any_label_is_touched(spoil, error):
    solver = OneVsRest(FNR, 3).double()
    solver(*batch())
    before = state(solver)
    scores, labels, weights = spoil(*batch(1))
    with pytest.raises(error):
        solver(scores, labels, weights=weights)
    assert all(torch.equal(before[name], value) for name, value in solver.state_dict().items())


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(BadSetting):
        OneVsRest([FNR, FNR], 3)
    with pytest.raises(BadSetting):
        OneVsRest(FNR, 0)
    with pytest.raises(TypeError):
        OneVsRest(FNR, 3, temprature=1.0)
