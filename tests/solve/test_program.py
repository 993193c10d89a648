"""The losses made of linear programs: drop-in criteria that equal their program, learn, and never give NaN."""

import pytest
import torch

import setpoint as sp
from marks import slow
from setpoint import lp
from setpoint.errors import BadLabels, BadProblem, BadSetting, SetpointError, ShapeMismatch
from setpoint.measure.curve import roc_area
from setpoint.measure.multiclass import auc_mu
from setpoint.solve.program import (
    AUCLoss,
    FScoreLoss,
    JaccardLoss,
    MulticlassAUCLoss,
    PrecisionAtRecallLoss,
    RecallAtPrecisionLoss,
    program_for,
)

LOSSES = {
    "auc": AUCLoss,
    "auc ramp": lambda: AUCLoss(0.5, ramp=True),
    "f1": FScoreLoss,
    "f2": lambda: FScoreLoss(2.0),
    "jaccard": JaccardLoss,
    "precision at recall": lambda: PrecisionAtRecallLoss(0.9),
    "recall at precision": lambda: RecallAtPrecisionLoss(0.8),
}
EVERY = pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES)


def batch(seed=0, size=40, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).long()
    labels[0] = 1
    return (torch.randn(size, generator=draw, dtype=dtype) + labels).requires_grad_(), labels


@EVERY
def test_finite_differentiable_and_says_something(make):
    scores, labels = batch()
    loss = make()(scores, labels)
    assert loss.shape == ()
    assert float(loss.detach()) >= 0
    assert torch.autograd.gradcheck(lambda s: make()(s, labels), (scores,), eps=1e-7, atol=1e-6)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert float(gradient.abs().sum()) > 0
    # Raising a positive or lowering a negative never costs.
    assert bool((gradient[labels == 1] <= 0).all())
    assert bool((gradient[labels == 0] >= 0).all())


@EVERY
@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_class_is_finite_with_a_zero_gradient_at_most(make, label):
    scores = torch.randn(5, requires_grad=True)
    loss = make()(scores, torch.full((5,), label))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(scores.grad).all()
    if label == 0:
        assert float(loss.detach()) == 0
        assert float(scores.grad.abs().sum()) == 0


@EVERY
def test_no_state_order_does_not_matter_and_a_weight_is_a_repetition(make):
    solver = make()
    assert solver.state_dict() == {}
    scores, labels = batch(1)
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(2))
    assert float(solver(scores, labels).detach()) == pytest.approx(float(solver(scores[order], labels[order]).detach()))
    weights = torch.randint(1, 4, (len(scores),), generator=torch.Generator().manual_seed(3))
    again = torch.repeat_interleave(torch.arange(len(scores)), weights)
    weighted = solver(scores, labels, weights=weights.double())
    assert float(weighted.detach()) == pytest.approx(float(solver(scores[again], labels[again]).detach()))


@EVERY
def test_separable_and_extreme_scores_stay_finite(make):
    for scale in (1e-12, 1e3, 1e30):
        scores = torch.tensor([1.0, 2.0, -1.0, -2.0]).mul(scale).requires_grad_()
        loss = make()(scores, torch.tensor([1, 1, 0, 0]))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(scores.grad).all()


def test_each_loss_is_the_value_of_its_program():
    scores, labels = batch(4)
    forms, clear = lp.forms, {"margin": 0.4}
    pairs = [
        (FScoreLoss(2.0), 1 + lp.solve(forms.f_score(scores, labels, beta=2.0, **clear)).value),
        (JaccardLoss(margin=0), 1 + lp.solve(forms.jaccard(scores, labels)).value),
        (
            PrecisionAtRecallLoss(0.9, shortfall=2.0),
            1 + lp.solve(forms.precision_at_recall(scores, labels, 0.9, shortfall=2.0, **clear)).value,
        ),
        (
            RecallAtPrecisionLoss(0.8),
            1 + lp.solve(forms.recall_at_precision(scores, labels, 0.8, shortfall=5.0, **clear)).value,
        ),
        (AUCLoss(0.5), lp.solve(forms.auc(scores, labels, margin=0.5)).value / 0.5),
    ]
    for solver, value in pairs:
        assert float(solver(scores, labels).detach()) == pytest.approx(float(value.detach()), abs=1e-6)
    many, classes = torch.randn(30, 3).double(), torch.arange(30) % 3
    value = lp.solve(lp.forms.auc_mu(many, classes)).value
    assert float(MulticlassAUCLoss()(many, classes)) == pytest.approx(float(value), abs=1e-6)
    value = lp.solve(lp.forms.auc_one_vs_all(many, classes)).value
    assert float(MulticlassAUCLoss(one_vs_all=True)(many, classes)) == pytest.approx(float(value), abs=1e-6)


@pytest.mark.parametrize("one_vs_all", [True, False])
def test_many_classes_as_published_is_the_share_of_pairs_out_of_order(one_vs_all):
    """Pooled and ramped at a tiny margin: every pair of samples of different classes counts one."""
    draw = torch.Generator().manual_seed(3)
    scores, labels = torch.randn(20, 3, generator=draw, dtype=torch.float64), torch.tensor([0] * 12 + [1] * 6 + [2] * 2)
    wrong = []
    for i, k in enumerate(labels.tolist()):
        for j, other in enumerate(labels.tolist()):
            if one_vs_all and k != other:
                wrong.append(scores[i, k] < scores[j, k])
            elif k < other:
                wrong.append(scores[i, k] - scores[i, other] < scores[j, k] - scores[j, other])
    loss = MulticlassAUCLoss(1e-9, one_vs_all=one_vs_all, pooled=True, ramp=True)(scores, labels)
    assert float(loss) == pytest.approx(sum(map(float, wrong)) / len(wrong), abs=1e-6)


def test_the_default_area_learns_where_the_published_margin_is_silent():
    """At margin 0.01 the ramp gives gradient to almost no pair; the default to every pair out of place."""
    scores, labels = batch(5, size=400)
    ramp = AUCLoss(0.5, ramp=True)(scores, labels)
    assert float(ramp.detach()) == pytest.approx(float(lp.closed.auc_ramp(scores, labels, margin=0.5).detach()))
    assert float(ramp.detach()) < float(AUCLoss(0.5)(scores, labels).detach())
    (telling,) = torch.autograd.grad(AUCLoss()(scores, labels), scores)
    assert float((telling != 0).double().mean()) > 0.95

    def area_after(solver):
        draw = torch.Generator().manual_seed(0)
        y = (torch.rand(600, generator=draw) < 0.2).long()
        x = torch.randn(600, 5, generator=draw) + 0.6 * y.unsqueeze(1) * torch.tensor([1.0, 1, 0, 0, -1])
        model = torch.nn.Linear(5, 1)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[-1.0, -1, 1, 1, 1]]))
        descent = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(60):
            loss = solver(model(x).squeeze(-1), y)
            descent.zero_grad()
            loss.backward()
            descent.step()
        return float(roc_area(model(x).squeeze(-1).detach(), y))

    assert area_after(AUCLoss()) > 0.75
    assert area_after(AUCLoss(0.01, ramp=True)) < 0.65


def trained(solver, x, y, steps=250):
    """Scores of a linear model after some steps, from a start that flags nothing."""
    model = torch.nn.Linear(x.shape[1], 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.fill_(-1.0)
    descent = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = solver(model(x).squeeze(-1), y)
        descent.zero_grad()
        loss.backward()
        descent.step()
    return model(x).squeeze(-1).detach()


def overlapping(share=0.3):
    draw = torch.Generator().manual_seed(0)
    y = (torch.rand(800, generator=draw) < share).long()
    return torch.randn(800, 2, generator=draw) + 1.2 * y.unsqueeze(1), y


def test_the_published_program_is_blind_and_the_default_is_not():
    """Without a margin, scores just below zero cost nothing: the loss nears 0 whatever the F-score."""
    x, y = overlapping()
    for solver, blind in ((FScoreLoss(margin=0.0), True), (FScoreLoss(), False)):
        scores = trained(solver, x, y)
        flagged = scores > 0
        missed = 1 - 2 * float((flagged & (y == 1)).sum()) / float(flagged.sum() + (y == 1).sum())
        assert missed > 0.2
        if blind:
            assert float(solver(scores, y)) < 0.01
        else:
            assert float(solver(scores, y)) == pytest.approx(missed, abs=0.05)


def test_the_bounds_are_met_once_missing_them_costs_enough():
    x, y = overlapping()
    flagged = trained(PrecisionAtRecallLoss(0.9), x, y) > 0
    assert float(flagged[y == 1].double().mean()) > 0.87
    assert float(flagged[y == 0].double().mean()) < 0.35
    cheap = trained(PrecisionAtRecallLoss(0.9, shortfall=1.0), x, y) > 0
    assert float(cheap[y == 1].double().mean()) < 0.8
    flagged = trained(RecallAtPrecisionLoss(0.8), x, y) > 0
    assert float((y[flagged] == 1).double().mean()) > 0.76
    assert float(flagged[y == 1].double().mean()) > 0.6


@slow
def test_many_classes():
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(30, 4, generator=draw, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(30) % 4
    partition = 1 - torch.eye(4).double() + 0.3 * torch.rand(4, 4, generator=draw).double() * (1 - torch.eye(4))
    for solver in (
        MulticlassAUCLoss(),
        MulticlassAUCLoss(one_vs_all=True),
        MulticlassAUCLoss(partition=partition),
        MulticlassAUCLoss(partition=partition, pooled=True, ramp=True),
    ):
        assert torch.autograd.gradcheck(lambda s, solver=solver: solver(s, labels), (scores,), atol=1e-6)
        alone = solver(scores, torch.zeros(30))
        assert float(alone.detach()) == 0
    assert float(MulticlassAUCLoss()(1e6 * torch.eye(4)[labels], labels)) == 0
    assert float(auc_mu(torch.eye(4)[labels], labels)) == 1
    with pytest.raises(ShapeMismatch):
        MulticlassAUCLoss()(torch.randn(4), torch.arange(4))
    with pytest.raises(BadLabels):
        MulticlassAUCLoss()(torch.randn(4, 2), torch.arange(4))


def test_settings_and_inputs_are_checked_by_name():
    for make in (
        lambda: AUCLoss(0),
        lambda: FScoreLoss(-1),
        lambda: FScoreLoss(scale=0),
        lambda: JaccardLoss(margin=0.7),
        lambda: PrecisionAtRecallLoss(1.2),
        lambda: RecallAtPrecisionLoss(0.5, shortfall=0),
        lambda: MulticlassAUCLoss(partition=torch.eye(2), one_vs_all=True),
    ):
        with pytest.raises(BadSetting):
            make()
    for make in LOSSES.values():
        with pytest.raises(SetpointError):
            make()(torch.randn(3), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        ("maximize f1", sp.losses.FScoreLoss),
        ("maximize f_score(2)", sp.losses.FScoreLoss),
        ("maximize jaccard", sp.losses.JaccardLoss),
        ("maximize precision where recall >= 80%", sp.losses.PrecisionAtRecallLoss),
        ("maximize recall where precision >= 80%", sp.losses.RecallAtPrecisionLoss),
        ("maximize recall over fpr in [0%, 100%]", sp.losses.AUCLoss),
    ],
)
def test_the_program_of_a_problem(ask, kind):
    found = program_for(sp.ask(ask))
    assert type(found) is kind
    assert getattr(found, "beta", 2.0) == (1.0 if ask == "maximize f1" else 2.0)
    assert getattr(found, "recall", 0.8) == getattr(found, "precision", 0.8) == 0.8


@pytest.mark.parametrize(
    "ask", ["minimize fnr where fpr <= 1%", "minimize f1", "maximize mcc", "maximize recall over fpr in [0%, 5%]"]
)
def test_a_problem_without_a_program_is_refused_by_name(ask):
    with pytest.raises(BadProblem, match="no linear program"):
        program_for(sp.ask(ask))
