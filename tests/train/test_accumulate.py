"""Micro-batches that count as one: the loss and the gradient of the whole, whatever the solver."""

import copy

import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.errors import BadSetting

PROBLEM = sp.ask("minimize fnr where fpr <= 20%")
SOLVERS = {
    "implicit": lambda: sp.ImplicitThreshold(PROBLEM),
    "lagrangian": lambda: sp.Lagrangian(PROBLEM),
    "pairs": lambda: sp.losses.PairwiseArea(memory=0),
    "program": sp.losses.FScoreLoss,
    "augmented": lambda: sp.AugmentedLagrangian(sp.CrossEntropy("balanced"), n_samples=120, mu=0.1),
}


def rows(size=120):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, 4, generator=draw, dtype=torch.float64)
    labels = (x[:, 0] + torch.randn(size, generator=draw, dtype=torch.float64) > 0.8).double()
    return sp.Batches(x, labels, weights=torch.rand(size, generator=draw).double() + 0.5, batch_size=40)


def network(*more):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), *more, nn.Linear(6, 1)).double()


@pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS)
def test_micro_batches_learn_what_the_whole_learns(make):
    loader, model, solver = rows(), network(), make().double()
    other, other_solver = copy.deepcopy(model), copy.deepcopy(solver)
    for _ in range(3):
        loss, scores = sp.methods.accumulate(model, solver, loader)
        whole = loader.whole
        expected = other_solver(other(whole.x).squeeze(-1), whole.labels, weights=whole.weights, index=whole.index)
        expected.backward()
        assert float(loss) == pytest.approx(float(expected.detach()), abs=1e-12)
        assert scores.shape == whole.labels.shape
    pairs = [*zip(model.parameters(), other.parameters()), *zip(solver.parameters(), other_solver.parameters())]
    for own, wanted in pairs:
        torch.testing.assert_close(own.grad, wanted.grad)
    for name, value in other_solver.state_dict().items():
        torch.testing.assert_close(solver.state_dict()[name], value)


def test_the_second_pass_draws_what_the_first_one_drew_and_buffers_move_once():
    model = network(nn.Dropout(0.5), nn.BatchNorm1d(6))
    other = copy.deepcopy(model)
    torch.manual_seed(5)
    _, scores = sp.methods.accumulate(model, sp.CrossEntropy(), rows())
    after = torch.rand(1)
    torch.manual_seed(5)
    parts = [other(batch.x).squeeze(-1) for batch in rows()]
    whole = rows().whole
    sp.CrossEntropy()(torch.cat(parts), whole.labels, weights=whole.weights).backward()
    assert torch.equal(torch.rand(1), after)
    torch.testing.assert_close(scores, torch.cat(parts).detach())
    for own, wanted in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(own.grad, wanted.grad)
    for own, wanted in zip(model.buffers(), other.buffers()):
        torch.testing.assert_close(own, wanted)


def test_fit_on_micro_batches_is_fit_on_batches():
    def run(size, accumulate):
        loader = rows()
        train = sp.Batches(loader.whole.x, loader.whole.labels, batch_size=size, shuffle=True)
        solver = sp.ImplicitThreshold(PROBLEM).double()
        return sp.fit(network(), PROBLEM, train, rows(), solver, epochs=4, accumulate=accumulate)

    whole, parts = run(30, 1), run(10, 3)
    for own, wanted in zip(parts.model.parameters(), whole.model.parameters()):
        torch.testing.assert_close(own, wanted)
    assert [row["train"] for row in parts.history] == pytest.approx([row["train"] for row in whole.history])
    assert parts.point.threshold == pytest.approx(whole.point.threshold)


def test_what_cannot_be_accumulated_is_refused():
    model = network()
    with pytest.raises(BadSetting, match="looks into the model"):
        sp.methods.accumulate(model, sp.losses.ImplicitLastLayer(PROBLEM, model[-1]), rows())
    with pytest.raises(BadSetting, match="no micro-batch"):
        sp.methods.accumulate(model, sp.CrossEntropy(), [])
    with pytest.raises(BadSetting, match="number of batches that count as one"):
        sp.fit(model, PROBLEM, rows(), rows(), sp.CrossEntropy(), accumulate=0)
