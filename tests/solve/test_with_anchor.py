import pytest
import torch

import setpoint as sp
import worlds
from setpoint.errors import BadSetting

PROBLEM = sp.ask("minimize fnr where fpr <= 5%")


def batch():
    x, labels = worlds.lost_positives(400, 0)
    return (x[:, 0] - 0.3 * x[:, 1]).double().requires_grad_(), labels.double()


def gradient(solver, scores, labels):
    return torch.autograd.grad(solver(scores, labels), scores)[0]


def test_both_pull_in_the_asked_proportion_at_the_start():
    scores, labels = batch()
    free = gradient(sp.ImplicitThreshold(PROBLEM, memory=0).double(), scores, labels)
    held = gradient(sp.CrossEntropy().double(), scores, labels)
    anchored = sp.losses.WithAnchor(sp.ImplicitThreshold(PROBLEM, memory=0), strength=0.25).double()
    found = gradient(anchored, scores, labels)
    torch.testing.assert_close(found, free + 0.25 * held * free.abs().sum() / held.abs().sum())


def test_the_balance_is_set_once():
    scores, labels = batch()
    anchored = sp.losses.WithAnchor(sp.ImplicitThreshold(PROBLEM, memory=0)).double()
    anchored(scores, torch.zeros_like(labels))
    assert anchored.balance.item() == 0
    anchored(scores, labels)
    first = anchored.balance.item()
    anchored(2 * scores, labels)
    assert anchored.balance.item() == first > 0


def test_a_strong_anchor_ends_at_cross_entropy_and_a_weak_one_at_the_problem():
    x, labels = worlds.lost_positives(8000, 1)
    found = {}
    for strength in (0.01, 100.0):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        solver = sp.losses.WithAnchor(sp.ImplicitThreshold(sp.ask("minimize fnr where fpr <= 1%")), strength=strength)
        train = sp.Batches(x, labels, batch_size=512, shuffle=True)
        adam = lambda parameters: torch.optim.Adam(parameters, lr=0.05)
        result = sp.fit(model, solver.solver.problem, train, [(x, labels)], solver, epochs=12, optimizer=adam)
        found[strength] = result.history[-1]["train"]
    assert found[0.01] < 0.6
    assert found[100.0] > 0.68


def test_bad_settings_are_refused_by_name():
    with pytest.raises(BadSetting, match="strength"):
        sp.losses.WithAnchor(sp.CrossEntropy(), strength=0.0)
    with pytest.raises(BadSetting, match="expected a solver"):
        sp.losses.WithAnchor("implicit")
