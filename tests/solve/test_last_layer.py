import copy

import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.errors import BadSetting

PROBLEM = sp.ask("minimize fnr where fpr <= 20%")


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def data(seed=0, size=200):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 5, generator=draw, dtype=torch.float64)
    return x, (x[:, 0] + torch.randn(size, generator=draw, dtype=torch.float64) > 0.8).double()


def settings():
    return {"temperature": 1.0, "memory": 0}


METHODS = {
    "method 1": (sp.CrossEntropy, lambda: sp.ImplicitThreshold(PROBLEM, **settings())),
    "method 2": (lambda: sp.losses.Penalty(PROBLEM, **settings()), lambda: sp.ImplicitThreshold(PROBLEM, **settings())),
    "ablation": (lambda: sp.losses.Penalty(PROBLEM, **settings()), lambda: sp.losses.Penalty(PROBLEM, **settings())),
}


@pytest.mark.parametrize("name", METHODS)
def test_body_and_head_get_exactly_the_gradients_of_their_own_losses(name):
    make_below, make_above = METHODS[name]
    model, (x, labels) = net(), data()
    solver = sp.losses.ImplicitLastLayer(PROBLEM, model[-1], below=make_below().double(), above=make_above().double())
    solver(model(x).squeeze(-1), labels).backward()
    found = {n: p.grad.clone() for n, p in model.named_parameters()}
    scores = model(x).squeeze(-1)
    body = [p for n, p in model.named_parameters() if n.startswith("0")]
    head = [p for n, p in model.named_parameters() if n.startswith("2")]
    expected_body = torch.autograd.grad(make_below().double()(scores, labels), body, retain_graph=True)
    expected_head = torch.autograd.grad(make_above().double()(scores, labels), head)
    for parameter, expected in zip(found, [*expected_body, *expected_head]):
        torch.testing.assert_close(found[parameter], expected)
        assert expected.abs().sum() > 0


def test_the_default_is_cross_entropy_below():
    solver = sp.losses.ImplicitLastLayer(PROBLEM, net()[-1])
    assert isinstance(solver.below, sp.CrossEntropy)
    assert isinstance(solver.above, sp.ImplicitThreshold)


def test_the_head_is_not_a_parameter_of_the_solver():
    assert list(sp.losses.ImplicitLastLayer(PROBLEM, net()[-1]).parameters()) == []


def test_it_trains_in_a_plain_loop_and_in_fit():
    x, labels = data(1, 1000)
    model = net().float()
    solver = sp.losses.ImplicitLastLayer(PROBLEM, model[-1])
    result = sp.fit(model, PROBLEM, [(x.float(), labels.float())], [(x.float(), labels.float())], solver, epochs=40)
    assert result.history[-1]["train"] < result.history[0]["train"]
    assert result.history[-1]["prices"][0] != 0


def test_in_eval_mode_it_is_the_loss_above_and_changes_nothing():
    model, (x, labels) = net(), data()
    solver = sp.losses.ImplicitLastLayer(PROBLEM, model[-1]).double()
    solver(model(x).squeeze(-1), labels)
    solver.eval()
    before = copy.deepcopy(solver.state_dict())
    loss = solver(model(x).squeeze(-1), labels)
    torch.testing.assert_close(loss, solver.above(model(x).squeeze(-1), labels))
    assert all(torch.equal(before[name], value) for name, value in solver.state_dict().items())


def test_scores_that_did_not_come_through_the_head_are_refused():
    model, (x, labels) = net(), data()
    solver = sp.losses.ImplicitLastLayer(PROBLEM, model[-1]).double()
    with pytest.raises(BadSetting, match="was not run on this batch"):
        solver(torch.randn(200).double(), labels)
    model(x[:50])
    with pytest.raises(BadSetting, match="was not run on this batch"):
        solver(torch.randn(200).double(), labels)
    with pytest.raises(BadSetting, match="head must be"):
        sp.losses.ImplicitLastLayer(PROBLEM, nn.ReLU())


def test_a_penalty_is_of_the_order_of_the_solved_price():
    scores, labels = torch.randn(2000, generator=torch.Generator().manual_seed(0)), (torch.arange(2000) % 2).float()
    implicit, penalty = sp.ImplicitThreshold(PROBLEM), sp.losses.Penalty(PROBLEM)
    implicit(scores + labels, labels)
    penalty(scores + labels, labels)
    assert penalty.prices.abs().item() == pytest.approx(2 * implicit.prices.item(), rel=1e-4)
    fixed = sp.losses.Penalty(PROBLEM, eta=7.0)
    fixed(scores + labels, labels)
    assert fixed.prices.abs().item() == 7
    with pytest.raises(BadSetting, match="eta"):
        sp.losses.Penalty(PROBLEM, eta=0.0)


def test_an_eta_of_one_collapses_where_the_default_does_not():
    """FPR 2 % costs far more than 1: with eta = 1 it pays to break the bound ten times over."""
    problem = sp.ask("minimize fnr where fpr <= 2%")
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(4000) % 2).float()
    x = torch.randn(4000, 2, generator=draw) + labels.unsqueeze(-1) * torch.tensor([1.5, 0.0])
    shift = {}
    for eta in (1.0, None):
        torch.manual_seed(0)
        model = nn.Linear(2, 1)
        solver = sp.losses.Penalty(
            problem, eta=eta, temperature=1.0, memory=0, correction=sp.losses.Correction(every=10**6)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(300):
            loss = solver(model(x).squeeze(-1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            shift[eta] = (model(x).squeeze(-1)[labels == 0] > solver.thresholds).float().mean().item()
    assert shift[1.0] > 0.15
    assert shift[None] < 0.05


def test_fit_finds_the_head_trains_it_as_a_given_one_and_leaves_no_hook_behind():
    x, labels = data()
    train, rest = sp.Batches(x, labels, batch_size=50), sp.Batches(*data(1))
    found = []
    for given in (False, True):
        model = net()
        solver = sp.losses.ImplicitLastLayer(PROBLEM, model[-1] if given else None).double()
        result = sp.fit(model, PROBLEM, train, rest, solver, epochs=3, calibration=sp.Batches(*data(2)))
        found.append(result.model.state_dict())
        assert solver.has_head == given
    assert all(torch.equal(found[0][name], value) for name, value in found[1].items())
    fresh = net()
    sp.fit(fresh, PROBLEM, train, rest, sp.losses.ImplicitLastLayer(PROBLEM).double(), epochs=1, calibration=rest)
    assert not fresh[-1]._forward_pre_hooks


def test_each_member_of_an_ensemble_has_its_own_head():
    train, rest = sp.Batches(*data(), batch_size=50), sp.Batches(*data(1))
    solver = sp.losses.ImplicitLastLayer(PROBLEM).double()
    result = sp.fit(net(), PROBLEM, train, rest, solver, epochs=2, ensemble=2, calibration=sp.Batches(*data(2)))
    first, second = (member[-1].weight for member in result.model.members)
    assert not torch.equal(first, second)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.last = nn.Linear(5, 4), nn.Linear(4, 1)

    def forward(self, x):
        return 3 * self.last(self.body(x).relu())


@pytest.mark.parametrize(
    ("model", "told"), [(nn.Linear(5, 1), "has no such layers"), (Scaled(), "does not make the scores")], ids=str
)
def test_a_model_whose_last_linear_layer_is_no_head_is_refused(model, told):
    rows = sp.Batches(*(part.float() for part in data()))
    with pytest.raises(BadSetting, match=told):
        sp.fit(
            model, PROBLEM, rows, rows, sp.losses.ImplicitLastLayer(PROBLEM), calibration=rows, epochs=1, warm_start=0
        )


def test_a_solver_without_a_head_says_so_in_a_loop_of_ones_own():
    with pytest.raises(BadSetting, match="belongs to no head"):
        sp.losses.ImplicitLastLayer(PROBLEM)(torch.randn(4), torch.tensor([0.0, 1.0, 0.0, 1.0]))
