"""The loss from a plan against the loss of `price.py`, which knows every metric, step and device."""

import copy

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.measure.sample import Sample
from setpoint.solve.at_many import PlanAtMany
from setpoint.solve.at_one import RowsAtOne
from setpoint.solve.plan import plan_of

ASKS = [
    "minimize fnr where fpr <= 20%",
    "maximize precision where recall >= 80%",
    "maximize f1",
    "minimize error where fpr <= 10% and recall >= 60%",
    "maximize recall where precision >= 100% and fpr <= 0%",
    "maximize recall over fpr in [0%, 30%] with 5 points",
    "minimize error where fpr.gap(g) <= 10%",
    "minimize fnr where recall >= 30% and fpr.gap(g) <= 10% and fpr <= 40%",
]
SOLVERS = [sp.ImplicitThreshold, sp.Lagrangian, sp.losses.ProxyLagrangian]


def batch(seed, weighted, dtype=torch.float64, size=60):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).to(dtype)
    scores = torch.randn(size, generator=draw, dtype=dtype) + labels
    weights = torch.rand(size, generator=draw, dtype=dtype) if weighted else None
    return scores.requires_grad_(), labels, weights, torch.randint(3, (size,), generator=draw)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("make", SOLVERS)
def test_a_plan_gives_the_loss_its_derivatives_and_the_state_of_the_general_form(make, ask, weighted):
    problem = sp.ask(ask)
    more = {"n_groups": 3} if problem.group else {}
    planned = make(problem, memory=100, **more).double()
    general = copy.deepcopy(planned)
    assert planned.plan is not None
    general.plan = None
    close = {"rtol": 1e-10, "atol": 1e-11}
    for seed in range(4):
        scores, labels, weights, groups = batch(seed, weighted)
        told = []
        for solver in (planned, general):
            loss = solver(scores, labels, weights=weights, groups=groups if problem.group else None)
            (slope,) = torch.autograd.grad(loss, scores, create_graph=True)
            (second,) = torch.autograd.grad(slope.square().sum(), scores)
            told.append((loss, slope, second))
        for ours, theirs in zip(*told):
            torch.testing.assert_close(ours, theirs, **close)
        for name, value in planned.state_dict().items():
            torch.testing.assert_close(value, general.state_dict()[name], msg=name, **close)
        if make is sp.ImplicitThreshold:
            assert all(solver.prices[~solver.active & ~solver.broken].abs().sum() == 0 for solver in (planned, general))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ask", ASKS[:5])
@pytest.mark.parametrize("step", [sp.steps.SoftplusStep, sp.steps.HingeStep])
def test_a_learned_threshold_has_a_plan_under_convex_steps_too(step, ask, weighted):
    planned = sp.Lagrangian(sp.ask(ask), memory=100, step=step).double()
    general = copy.deepcopy(planned)
    assert planned.plan is not None
    general.plan = None
    for seed in range(4):
        scores, labels, weights, _ = batch(seed, weighted)
        told = []
        for solver in (planned, general):
            loss = solver(scores, labels, weights=weights)
            slopes = torch.autograd.grad(loss, (scores, solver.thresholds), create_graph=True)
            bends = ()
            if step is sp.steps.SoftplusStep:
                bends = torch.autograd.grad(slopes[0].square().sum(), (scores, solver.thresholds))
            told.append((loss, *slopes, *bends))
        for ours, theirs in zip(*told):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)
        for name, value in planned.state_dict().items():
            torch.testing.assert_close(value, general.state_dict()[name], msg=name, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("ask", ["maximize mcc where fpr <= 10%", "maximize g_mean"])
def test_metrics_have_no_plan(ask):
    assert plan_of(sp.ask(ask), sp.steps.SigmoidStep) is None
    assert plan_of(sp.ask(ASKS[0]), sp.steps.SoftplusStep) is None


def test_true_counts_add_up_weights_in_double_precision():
    weights = torch.tensor([16777216.0, 1.0, 1.0])
    rows = RowsAtOne(Sample(torch.tensor([2.0, 2.0, 2.0]), torch.ones(3), weights))
    assert rows.true_counts(np.array([1.0])) == [16777218.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("ask", ["minimize error where fpr.gap(g) <= 10%", "maximize recall where fnr.gap(g) == 0%"])
@pytest.mark.parametrize(("active", "broken"), [(False, False), (True, False), (True, True)])
def test_the_prices_of_a_gap_in_plain_numbers_are_those_in_arrays(ask, active, broken, monkeypatch):
    plan, draw = PlanAtMany(sp.ask(ask)), np.random.default_rng(0)
    counts, pace = draw.random((4, 4)) + 0.1, draw.normal(size=(4, 4))
    # Two groups at the upper end of the gap share its slope.
    counts[1] = counts[0]
    given = counts, pace, np.array([active]), np.array([broken]), sp.losses.Damping()
    few = plan.solved(*given)
    monkeypatch.setattr("setpoint.solve.at_many.FEW_GROUPS", 0)
    for ours, theirs in zip(few, plan.solved(*given)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
