"""Positives weigh half where few negatives may pass, and only in a network that no solver is named for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.train.class_weights import lean_weight

WEIGHTS = {
    "minimize fnr where fpr <= 1%": 0.5,
    "maximize recall where tnr >= 95%": 0.5,
    "maximize recall over fpr in [0%, 5%] with 10 points": 0.5,
    "minimize fnr where fpr <= 20%": None,
    "maximize precision where recall >= 95%": None,
    "maximize precision over recall in [95%, 100%] with 5 points": None,
    "maximize recall where flagged <= 1%": None,
    "maximize f1": None,
    "minimize error where fpr.gap(sex) <= 2%": None,
}


@pytest.mark.parametrize("ask", WEIGHTS)
def test_the_weight_goes_by_the_bound(ask):
    assert lean_weight(sp.ask(ask)) == WEIGHTS[ask]


def test_a_network_without_a_solver_is_trained_under_it():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(600, 2, generator=draw)
    labels = (x[:, 0] + torch.randn(600, generator=draw) > 1).float()
    parts = [[(x[rows], labels[rows])] for rows in torch.arange(600).split(200)]

    def network() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))

    def trained(solver, ask="minimize fnr where fpr <= 1%"):
        more = {"calibration": parts[2], "epochs": 4, "patience": 4, "refit": True}
        return sp.fit(network(), ask, parts[0], parts[1], solver, **more)

    lean, same, plain = trained(None), trained(sp.CrossEntropy(0.5)), trained(sp.CrossEntropy())
    torch.testing.assert_close(lean.model.state_dict(), same.model.state_dict(), rtol=0, atol=0)
    assert not torch.equal(lean.model[0].weight, plain.model[0].weight)
    mild = trained(None, "maximize precision where recall >= 90%")
    torch.testing.assert_close(mild.model.state_dict(), plain.model.state_dict(), rtol=0, atol=0)
